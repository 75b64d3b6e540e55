"""Row order, file order, splitting over files, formats and workers change nothing, to the bit."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.protocols.triage.example import generate

SAME = ("metrics.json", "samples.parquet", "charts.json", "rules.json")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("data"), seed=3)


def content(run):
    files = [run.path / name for name in SAME] + sorted((run.path / "evidence").iterdir())
    return [file.read_bytes() for file in files]


@pytest.fixture(scope="module")
def judge(data, tmp_path_factory):
    def run(results, *, workers=1, **more):
        config = {
            "results": [[str(path) for path in results]],
            "manifest": [str(data.manifest)],
            "slices": ["meta.source"],
            "resamples": 100,
            **more,
        }
        return adjudge.evaluate(
            "triage", config, out=tmp_path_factory.mktemp("run") / "run", workers=workers, report=False
        )

    return run


@pytest.fixture(scope="module")
def plain(judge, data):
    return judge(data.results)


def test_file_order(plain, judge, data):
    assert content(judge(data.results[::-1])) == content(plain)


def test_row_order_and_splitting(plain, judge, data, tmp_path):
    lines = [line for path in data.results for line in path.read_text().splitlines(keepends=True)]
    shuffled = lines[::-1][1::2] + lines[::-1][::2]
    parts = []
    for number in range(3):
        parts.append(tmp_path / f"part{number}.jsonl")
        parts[-1].write_text("".join(shuffled[number * 1700 : (number + 1) * 1700]))
    assert content(judge(parts)) == content(plain)


def test_workers(plain, judge, data):
    assert content(judge(data.results, workers=2)) == content(plain)


def test_parquet(plain, judge, data, tmp_path):
    rows = [json.loads(line) for path in data.results for line in path.read_text().splitlines()]
    names = {name: None for row in rows for name in row}
    pq.write_table(pa.Table.from_pylist([names | row for row in rows]), tmp_path / "results.parquet")
    assert content(judge([tmp_path / "results.parquet"])) == content(plain)


def test_plain_csv_has_the_same_figures(tmp_path):
    rows = [
        ("a", "fake", "fake", "0.9"),
        ("b", "real", "fake", "0.6"),
        ("c", "real", "uncertain", ""),
        ("d", "real", "real", "0.7"),
    ]
    with (tmp_path / "r.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("id", "label", "prediction", "confidence"), *rows])
    records = [
        {"id": i, "label": label, "prediction": word, "confidence": float(c) if c else None}
        for i, label, word, c in rows
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    runs = [
        adjudge.evaluate(
            "triage", {"results": [str(tmp_path / name)], "resamples": 100}, out=tmp_path / f"run-{name}", report=False
        )
        for name in ("r.csv", "r.jsonl")
    ]
    assert content(runs[0]) == content(runs[1])
    block = runs[0].metrics["configurations"]["unnamed|no-tools"]["per_trial"]["0"]
    assert block["confusion"] == {"tp": 1, "tn": 1, "fp": 1, "fn": 0}
    assert block["avg_confidence"] == pytest.approx((0.9 + 0.6 + 0.7) / 3)


def test_the_data_set_digest_is_that_of_ids_and_labels(plain, judge, data, tmp_path):
    first = tmp_path / "first.jsonl"
    kept = [line for line in data.results[0].read_text().splitlines(keepends=True) if json.loads(line)["trial"] == 0]
    first.write_text("".join(kept))
    assert judge([first]).manifest.digests["dataset"] == plain.manifest.digests["dataset"]
    changed = tmp_path / "manifest.jsonl"
    rows = [json.loads(line) for line in data.manifest.read_text().splitlines()]
    changed.write_text(
        "".join(json.dumps({**row, "label": "real"} if row["id"] == "img-0000" else row) + "\n" for row in rows)
    )
    without = [line for line in kept if json.loads(line)["id"] != "img-0000"]
    first.write_text("".join(without))
    was = {row["id"]: row["label"] for row in rows}["img-0000"]
    again = judge([first], manifest=[str(changed)])
    assert (again.manifest.digests["dataset"] == plain.manifest.digests["dataset"]) == (was == "real")


def test_generated_data_depends_on_the_seed_alone(data, tmp_path):
    again, other = generate(tmp_path / "again", seed=3), generate(tmp_path / "other", seed=4)
    assert [p.read_bytes() for p in again.results] == [p.read_bytes() for p in data.results]
    assert [p.read_bytes() for p in other.results] != [p.read_bytes() for p in data.results]
