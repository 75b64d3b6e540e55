"""Mistakes that people make in a rule file: each gets the file, the line, the word and what to write."""

from __future__ import annotations

import textwrap

import pytest

from adjudge.errors import ConfigError
from adjudge.protocols.check.document import parse
from adjudge.protocols.check.lint import lint
from adjudge.protocols.check.sandbox import Sandbox

BASE = """
adjudge: 1
name: mine
fields:
  total: {path: $.total, type: number, unit: EUR}
  currency: {path: $.currency, type: text, one_of: [EUR, USD]}
  date: {path: $.date, type: date}
  order: {path: $.order, type: text}
  lines: {path: $.lines, type: "list(qty number, price number)"}
rules:
  a.total: total >= 0
  b.order: {check: length("order") > 0, severity: warning}
gates: ["pass_rate.low >= 0.9"]
tests:
  - {row: {total: 1, currency: EUR, date: 2026-01-02, order: x, lines: []}, fails: []}
"""
MISTAKES = [
    # what is replaced, by what, the line, and words of the message
    ("a.total: total >= 0", "a.total: totl >= 0", 11, ["'totl'", "Did you mean total?"]),
    ("a.total: total >= 0", "a.total: Total >= 0", 11, ["'Total'", "Did you mean total?"]),
    ("a.total: total >= 0", "a.total: total => 0", 11, ["=>", ">="]),
    ("a.total: total >= 0", "a.total: total =< 0", 11, ["=<", "<="]),
    ("a.total: total >= 0", "a.total: currency = EUR", 11, ["'EUR'", "single quotes"]),
    ("a.total: total >= 0", "a.total: 'currency = \"EUR\"'", 11, ["double quotes are for names", "'EUR'"]),
    ("a.total: total >= 0", "a.total: currency = 'EUR", 11, ["quote is not closed"]),
    ("a.total: total >= 0", "a.total: currency > 5", 11, ["text (currency)", "number (5)"]),
    ("a.total: total >= 0", "a.total: total > '5'", 11, ["number (total)", "without quotes"]),
    ("a.total: total >= 0", "a.total: abs(currency) > 0", 11, ["abs(VARCHAR)"]),
    ("a.total: total >= 0", "a.total: absolute(total) > 0", 11, ["'absolute'", "not allowed"]),
    ("a.total: total >= 0", "a.total: leng(currency) > 0", 11, ["'leng'", "Did you mean"]),
    ("a.total: total >= 0", "a.total: sum(lines) > 0", 11, ["list_sum"]),
    ("a.total: total >= 0", "a.total: max(total, 0) > 0", 11, ["greatest"]),
    ("a.total: total >= 0", "a.total: total > 0 && total < 9", 11, ["and for &&"]),
    ("a.total: total >= 0", "a.total: total != null", 11, ["is not null"]),
    ("a.total: total >= 0", "a.total: currency.startswith('E')", 11, ["starts_with(currency"]),
    ("a.total: total >= 0", "a.total: order = 'x'", 11, ["word of SQL", '"order"']),
    ("a.total: total >= 0", "a.total: total", 11, ["DOUBLE", "true or false"]),
    ("a.total: total >= 0", "a.total: 1 = 1", 11, ["names no field"]),
    ("a.total: total >= 0", "a.total: (total >= 0", 11, ["brackets open"]),
    ("a.total: total >= 0", "a.total: gold.totl = total", 11, ["gold.totl", "gold.total"]),
    ("a.total: total >= 0", "a.total: date > now()", 11, ["'now'", "same result tomorrow"]),
    ("a.total: total >= 0", "a.total: previous.total < total", 11, ["sequence", "order"]),
    ("a.total: total >= 0", "a.total: {chek: total >= 0}", 11, ["'chek'", "'check'"]),
    ("a.total: total >= 0", "a.total: {check: total >= 0, severity: fatal}", 11, ["'fatal'", "critical, warning"]),
    ("a.total: total >= 0", "a.total: {check: total >= 0, needs: [b.ordr]}", 11, ["'b.ordr'", "'b.order'"]),
    ("a.total: total >= 0", 'a.total: {check: total >= 0, failed: "is {value}"}', 11, ["{value}", "observed"]),
    ("a.total: total >= 0", "a.total: {check: total >= 0, severity: {warning: 1}}", 11, ["observed", "missing"]),
    ("a.total: total >= 0", "Total: total >= 0", 11, ["family.name", "rule.total"]),
    ("a.total: total >= 0", "field.total: total >= 0", 11, ["'field'", "ours"]),
    ("a.total: total >= 0", "a.total: total >= 0\n  a.total: total >= 1", 12, ["'a.total'", "twice", "line 11"]),
    ("a.total: total >= 0", "a.total: currency = 'a: b'", 11, ["quoted", ": "]),
    ("a.total: total >= 0", "a.total: currency = 'a #b'", 11, ["comment", "quotes"]),
    ("type: number, unit: EUR", "type: float, unit: EUR", 5, ["'float'", "write number"]),
    ("type: number, unit: EUR", "type: number, unti: EUR", 5, ["'unti'", "'unit'"]),
    ("type: number, unit: EUR", "unit: EUR", 5, ["`type` is missing"]),
    ("type: number, unit: EUR", "type: number, required: yes", 5, ["'yes'", "true or false"]),
    ("type: number, unit: EUR", "type: number, range: [9, 1]", 5, ["low 9", "high 1"]),
    ("type: number, unit: EUR", "type: number, range: 5", 5, ["[low, high]"]),
    ("path: $.total", "path: total", 5, ["begins with $", "$.total"]),
    ("path: $.total", "path: $.a..b", 5, ["cannot be read from"]),
    ("  total: {", "  model: {", 5, ["'model'", "reserved"]),
    ("one_of: [EUR, USD]", "one_of: EUR", 6, ["list such as"]),
    ("one_of: [EUR, USD]", "one_of: [1, 2]", 6, ["no text", "quote it"]),
    ('"list(qty number, price number)"', '"list(qty number, price)"', 9, ["too early", "name type"]),
    ("adjudge: 1", "adjudge: 2", 2, ["is 2", "format 1"]),
    ("adjudge: 1\n", "", 1, ["`adjudge: 1` is missing"]),
    ("rules:\n", "ruls:\n", 10, ["'ruls'", "'rules'"]),
    ("name: mine", "name: mine\nname: yours", 4, ["'name'", "twice"]),
    ("name: mine", "name: &a mine", 3, ["&a", "alias"]),
    ("name: mine", "name: [mine", 4, ["not YAML"]),
    ("name: mine", "\tname: mine", 3, ["tabs"]),
    ('"pass_rate.low >= 0.9"', '"pas_rate.low >= 0.9"', 13, ["'pas_rate'", "'pass_rate'"]),
    ('"pass_rate.low >= 0.9"', '"pass_rate is 0.9"', 13, ["not of the form"]),
    ("fails: []", "fails: [a.totl]", 15, ["'a.totl'", "'a.total'"]),
    ("fails: []", "fails: [a.total]", 15, ["a.total should fail and passes"]),
    ("{total: 1,", "{total: -1,", 15, ["a.total fails and is not in `fails`"]),
    ("{total: 1,", "{totl: 1,", 15, ["'totl'", "'total'"]),
    ("fails: []", "gold: 5, fails: []", 15, ["tests.0.gold: is 5, expected a table"]),
    ("fails: []", "meta: text, fails: []", 15, ["tests.0.meta: is 'text', expected a table"]),
    ('"pass_rate.low >= 0.9"', "5", 13, ["rules.yaml:13: gates.0: is 5, expected text"]),
    ("name: mine", "name: mine\nslices: [meta]", 4, ["'meta'", "meta.KEY"]),
    ("name: mine", "name: mine\nscores: {q: {weights: {a.totl: 1}}}", 4, ["'a.totl'", "'a.total'"]),
    ("name: mine", "name: mine\nsequence: meta.flight", 4, ["`order`"]),
    ("name: mine", "name: mine\nextract: yaml", 4, ["'yaml'", "json, none"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def sandbox():
    shared = Sandbox()
    yield shared
    shared.close()


def problems(text: str, sandbox: Sandbox) -> list[str]:
    try:
        return lint(parse(text, "rules.yaml"), sandbox).errors
    except ConfigError as error:
        return [str(error)]


def test_the_base_is_right(sandbox):
    assert problems(BASE, sandbox) == []


@pytest.mark.parametrize("wrong, right, line, words", MISTAKES, ids=[str(place) for place in range(len(MISTAKES))])
def test_a_mistake_names_line_word_and_suggestion(sandbox, wrong, right, line, words):
    text = BASE.replace(wrong, right, 1)
    assert text != BASE
    (first, *_) = problems(text, sandbox)
    assert first.startswith(f"rules.yaml:{line}: ") or line == 1, first
    for word in words:
        assert word in first, (word, first)
    assert first.count("rules.yaml") == 1


def test_there_are_many_mistakes():
    assert len(MISTAKES) >= 30


def test_warnings(sandbox):
    text = textwrap.dedent(BASE).replace("  date: {path: $.date, type: date}", "  date: date")
    warnings = "\n".join(lint(parse(text, "rules.yaml"), sandbox).warnings)
    assert "rules.yaml:7: fields.date: no rule reads this field" in warnings
    assert 'rules.yaml:8: fields.order: is a word of SQL: in expressions it is written "order"' in warnings
    assert "rules.yaml:11: rules.a.total: shown to be never failing" in warnings


def test_a_rule_shown_to_do_nothing_is_a_warning(sandbox):
    text = "adjudge: 1\nfields: {n: number}\nrules: {a.n: n > 0}\n"
    assert "neither failing nor passing" in lint(parse(text, "r.yaml"), sandbox).warnings[0]
