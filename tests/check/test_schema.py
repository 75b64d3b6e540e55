"""`schema:` of a rule file: one atom a keyword and path, held against the `jsonschema` package."""

from __future__ import annotations

import textwrap

import jsonschema
import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.verify import verify
from adjudge.errors import ConfigError
from adjudge.protocols.check import compiled as compiling
from adjudge.protocols.check.compiled import compiled
from adjudge.protocols.check.diff import difference
from adjudge.protocols.check.document import parse
from adjudge.protocols.check.lint import lint
from adjudge.protocols.check.plan import CheckPlan
from adjudge.protocols.check.reading import rule_file
from adjudge.protocols.check.sandbox import ABSENT, BROKEN, FAILED, OTHER, PASSED, Sandbox
from adjudge.protocols.check.values import as_json
from adjudge.runs.section import published

from .conftest import atoms_of

RULES = """
    adjudge: 1
    fields: {total: number}
    schema:
      type: object
      required: [total, currency]
      additionalProperties: false
      properties:
        total: {type: number, minimum: 0}
        currency: {enum: [EUR, USD]}
        note: {type: [string, "null"], maxLength: 5}
        lines:
          minItems: 1
          items: {$ref: "#/$defs/line"}
      $defs:
        line:
          type: object
          required: [sku]
          properties: {sku: {pattern: "^[A-Z]{2}[0-9]+$"}, qty: {type: integer, exclusiveMinimum: 0}}
"""
GOOD = {"total": 1, "currency": "EUR", "lines": [{"sku": "AB1", "qty": 2}]}


@pytest.fixture(scope="module")
def sandbox():
    shared = Sandbox()
    yield shared
    shared.close()


def file_of(schema):
    content = {"adjudge": 1, "fields": {"a": "json"}, "schema": schema}
    return rule_file(parse(msgspec.json.encode(content).decode(), "rules.yaml"))


def states_of(schema, answers, sandbox):
    """The states of all assertions on answers, by (code, path)."""
    ready = compiled(file_of(schema), sandbox).file
    texts = pa.chunked_array([pa.array([as_json(answer) for answer in answers], pa.string())])
    found = sandbox.validate(texts, [each.request() for each in ready.schema])
    return {(each.code, each.path): found.states[place].tolist() for place, each in enumerate(ready.schema)}


def test_every_answer_has_an_atom_a_keyword_and_path(judge):
    bad = {"total": -3, "lines": [{"sku": "AB1"}, {"sku": "x", "qty": 0}, {"sku": "y", "qty": 1.5}], "more": 1}
    run = judge(RULES, [GOOD, bad, "no answer", {"total": "12", "currency": "EUR"}])
    good, wrong, unparsed, typed = (atoms_of(run, f"s{place:03d}") for place in range(4))
    codes = [code for code in good if code.startswith("schema.")]
    assert {good[code][0] for code in codes if "note" not in code} == {"pass"}
    assert good["schema.max_length $.note"][0] == "not_applicable"
    assert {unparsed[code][0] for code in codes} == {"not_applicable"}
    fails = {code: why for code, (outcome, why) in wrong.items() if outcome == "fail" and code in codes}
    assert set(fails) == {
        "schema.required $",
        "schema.additional_properties $",
        "schema.minimum $.total",
        "schema.pattern $.lines[*].sku",
        "schema.type $.lines[*].qty",
        "schema.exclusive_minimum $.lines[*].qty",
    }
    assert fails["schema.minimum $.total"] == "$.total is -3; the schema asks that $.total is at least 0"
    assert fails["schema.required $"].startswith("$ lacks currency;")
    assert fails["schema.pattern $.lines[*].sku"].startswith('$.lines[1].sku is "x" (and 1 places more);')
    assert typed["schema.type $.total"][0] == "fail"
    assert typed["schema.minimum $.total"][0] == "not_applicable"
    assert verify(run).exit_code == 0
    buckets = [run.record(f"s{place:03d}")["bucket"] for place in range(4)]
    assert buckets[0] != "failed"
    assert buckets[1] == buckets[3] == "failed"


def test_a_stored_answer_that_was_altered_is_seen(judge):
    run = judge(RULES, [GOOD, GOOD])
    plan = CheckPlan({key: run.manifest.config[key] for key in ("outputs", "rule_file")})
    for part, samples, evidence in run.batches():
        assert plan.recheck(samples, evidence) == []
        texts = [text.replace("EUR", "XXX") for text in samples.column("answer_json").to_pylist()]
        place = samples.column_names.index("answer_json")
        altered = samples.set_column(place, "answer_json", pa.array(texts))
        assert any("schema.enum" in problem for problem in plan.recheck(altered, evidence))
        assert plan.reread(altered, run.outputs(part, 0)) == [
            "samples.parquet: answer_json is not what the stored texts hold"
        ]


