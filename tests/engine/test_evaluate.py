"""The same inputs give the same bytes, whatever the order, the workers, the files or the compression."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import adjudge
from adjudge.engine import split as splitting


def content(run):
    """Everything but the manifest, which holds the time."""
    return {
        path.relative_to(run.path).as_posix(): path.read_bytes()
        for path in sorted(run.path.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


@pytest.fixture(scope="module", autouse=True)
def many_partitions():
    """Small partitions, so that a small data set has several."""
    before = splitting.ROWS_A_PARTITION
    splitting.ROWS_A_PARTITION = 16
    yield
    splitting.ROWS_A_PARTITION = before


@pytest.fixture(scope="module")
def run(config, tmp_path_factory):
    return adjudge.evaluate("flight", config, report=False, out=tmp_path_factory.mktemp("runs") / "one")


def test_a_run_has_the_files_of_the_design(run):
    names = {path.name for path in run.path.iterdir()}
    assert names == {
        "manifest.json",
        "metrics.json",
        "samples.parquet",
        "evidence",
        "rules.json",
        "charts.json",
        "intake.json",
        "outputs",
        "agent",
        "agent.json",
    }
    assert len(list(run.parts())) == 16
    assert not list(run.path.parent.glob(".*"))


def test_a_rerun_is_byte_identical(run, config, tmp_path):
    assert content(adjudge.evaluate("flight", config, report=False, out=tmp_path / "again")) == content(run)


def test_two_workers_give_the_same_bytes(run, config, tmp_path):
    assert content(adjudge.evaluate("flight", config, report=False, out=tmp_path / "pool", workers=2)) == content(run)


@pytest.mark.parametrize("most", [1, 5, 100])
def test_folding_partials_at_any_time_gives_the_same_bytes(run, config, tmp_path, monkeypatch, most):
    monkeypatch.setattr("adjudge.engine.evaluate.MOST_PARTIALS", most)
    monkeypatch.setattr("adjudge.engine.verify.MOST_PARTIALS", most)
    again = adjudge.evaluate("flight", config, report=False, out=tmp_path / "folded")
    assert content(again) == content(run)
    assert adjudge.verify(again.path).problems == []


def test_shuffled_input_gives_the_same_bytes(run, config, tmp_path):
    shuffled = {}
    for role in ("outputs", "reference"):
        shuffled[role] = []
        for name in config[role]:
            lines = Path(name).read_text(encoding="utf-8").splitlines()
            lines = [lines[k] for k in np.random.default_rng(5).permutation(len(lines))]
            path = tmp_path / Path(name).name
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            shuffled[role].append(str(path))
    again = adjudge.evaluate(
        "flight", {**config, **shuffled, "outputs": shuffled["outputs"][::-1]}, report=False, out=tmp_path / "run"
    )
    assert content(again) == content(run)


def test_one_file_gzip_zstd_json_list_parquet_and_blank_lines_give_the_same_bytes(run, config, tmp_path):
    rows = [
        json.loads(line) for name in config["outputs"] for line in Path(name).read_text(encoding="utf-8").splitlines()
    ]
    lines = [json.dumps(row) for row in rows]
    plain = ("\n\n".join(lines) + "\n").encode()
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + plain)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(plain))
    with pa.CompressedOutputStream(str(tmp_path / "c.zst"), "zstd") as stream:
        stream.write(plain)
    (tmp_path / "d.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "e.parquet")
    for path in sorted(tmp_path.iterdir()):
        again = adjudge.evaluate(
            "flight", {**config, "outputs": [str(path)]}, report=False, out=tmp_path / "runs" / path.name
        )
        assert content(again) == content(run), path.name


def test_another_seed_changes_intervals_and_nothing_else(config, tmp_path, write_lines):
    # Without flights the rows themselves are resampled; four flights would be enumerated, without a seed.
    rows = [json.loads(line) for line in Path(config["reference"][0]).read_text(encoding="utf-8").splitlines()]
    reference = write_lines(tmp_path / "r.jsonl", [{k: v for k, v in row.items() if k != "flight_id"} for row in rows])
    run, other = (
        adjudge.evaluate(
            "flight", {**config, "reference": [reference], "seed": seed}, report=False, out=tmp_path / str(seed)
        )
        for seed in (0, 1)
    )
    assert (other.path / "samples.parquet").read_bytes() == (run.path / "samples.parquet").read_bytes()
    ours, theirs = run.estimates, other.estimates
    assert all(ours[key].value == theirs[key].value for key in ours)
    assert any(ours[key].low != theirs[key].low for key in ours)


def test_buckets_add_up_to_n(run):
    for name, bucket in run.metrics["buckets"].items():
        assert sum(value for key, value in bucket.items() if key != "n") == bucket["n"], name


def test_limit_judges_the_first_records_of_each_file(config, tmp_path):
    run = adjudge.evaluate("flight", config, report=False, out=tmp_path / "limited", limit=3)
    assert run.manifest.config["limit"] == 3
    assert 3 * len(config["outputs"]) <= run.metrics["buckets"]["all"]["n"] <= 15 * len(config["outputs"])
    adjudge.verify(run)


def test_an_existing_run_is_not_replaced_without_force(config, tmp_path):
    first = adjudge.evaluate("flight", config, report=False, out=tmp_path / "run", limit=2)
    before = content(first)
    with pytest.raises(adjudge.OutputError, match="exists already"):
        adjudge.evaluate("flight", config, report=False, out=tmp_path / "run")
    assert content(first) == before
    again = adjudge.evaluate("flight", config, report=False, out=tmp_path / "run", force=True)
    assert again.manifest.config["limit"] is None
    assert content(again) != before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_force_does_not_replace_a_folder_that_is_no_run(config, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(adjudge.OutputError, match="no run of adjudge"):
        adjudge.evaluate("flight", config, report=False, out=tmp_path / "mine", force=True)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_an_input_that_changes_while_it_is_read_is_refused(config, tmp_path, monkeypatch):
    path = tmp_path / "outputs.jsonl"
    shutil.copy(config["outputs"][0], path)
    from adjudge.engine import evaluate as engine

    real = engine.split

    def split_then_touch(*args, **more):
        cut = real(*args, **more)
        with path.open("a") as stream:
            stream.write("\n")
        return cut

    monkeypatch.setattr(engine, "split", split_then_touch)
    with pytest.raises(adjudge.InputError, match="changed while it was being read"):
        adjudge.evaluate("flight", {**config, "outputs": [str(path)]}, report=False, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
