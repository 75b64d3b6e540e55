"""The example files, the JSON Schema of rule files, init, diff, SARIF at the line of the output, and the functions page."""

from __future__ import annotations

import duckdb
import jsonschema
import msgspec
import pytest

import adjudge
from adjudge.engine.evaluate import Options, evaluate
from adjudge.errors import ConfigError
from adjudge.protocols.base import protocol
from adjudge.protocols.check import functions
from adjudge.protocols.check.compiled import compiled
from adjudge.protocols.check.diff import difference
from adjudge.protocols.check.document import load, parse
from adjudge.protocols.check.example import KINDS, generate, rule_text
from adjudge.protocols.check.init import first_rules
from adjudge.protocols.check.lint import lint
from adjudge.protocols.check.reading import rule_file
from adjudge.protocols.check.sandbox import Sandbox
from adjudge.report.sarif import sarif
from adjudge.runs.section import published


@pytest.fixture(scope="module")
def sandbox():
    shared = Sandbox()
    yield shared
    shared.close()


@pytest.mark.parametrize("kind", KINDS)
def test_examples_have_no_errors_and_fit_the_schema(kind, sandbox):
    document = parse(rule_text(kind), f"{kind}.yaml")
    assert lint(document, sandbox).errors == []
    jsonschema.validate(document.content, published("adjudge.protocols.check")["check"])


@pytest.mark.parametrize(
    "wrong", [{"adjudge": 2}, {"fields": {"a": {"typ": "number"}}}, {"rules": {"Total": "a > 0"}}, {"x": 1}]
)
def test_the_schema_refuses_what_the_reader_refuses(wrong):
    content = {"adjudge": 1, "fields": {"a": "number"}, "rules": {"a.b": "a > 0"}, **wrong}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, published("adjudge.protocols.check")["check"])
    with pytest.raises(ConfigError):
        rule_file(parse(msgspec.json.encode(content).decode(), "x"))


def test_init_takes_numbers_in_quotes_and_records_inside_an_object(tmp_path, sandbox):
    table, document = tmp_path / "rows.csv", tmp_path / "log.json"
    table.write_text("id,amount,code,S(t)\n1,2.5,007,0\n2,-3e2,012,1\n")
    text = first_rules(str(table))
    assert "amount: {path: $.amount, type: number, lenient: true}  # seen -300 to 2.5, in quotes" in text
    assert "code: {path: $.code, type: text}" in text  # 007 is no number
    assert 'first.rule: "amount >= 0"' in text  # a name that needs no quotes
    document.write_text('{"version": 2, "samples": [{"id": "a", "total": 1}, {"id": "b", "total": 2}]}')
    assert "if the items of `samples` are meant, add --json-path $.samples" in first_rules(str(document))
    inside = first_rules(str(document), "$.samples")
    assert "total: {path: $.total, type: number}  # seen 1 to 2" in inside
    for each in (text, inside):
        assert lint(parse(each, "rules.yaml"), sandbox).errors == []


@pytest.mark.parametrize("kind", ["invoices", "tool_calls"])
def test_init_writes_a_file_that_can_be_used_at_once(tmp_path, kind, sandbox):
    config = generate(tmp_path / "data", seed=0, kind=kind)
    (tmp_path / "rules.yaml").write_text(first_rules(config["outputs"][2]))
    assert lint(load(tmp_path / "rules.yaml"), sandbox).errors == []
    run = evaluate(
        protocol("check"),
        {"outputs": config["outputs"], "rule_file": str(tmp_path / "rules.yaml")},
        Options(out=tmp_path / "run"),
    )
    assert adjudge.load_run(run).metrics["metrics"]["pass_rate"] > 0.5


def test_diff_says_what_a_run_by_the_new_file_would(tmp_path):
    config = generate(tmp_path / "data", seed=2)
    old, new = tmp_path / "data" / "invoices.yaml", tmp_path / "new.yaml"
    text = old.read_text().replace("one_of: [EUR, USD, CHF]", "one_of: [EUR, USD]")
    new.write_text(text.replace("warning: 0.01, critical: 1.0", "warning: 0.01, critical: 5000"))
    before = adjudge.load_run(evaluate(protocol("check"), config, Options(out=tmp_path / "before")))
    after = adjudge.load_run(
        evaluate(protocol("check"), {**config, "rule_file": str(new)}, Options(out=tmp_path / "after"))
    )
    columns = ["sample", "model", "bucket"]
    pairs = zip(before.columns(columns).to_pylist(), after.columns(columns).to_pylist(), strict=True)
    turned = sorted((a["sample"], a["model"], a["bucket"], b["bucket"]) for a, b in pairs if a["bucket"] != b["bucket"])
    found = difference(old, new, before)
    assert turned
    assert found.turned == turned
    assert found.samples == before.metrics["buckets"]["all"]["n"]
    assert difference(old, old, before).turned == []
    with pytest.raises(ConfigError, match="another rule file"):
        difference(new, old, before)


def test_sarif_names_the_line_of_the_output(judge):
    run = judge("adjudge: 1\nfields: {n: number}\nrules: {a.n: n > 0}\n", [{"n": 1}, {"n": -1}, {"n": 2}])
    (result,) = msgspec.json.decode(sarif(run))["runs"][0]["results"]
    assert result["ruleId"] == "a.n"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("outputs.jsonl")
    assert place["region"]["startLine"] == 2


@pytest.mark.parametrize("name", functions.ALLOWED)
def test_every_function_has_an_example_that_runs_and_calls_it(name):
    example = functions.ALLOWED[name]
    assert duckdb.connect().execute(f"SELECT ({example})::VARCHAR").fetchone() is not None


def test_every_example_passes_the_list(sandbox):
    cases = "\n".join(f"  a.f{place}: '{_quoted(example)}'" for place, example in enumerate(functions.ALLOWED.values()))
    file = rule_file(parse(f"adjudge: 1\nfields: {{n: number}}\nrules:\n{cases}\n", "functions.yaml"))
    assert len(compiled(file, sandbox).rules) == len(functions.ALLOWED)


def _quoted(example: str) -> str:
    return f"(({example})::text is not null) or n > 0".replace("'", "''")