def test_rows_that_are_answers_are_validated_without_what_stands_beside_them(judge):
    rules = """
        adjudge: 1
        extract: none
        fields: {total: number}
        schema: {properties: {total: {minimum: 0}}, additionalProperties: false}
    """
    rows = [{"id": str(total), "model": "m", "total": total, "response": "x"} for total in (1, -1)]
    run = judge(rules, rows)
    assert atoms_of(run, "1")["schema.additional_properties $"][0] == "fail"  # `response` is not declared
    assert "response" in atoms_of(run, "1")["schema.additional_properties $"][1]
    assert "model" not in atoms_of(run, "1")["schema.additional_properties $"][1]
    assert atoms_of(run, "-1")["schema.minimum $.total"][0] == "fail"
    assert verify(run).exit_code == 0


def test_two_workers_and_shuffled_rows_give_the_same(judge):
    answers = [
        {"id": f"{place:03d}", "model": "m", "response": as_json({**GOOD, "total": place - 20})} for place in range(40)
    ]
    first, second = judge(RULES, answers), judge(RULES, answers[::-1], workers=2)
    for place in range(40):
        assert atoms_of(first, f"{place:03d}") == atoms_of(second, f"{place:03d}")


def test_self_tests_and_diff_know_the_schema(judge, sandbox, tmp_path):
    rules = textwrap.dedent(RULES) + textwrap.dedent("""
        tests:
          - {row: {total: 1, currency: EUR}, fails: []}
          - {row: {total: -1, currency: EUR, lines: [{sku: AB1, qty: 0}]}, fails: [schema.minimum, schema.exclusive_minimum]}
          - {row: {total: 1, currency: CHF}, fails: [schema.required]}
    """)
    errors = lint(parse(rules, "rules.yaml"), sandbox).errors
    assert len(errors) == 2
    assert "schema.required should fail and passes" in errors[0]
    assert "schema.enum fails and is not in `fails`" in errors[1]
    run = judge(RULES, [GOOD, {**GOOD, "total": 7}])
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(textwrap.dedent(RULES))
    new.write_text(textwrap.dedent(RULES).replace("minimum: 0}", "minimum: 5}"))
    assert [turned[0] for turned in difference(old, new, run).turned] == ["s000"]


NAMING = (
    RULES
    + """
    rules:
      invoice.positive: {check: total > 2, needs: [schema.minimum, schema.type]}
      invoice.family: {check: total > 2, needs: [schema]}
    scores: {form: {weights: {schema.type: 2, schema.enum: 1, invoice.positive: 1}}}
    gates: ["schema.type.pass_rate >= 0.5", "score.form >= 0.1"]
"""
)


def test_rules_of_the_schema_are_named_in_needs_scores_and_gates(judge):
    wrong_line = {**GOOD, "lines": [{"sku": "AB1", "qty": "2"}]}
    answers = [{**GOOD, "total": 3}, {**wrong_line, "total": 3}, {**GOOD, "total": 3, "currency": "CHF"}, "no answer"]
    run = judge(NAMING, answers)
    assert atoms_of(run, "s000")["invoice.positive"][0] == "pass"
    assert atoms_of(run, "s001")["schema.type $.lines[*].qty"][0] == "fail"
    for rule in ("invoice.positive", "invoice.family"):
        assert atoms_of(run, "s001")[rule] == ("not_applicable", "not applicable: needs schema.type on $.lines[*].qty")
    assert atoms_of(run, "s002")["invoice.positive"][0] == "pass"
    assert atoms_of(run, "s002")["invoice.family"] == (
        "not_applicable",
        "not applicable: needs schema.enum on $.currency",
    )
    metrics = run.metrics["metrics"]
    assert metrics["schema.type.pass_rate"] == 2 / 3
    assert metrics["schema.enum.pass_rate"] == 2 / 3
    # The second has one of 3 that count (its own rule does not), the third 3 of 4, the last none of 4.
    assert metrics["score.form"] == pytest.approx((1 + 1 / 3 + 3 / 4 + 0) / 4)
    assert run.metrics["pass"] is True
    assert set(run.metrics["gates"]) == {"schema.type.pass_rate >= 0.5", "score.form >= 0.1"}
    assert verify(run).exit_code == 0


