"""A run that was altered does not hold; the command says what the engine does."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.main import main
from adjudge.engine.verify import verify
from adjudge.errors import AdjudgeError
from adjudge.protocols.base import protocol
from adjudge.provenance.canonical import file_digest, pretty


@pytest.fixture
def run(judge, cells):
    return judge(
        cells(
            (20, "fake", "fake", 0.8),
            (5, "fake", "real", 0.7),
            (5, "real", "uncertain", 0.5),
            (20, "real", "real", 0.9),
        )
    )


def rewrite(path: Path, change) -> None:
    """Change a Parquet file and keep its row groups."""
    file = pq.ParquetFile(path)
    groups = [change(file.read_row_group(index)) for index in range(file.num_row_groups)]
    with pq.ParquetWriter(path, groups[0].schema) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(1, group.num_rows))


def seal(run: adjudge.Run) -> None:
    """Rewrite every digest of the manifest so that it fits the files."""
    manifest = json.loads((run.path / "manifest.json").read_text())
    for entry in manifest["files"]:
        path = run.path / entry["path"]
        entry["bytes"], entry["sha256"] = path.stat().st_size, file_digest(path)
    (run.path / "manifest.json").write_bytes(pretty(manifest))


def replaced(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), table.schema.field(name), values)


def words(column: pa.ChunkedArray, old: str, new: str) -> pa.Array:
    plain = column.cast(pa.string()).to_pylist()
    plain[plain.index(old)] = new
    return pa.array(plain).dictionary_encode().cast(column.type)


def test_a_run_holds(run):
    assert verify(run).problems == []


@pytest.mark.parametrize(
    "column, old, new",
    [
        ("verdict", "wrong", "right"),
        ("bucket", "failed", "passed"),
        ("answer", "real", "fake"),
        ("label", "fake", "real"),
    ],
)
def test_an_altered_sample_does_not_hold_even_when_resealed(run, column, old, new):
    rewrite(run.path / "samples.parquet", lambda table: replaced(table, column, words(table.column(column), old, new)))
    seal(run)
    assert verify(adjudge.load_run(run.path)).problems


def test_altered_confidences_do_not_hold_even_when_resealed(run):
    rewrite(
        run.path / "samples.parquet",
        lambda table: replaced(table, "confidence", pc.multiply(table.column("confidence"), 0.9)),
    )
    seal(run)
    problems = verify(adjudge.load_run(run.path)).problems
    assert any("metrics.json" in problem and "brier" in problem for problem in problems)


def test_altered_evidence_does_not_hold_even_when_resealed(run):
    part = run.path / "evidence" / "part-00000.parquet"
    rewrite(part, lambda table: replaced(table, "outcome", words(table.column("outcome"), "fail", "pass")))
    seal(run)
    assert any("evidence/part-00000.parquet" in problem for problem in verify(adjudge.load_run(run.path)).problems)


def test_an_altered_number_does_not_hold_even_when_resealed(run):
    path = run.path / "metrics.json"
    metrics = json.loads(path.read_text())
    metrics["configurations"]["m|no-tools"]["per_trial"]["0"]["accuracy"] = 0.99
    path.write_bytes(pretty(metrics))
    seal(run)
    assert any("accuracy is 0.99" in problem for problem in verify(adjudge.load_run(run.path)).problems)


def test_a_file_that_was_touched(run):
    with (run.path / "metrics.json").open("ab") as stream:
        stream.write(b" ")
    with pytest.raises(adjudge.VerificationFailed, match="its content is not the one in the manifest"):
        adjudge.verify(run.path)


def test_the_example_runs_and_holds(tmp_path):
    config = protocol("triage").example(tmp_path / "data", 1)
    found = adjudge.evaluate("triage", {**config, "resamples": 100}, out=tmp_path / "run", report=False)
    assert list(found.metrics["configurations"]) == [
        "hawk-1|no-tools", "hawk-1|tools", "wren-mini|no-tools", "wren-mini|tools"
    ]  # fmt: skip
    for block in found.metrics["configurations"].values():
        assert list(block["per_trial"]) == ["0", "1", "2"]
        mean = block["summary"]["mean"]
        assert mean["avg_confidence"] > mean["accuracy_answered"]
    assert found.metrics["buckets"]["all"]["missing"] == 0
    assert found.metrics["buckets"]["all"]["errored"] > 20
    assert {chart["name"] for chart in found.charts} == {
        "confusion",
        "reliability",
        "risk_coverage",
        "scores",
        "latency",
        "latency_components",
    }
    adjudge.verify(found)


def command(*words: object):
    quick = [] if words[0] == "generate" else ["--no-report"]
    return CliRunner().invoke(main, ["triage", *map(str, words), *quick], standalone_mode=False)


def test_json_is_the_metrics_file(tmp_path, record, write_lines):
    path = write_lines(tmp_path / "r.jsonl", [record(0, "fake", "fake"), record(1, "real", "fake")])
    result = command("--results", path, "--out", tmp_path / "run", "--json")
    assert result.exception is None
    assert result.stdout_bytes == (tmp_path / "run" / "metrics.json").read_bytes()


def test_files_after_one_flag_are_one_run_and_a_second_flag_is_another(tmp_path, record, write_lines):
    a = write_lines(tmp_path / "a.jsonl", [record(0, "fake", "fake")])
    b = write_lines(tmp_path / "b.jsonl", [record(1, "real", "real")])
    c = write_lines(tmp_path / "c.jsonl", [record(0, "fake", "real")])
    result = command("--results", a, b, "--results", c, "--out", tmp_path / "run", "--quiet")
    assert result.exception is None
    blocks = adjudge.load_run(tmp_path / "run").metrics["configurations"]
    assert {key: block["per_trial"]["0"]["total"] for key, block in blocks.items()} == {
        "m|no-tools": 2,
        "c|m|no-tools": 1,
    }


def test_unparsed_words_and_bad_confidences_are_named_with_file_and_line(tmp_path, record, write_lines):
    rows = [
        record(0, "fake", "fake"),
        record(1, "real", "dunno"),
        record(2, "real", "real", 1.2),
        record(3, "real", "real", "87%"),
    ]
    path = write_lines(tmp_path / "r.jsonl", rows)
    result = command("--results", path, "--bad-confidence", "count", "--out", tmp_path / "run", "--json")
    assert result.exception is None
    said = result.stderr.splitlines()
    assert f"{path}:2: id 's0001': verdict 'dunno' is no declared word: unparsed (--word declares one more)" in said
    assert f"{path}:3: id 's0002': confidence 1.2 is not between 0 and 1: not used" in said
    assert f"{path}:4: id 's0003': confidence '87%' is no number: not used" in said


def test_a_gate_that_fails_is_exit_code_1(tmp_path, record, write_lines):
    path = write_lines(tmp_path / "r.jsonl", [record(0, "fake", "fake"), record(1, "real", "fake")])
    gate = "m|no-tools/accuracy >= 0.9"
    assert command("--results", path, "--gate", gate, "--quiet", "--out", tmp_path / "a").return_value == 1
    gate = "m|no-tools/accuracy >= 0.5"
    assert command("--results", path, "--gate", gate, "--quiet", "--out", tmp_path / "b").return_value == 0


@pytest.mark.parametrize(
    "words, said",
    [
        (["--costs", "slip=1,flag=2"], "review is missing"),
        (["--costs", "slip=1,flag=x,review=1"], "expected slip=NUMBER"),
        (["--word", "fishy"], "is not of the form WORD=CLASS"),
        (["--target-risk", "0.1"], "needs a calibration file"),
    ],
)
def test_wrong_flags(tmp_path, record, write_lines, words, said):
    path = write_lines(tmp_path / "r.jsonl", [record(0, "fake", "fake")])
    result = command("--results", path, *words, "--out", tmp_path / "run")
    assert isinstance(result.exception, AdjudgeError)
    assert said in str(result.exception)


def test_generate_and_judge_as_the_help_says(tmp_path):
    assert command("generate", "--out", tmp_path).exception is None
    again = command("generate", "--out", tmp_path)
    assert "exists already" in str(again.exception)
    files = sorted(tmp_path.glob("results_*.jsonl"))
    result = command(
        "--results", *files, "--manifest", tmp_path / "manifest.jsonl", "--calibration", tmp_path / "calibration.jsonl",
        "--costs", "slip=10,flag=3,review=1", "--out", tmp_path / "run", "--quiet",
    )  # fmt: skip
    assert result.exception is None
    blocks = adjudge.load_run(tmp_path / "run").metrics["configurations"]
    assert all(block["per_trial"]["0"]["operating_point"]["cost"] > 0 for block in blocks.values())
