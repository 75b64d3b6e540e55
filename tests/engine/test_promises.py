"""The engine keeps its promises against a protocol that does not: nothing is written, and `verify` finds it too."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from adjudge_example.echo import Echo, EchoPlan

import adjudge
from adjudge.engine.evaluate import Options, evaluate
from adjudge.engine.matching import Matching
from adjudge.engine.verify import verify
from adjudge.errors import PromiseBroken
from adjudge.provenance.canonical import file_digest


@pytest.fixture
def rows(tmp_path, write_lines):
    pairs = [("a", "a"), ("b", "x"), ("c", "c")]
    records = [{"id": f"q{k}", "asked": one, "said": two} for k, (one, two) in enumerate(pairs)]
    return write_lines(tmp_path / "rows.jsonl", records)


def broken(change):
    """The echo protocol, its samples or numbers changed on their way to the engine."""

    class Plan(EchoPlan):
        def judge(self, partition):
            for judged in super().judge(partition):
                yield judged._replace(samples=change(judged.samples)) if change.__name__ != "numbers" else judged

        def finish(self, partials):
            measured = super().finish(partials)
            if change.__name__ == "numbers":
                change(measured)
            return measured

    class Broken(Echo):
        def plan(self, config):
            return Plan(config)

    return Broken()


def replaced(name, values):
    def change(samples):
        column = pa.array(values)
        return samples.set_column(samples.column_names.index(name), name, column)

    return change


def dropped(samples):
    return samples.drop_columns(["verdict"])


@pytest.mark.parametrize(
    "change, words",
    [
        (replaced("cites", [b"\x00", b"\x01", b"\x01"]), "the verdict on echo/q0 cites no evidence (1 of 3 samples)"),
        (replaced("cites", [b"\x01", b"\x03", b"\x01"]), "the verdict on echo/q1 cites an atom that does not exist"),
        (replaced("cites", [b"\x01", b"", b"\x01"]), "cites are not 1 bytes a sample"),
        (replaced("bucket", ["failed", "failed", "passed"]), "the verdict on echo/q0 did not pass, but cites no atom"),
        (replaced("bucket", ["passed", "wrong", "passed"]), "bucket 'wrong' is not one of passed, failed"),
        (replaced("model", ["m", None, "m"]), "column 'model' of the samples is empty on 1 rows"),
        (replaced("sample", [1, 2, 3]), "column 'sample' of the samples is int64, expected text"),
        (dropped, "samples have no column 'verdict'"),
    ],
)
def test_samples_that_break_a_promise_are_not_written(rows, tmp_path, change, words):
    with pytest.raises(PromiseBroken) as caught:
        evaluate(broken(change), {"file": rows}, Options(out=tmp_path / "run"))
    assert words in str(caught.value)
    assert caught.value.exit_code == 4
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def totals(counts):
    def numbers(measured):
        measured.buckets = counts

    return numbers


@pytest.mark.parametrize(
    "counts, words",
    [
        ({"all": {"passed": 1, "failed": 1, "n": 3}}, "buckets of all add up to 2, but n is 3"),
        ({"all": {"passed": 3, "n": 3}}, "buckets of all are not those of its samples"),
        ({"echo": {"passed": 2, "failed": 1, "n": 3}}, "buckets have no row `all`"),
        ({"all": {"passed": 2, "failed": 1, "skipped": 0, "n": 3}}, "'skipped' is not one of passed"),
        (
            {"all": {"passed": 2, "failed": 1, "n": 3}, "other": {"passed": 0, "n": 0}},
            "buckets of other: no sample has that model",
        ),
    ],
)
def test_buckets_that_do_not_add_up_are_not_written(rows, tmp_path, counts, words):
    with pytest.raises(PromiseBroken, match="cannot be written") as caught:
        evaluate(broken(totals(counts)), {"file": rows}, Options(out=tmp_path / "run"))
    assert words in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_six_words_are_written_where_a_protocol_names_two(rows, tmp_path):
    run = adjudge.evaluate("echo", {"file": rows}, out=tmp_path / "run", report=False)
    assert run.metrics["buckets"] == {
        "all": {"passed": 2, "failed": 1, "abstained": 0, "unparsed": 0, "errored": 0, "missing": 0, "n": 3}
    }


def rewrite(path):
    manifest = json.loads((path / "manifest.json").read_text())
    for entry in manifest["files"]:
        entry |= {"bytes": (path / entry["path"]).stat().st_size, "sha256": file_digest(path / entry["path"])}
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_verify_holds_a_plugins_run_to_the_same_promises(rows, tmp_path):
    run = adjudge.evaluate("echo", {"file": rows}, out=tmp_path / "run", report=False)
    assert verify(run).problems == []
    forged = shutil.copytree(run.path, tmp_path / "forged")
    table = pq.read_table(forged / "samples.parquet")
    column = pa.array([b"\x00"] * 3)
    pq.write_table(table.set_column(table.column_names.index("cites"), "cites", column), forged / "samples.parquet")
    rewrite(forged)
    problems = verify(adjudge.load_run(forged)).problems
    assert problems[0] == "samples.parquet: the verdict on echo/q0 cites no evidence (3 of 3 samples)"


def test_rules_that_could_be_applied_nowhere_are_a_note_on_top(tmp_path, write_lines):
    fields = adjudge_flight_fields()
    outputs = write_lines(tmp_path / "outputs.jsonl", [{"id": "a", "model": "m", "response": json.dumps(fields)}])
    gold = write_lines(tmp_path / "reference.jsonl", [{"id": "a", "next_second": fields}])
    config = {"task": "S1", "outputs": [outputs], "reference": [gold], "resamples": 100}
    run = adjudge.evaluate("flight", config, out=tmp_path / "run", report=False)
    (note,) = [note for note in run.metrics["notes"] if "jump_dynamics" in note]
    assert note.startswith("verifier jump_dynamics was nowhere applicable (")
    assert run.metrics["notes"].index(note) == 0
    assert run.manifest.notes[: len(run.metrics["notes"])] == run.metrics["notes"]
    verify(run)


def adjudge_flight_fields():
    from adjudge.protocols.flight.fields import FIELDS

    return dict.fromkeys(FIELDS, 1.0)


def test_roles_that_have_little_in_common_are_a_warning_and_can_be_gated_on(tmp_path, write_lines):
    fields = adjudge_flight_fields()
    outputs = write_lines(
        tmp_path / "outputs.jsonl",
        [{"id": f"a{k}", "model": "m", "response": json.dumps(fields), "latency": 1} for k in range(100)],
    )
    gold = write_lines(tmp_path / "reference.jsonl", [{"id": f"a{k}", "next_second": fields} for k in range(95, 200)])
    config = {"task": "S1", "outputs": [outputs], "reference": [gold], "resamples": 100}
    run = adjudge.evaluate("flight", config, out=tmp_path / "run", report=False, gates=["matched >= 0.99"])
    counts = {name: estimate.value for (name, where), estimate in run.estimates.items() if not where}
    assert counts["matched"] == 5 / 200
    assert (counts["only_in_outputs"], counts["only_in_reference"]) == (95, 100)
    assert run.metrics["pass"] is False
    assert run.metrics["notes"][0] == (
        "only 5 of 200 ids stand in every role of the input (100 in outputs and 105 in reference): "
        "are these files about the same samples?"
    )
    assert "outputs: keys that nothing reads: `latency` (100 %), by their share of the records" in run.manifest.notes
    assert verify(run).problems == []


def test_under_a_limit_only_the_limited_ids_count():
    keys = {"a": pa.chunked_array([["1", "2"]]), "b": pa.chunked_array([["2", "3", "4"]])}
    whole, cut = Matching.of(keys, []), Matching.of(keys, ["a"])
    assert (whole.ids, whole.matched, dict(whole.only_in)) == (4, 1, {"a": 1, "b": 2})
    assert (cut.ids, cut.matched, dict(cut.only_in)) == (2, 1, {"a": 1, "b": 0})
    assert Matching.from_dict(whole.to_dict()) == whole