@pytest.mark.parametrize(
    "more, message",
    [
        ("rules: {a.b: {check: total > 1, needs: [schema.enumm]}}", "'schema.enumm'. Did you mean 'schema.enum'?"),
        ("rules: {a.b: {check: total > 1, needs: [field.type]}}", "of their types by itself; write what else"),
        ("scores: {s: {weights: {schema.requird: 1}}}", "'schema.requird'. Did you mean 'schema.required'?"),
        ("scores: {s: {weights: {field.type: 1}}}", "counts as failed in a score"),
        ('gates: ["field.type.pass_rate > 0.9"]', "checks of fields have none of their own; gate a rule, or pass_rate"),
        ('gates: ["schema.typ.pass_rate > 0.9"]', "Did you mean 'schema.type.pass_rate'?"),
    ],
)
def test_names_that_are_none_say_what_to_write_instead(more, message, sandbox):
    document = parse(textwrap.dedent(RULES) + more + "\n", "rules.yaml")
    (error,) = lint(document, sandbox).errors
    assert error.startswith("rules.yaml:20: ")
    assert message in error


def test_the_schema_of_rule_files_knows_it():
    jsonschema.validate(parse(textwrap.dedent(RULES), "x").content, published("adjudge.protocols.check")["check"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            {"adjudge": 1, "fields": {"a": "number"}, "schema": 3}, published("adjudge.protocols.check")["check"]
        )


BAD = [
    ({"$ref": "https://example.org/s.json"}, "only places of the same schema"),
    ({"$ref": "file:///etc/passwd"}, "only places of the same schema"),
    ({"$ref": "other.json#/a"}, "only places of the same schema"),
    ({"$ref": "#"}, "leads to itself"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a"}}}}}, "leads to itself"),
    ({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}, "leads to itself"),
    ({"$ref": "#/$defs/lime", "$defs": {"line": {}}}, "Did you mean 'line'?"),
    ({"properties": {"a": {"minimun": 3}}}, "Did you mean 'minimum'?"),
    ({"anyOf": [{"properties": {"a": {"minimun": 3}}}]}, "Did you mean 'minimum'?"),
    ({"format": "date"}, "write `pattern`"),
    ({"unevaluatedProperties": False}, "write `additionalProperties`"),
    ({"$dynamicRef": "#a"}, "write `$ref"),
    ({"pattern": "(?=a)b"}, "look-arounds and back-references"),
    ({"pattern": "(a)\\1"}, "look-arounds and back-references"),
    ({"pattern": "(a{1000}){1000}"}, "cannot be used"),
    ({"patternProperties": {"(?!a)b": True}}, "cannot be used"),
    ({"not": {"pattern": "(?<=a)b"}}, "cannot be used"),
    ({"type": "numbr"}, "cannot be used"),
    ({"type": [None, "string"]}, 'write "null"'),
    ({"minimum": "3"}, "cannot be used"),
    ({"required": "a"}, "cannot be used"),
    ({"items": [{"type": "number"}]}, "`prefixItems`"),
    ({"then": {}}, "goes with `if`"),
    ({"minContains": 1}, "goes with `contains`"),
    ({"properties": {"a": {"$id": "x", "type": "number"}}}, "leave it out"),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}, "these are read"),
    (
        {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/$defs/a", "minimum": 1, "$defs": {"a": {}}},
        "draft 7",
    ),
    ({"title": "nothing"}, "asks nothing"),
    ({"properties": 3}, "expected a table"),
    ({"anyOf": []}, "expected a list"),
    ("https://example.org/s.json", "expected a schema"),
    ({"properties": {f"p{place}": {"type": "number"} for place in range(501)}}, "more than 500"),
    (
        {
            "$ref": "#/$defs/l0",
            "$defs": {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 4} for n in range(9)}
            | {"l9": {"minimum": 1}},
        },
        "more than 5000 parts",
    ),
]


@pytest.mark.parametrize("schema, message", BAD)
def test_what_is_not_taken_is_refused_by_name_and_line(schema, message, sandbox):
    with pytest.raises(ConfigError) as error:
        compiled(file_of(schema), sandbox)
    assert message in str(error.value)
    assert str(error.value).startswith("rules.yaml:1: schema")


def test_the_family_is_ours():
    with pytest.raises(ConfigError, match="the family 'schema' is ours"):
        rule_file(parse('{"adjudge": 1, "fields": {"a": "number"}, "rules": {"schema.a": "a > 0"}}', "x"))


