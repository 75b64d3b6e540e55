"""A whole evaluation: atoms, verdicts, buckets, scores, gates, verify, and bytes that do not depend on order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import adjudge
from adjudge.engine.evaluate import Options, evaluate
from adjudge.engine.verify import ENGINE_KEYS, verify
from adjudge.protocols.base import protocol
from adjudge.protocols.check.example import generate
from adjudge.runs.run import Run

from .conftest import atoms_of

RULES = """
    adjudge: 1
    name: invoices
    fields:
      total: {type: number, unit: EUR}
      tax: number
      currency: {type: text, one_of: [EUR, USD]}
      note: {type: text, required: false}
    rules:
      invoice.tax: tax between 0 and total
      invoice.share: {check: tax / total < 0.5, severity: warning}
      note.short: length(note) < 20
      plausible.eur: {check: total < 1000, when: currency = 'EUR', needs: [invoice.tax]}
      gold.total: abs(total - gold.total) <= 0.01
"""
RIGHT = {"total": 100, "tax": 19, "currency": "EUR"}


def test_atoms_of_a_right_answer(judge):
    atoms = atoms_of(judge(RULES, [RIGHT]), "s000")
    assert atoms["answer.json"][0] == atoms["field.present total"][0] == atoms["field.type tax"][0] == "pass"
    assert atoms["field.present note"] == (
        "not_applicable",
        "not applicable: the field is optional, and not in the answer",
    )
    assert atoms["invoice.tax"][0] == atoms["plausible.eur"][0] == atoms["field.one_of currency"][0] == "pass"
    assert atoms["gold.total"] == ("not_applicable", "not applicable: there is no gold.total")


@pytest.mark.parametrize(
    "answer, atom, outcome, words",
    [
        ({**RIGHT, "total": "12,50"}, "field.type total", "fail", "text, expected a number"),
        ({**RIGHT, "total": "12,50"}, "invoice.tax", "not_applicable", "needs field.type on total"),
        ({"tax": 1, "currency": "EUR"}, "field.present total", "fail", "missing"),
        ({"tax": 1, "currency": "EUR"}, "invoice.tax", "not_applicable", "needs field.present on total"),
        ({**RIGHT, "total": None}, "field.present total", "fail", "missing from the answer, or null"),
        ({**RIGHT, "total": True}, "field.type total", "fail", "true or false"),
        ({**RIGHT, "currency": "GBP"}, "field.one_of currency", "fail", "not one of EUR, USD"),
        ({**RIGHT, "tax": 101}, "invoice.tax", "fail", "does not hold"),
        ({**RIGHT, "tax": 101}, "plausible.eur", "not_applicable", "needs invoice.tax"),
        ({**RIGHT, "currency": "USD"}, "plausible.eur", "not_applicable", "when: currency = 'EUR'"),
        ({**RIGHT, "total": 0, "tax": 0}, "invoice.share", "not_applicable", "no value here"),
        ("no object here", "answer.json", "fail", "no JSON object"),
        ("no object here", "invoice.tax", "not_applicable", "needs answer.json"),
        ({**RIGHT, "note": "x" * 30}, "note.short", "fail", "does not hold"),
    ],
)
def test_outcomes(judge, answer, atom, outcome, words):
    found, message = atoms_of(judge(RULES, [answer]), "s000")[atom]
    assert found == outcome
    assert words in message


def test_buckets_and_verdicts(judge):
    run = judge(RULES, [RIGHT, {**RIGHT, "tax": 60}, {**RIGHT, "tax": -1}, "nothing", ""])
    rows = {row: run.record(f"s{row:03d}") for row in range(5)}
    assert [rows[row]["bucket"] for row in range(5)] == ["passed", "passed", "failed", "unparsed", "abstained"]
    assert [rows[row]["verdict"] for row in range(5)] == ["eligible"] * 2 + ["ineligible"] * 3
    assert run.metrics["buckets"]["all"]["n"] == 5
    assert run.metrics["metrics"]["pass_rate"] == 0.4


def test_a_failed_call_is_no_answer_that_cannot_be_read(judge):
    texts = ["502 Bad Gateway", '{"error": {"message": "overloaded"}}', '{"why": "fog", "abstain": true}', "I cannot."]
    run = judge(RULES, [RIGHT, *texts])
    rows = [run.record(f"s{row:03d}") for row in range(5)]
    assert [row["bucket"] for row in rows] == ["passed", "errored", "errored", "abstained", "unparsed"]
    failed = [next(atom for atom in row["atoms"] if atom["outcome"] == "fail") for row in rows[1:]]
    assert [atom["rule"] for atom in failed] == ["answer.api_error"] * 2 + ["answer.abstained", "answer.json"]
    assert "the text is that of a failed call" in failed[0]["message"]
    assert verify(run).exit_code == 0


def test_a_row_that_raises_is_an_error_of_that_row_alone(judge):
    rules = """
        adjudge: 1
        fields: {a: number, b: number}
        rules:
          sum.whole: a // b >= 0
          sum.guarded: {check: a // b >= 0, when: b != 0}
    """
    run = judge(rules, [{"a": 4, "b": 2}, {"a": 4, "b": 0}, {"a": -4, "b": 2}])
    atoms = [atoms_of(run, f"s{row:03d}") for row in range(3)]
    assert [each["sum.whole"][0] for each in atoms] == ["pass", "error", "fail"]
    assert "division by zero" in atoms[1]["sum.whole"][1]
    assert [each["sum.guarded"][0] for each in atoms] == ["pass", "not_applicable", "fail"]
    assert run.record("s001")["bucket"] == "errored"


def test_the_example_holds_and_is_refused_once_it_is_altered(tmp_path):
    config = generate(tmp_path / "data", seed=3)
    path = evaluate(protocol("check"), config, Options(out=tmp_path / "run"))
    assert verify(Run(path)).exit_code == 0
    text = (path / "metrics.json").read_text()
    (path / "metrics.json").write_text(text.replace('"passed": ', '"passed": 1', 1))
    assert verify(Run(path)).exit_code == 1


@pytest.mark.parametrize("kind", ["invoices", "tool_calls"])
def test_order_and_workers_change_no_byte(tmp_path, kind):
    config = generate(tmp_path / "data", seed=1, kind=kind)
    first = evaluate(protocol("check"), config, Options(out=tmp_path / "first"))
    for path in map(Path, (*config["outputs"], *config["reference"])):
        rows = path.read_text().splitlines(keepends=True)
        np.random.default_rng(7).shuffle(rows)
        path.write_text("".join(rows))
    config["outputs"].reverse()
    second = evaluate(protocol("check"), config, Options(out=tmp_path / "second", workers=2))
    for name in ("metrics.json", "samples.parquet", "rules.json", "evidence/part-00000.parquet"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_the_front_door(tmp_path):
    config = generate(tmp_path / "data", seed=0, kind="tool_calls")
    run = adjudge.evaluate("check", config, out=tmp_path / "run")
    assert run.metrics["metrics"]["pass_rate"] is not None


def test_stored_answers_are_taken_out_of_their_texts_again(judge):
    run = judge(RULES, [RIGHT, {**RIGHT, "tax": "19"}, "nothing"])
    plan = protocol("check").plan({key: value for key, value in run.manifest.config.items() if key not in ENGINE_KEYS})
    ((part, samples, _),) = run.batches()
    outputs = run.outputs(part, 0)
    assert plan.reread(samples, outputs) == []
    place = samples.column_names.index("answer.tax")
    altered = samples.set_column(place, "answer.tax", pa.array([20.0, None, None]))
    assert plan.reread(altered, outputs) == ["samples.parquet: answer.tax is not what the stored texts hold"]