def test_without_the_package_it_says_what_to_install(monkeypatch, sandbox):
    monkeypatch.setattr(compiling, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'adjudge\[check\]'"):
        compiled(file_of({"type": "object"}), sandbox)


def test_a_pattern_that_would_backtrack_and_deep_answers_come_to_an_end(sandbox):
    deep = 1
    for _ in range(400):
        deep = [deep]
    schema = {"properties": {"a": {"pattern": "^(a+)+$"}, "b": {"uniqueItems": True}}}
    found = states_of(schema, [{"a": "a" * 50_000 + "b"}, {"b": deep}, {"b": [10**60, 10**60]}], sandbox)
    assert found["schema.pattern", "$.a"] == [FAILED, ABSENT, ABSENT]
    assert found["schema.unique_items", "$.b"][0] == ABSENT
    assert found["schema.unique_items", "$.b"][1] in {PASSED, BROKEN}
    assert found["schema.unique_items", "$.b"][2] == FAILED


def test_assertions_of_one_keyword_and_path_are_one_atom(sandbox):
    schema = {
        "allOf": [{"properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"minimum": 3}}}],
        "minProperties": 1,
    }
    found = states_of(schema, [{"a": 2}, {"a": 3}, {"a": "x"}, {}], sandbox)
    assert found["schema.minimum", "$.a"] == [FAILED, PASSED, OTHER, ABSENT]
    assert found["schema.min_properties", "$"] == [PASSED, PASSED, PASSED, FAILED]


_keys = st.sampled_from(["a", "b", "c"])
_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-4, 4), st.sampled_from([0.5, 1.0, -2.0]), st.text("abé", max_size=4)
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_keys, inner, max_size=3)),
    max_leaves=8,
)
_types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
_small = st.integers(0, 3)
_plain = {
    "type": st.one_of(_types, st.lists(_types, min_size=1, max_size=3, unique=True)),
    "enum": st.lists(_scalars, min_size=1, max_size=3),
    "const": _scalars,
    "minimum": st.integers(-3, 3),
    "maximum": st.integers(-3, 3),
    "exclusiveMinimum": st.integers(-3, 3),
    "exclusiveMaximum": st.integers(-3, 3),
    "multipleOf": st.integers(1, 3),
    "minLength": _small,
    "maxLength": _small,
    "pattern": st.sampled_from(["^a", "b$", "a|b", "^[ab]{2}$", "é"]),
    "minItems": _small,
    "maxItems": _small,
    "uniqueItems": st.booleans(),
    "required": st.lists(_keys, max_size=2, unique=True),
    "minProperties": _small,
    "maxProperties": _small,
    "dependentRequired": st.dictionaries(_keys, st.lists(_keys, max_size=2, unique=True), max_size=2),
    "propertyNames": st.sampled_from([{"pattern": "^[ab]$"}, {"maxLength": 0}, True]),
}


def _schemas(inner):
    parts = {
        "properties": st.dictionaries(_keys, inner, max_size=3),
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b|c"]), inner, max_size=2),
        "contains": inner,
        "not": inner,
        **{key: st.lists(inner, min_size=1, max_size=2) for key in ("anyOf", "oneOf", "allOf")},
        "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"]),
    }
    whole = st.fixed_dictionaries({}, optional={**parts, **_plain})
    choice = st.fixed_dictionaries({"if": inner, "then": inner}, optional={"else": inner})
    return st.one_of(whole, whole, choice, st.booleans())


_leaf = st.fixed_dictionaries({}, optional=_plain)
_any_schema = _schemas(st.recursive(_leaf, _schemas, max_leaves=4))


@settings(max_examples=200, deadline=None)
@given(
    schema=_any_schema,
    one=_leaf,
    two=_leaf,
    answers=st.lists(st.dictionaries(_keys, _values, max_size=3), min_size=1, max_size=5),
)
def test_an_answer_fails_where_jsonschema_finds_it_invalid(sandbox, schema, one, two, answers):
    """Of every schema and answer: an assertion fails if and only if the answer is not valid; none is broken."""
    table = schema if isinstance(schema, dict) else {"allOf": [schema]}
    whole = {**table, "$defs": {"one": one, "two": two}}
    oracle = jsonschema.Draft202012Validator(whole)
    oracle.check_schema(whole)
    valid = [oracle.is_valid(answer) for answer in answers]
    try:
        found = states_of(whole, answers, sandbox)
    except ConfigError as error:
        assert "asks nothing" in str(error)  # noqa: PT017 -- the only reason there is
        assert all(valid)
        return
    columns = list(zip(*found.values(), strict=True))
    assert [FAILED not in column for column in columns] == valid
    assert all(BROKEN not in column for column in columns)


@settings(max_examples=100, deadline=None)
@given(assertion=st.sampled_from(sorted(_plain)), data=st.data(), value=_values)
def test_one_keyword_at_one_path_is_what_jsonschema_says_of_it(sandbox, assertion, data, value):
    schema = {assertion: data.draw(_plain[assertion])}
    nested = {"properties": {"a": {"items": {"properties": {"b": schema}}}}}
    states = next(iter(states_of(nested, [{"a": [{"b": value}, {}]}, {"a": []}, {"b": value}], sandbox).values()))
    assert states[1:] == [ABSENT, ABSENT]
    assert (states[0] == FAILED) == (not jsonschema.Draft202012Validator(schema).is_valid(value))
    assert states[0] in {OTHER, PASSED, FAILED}
