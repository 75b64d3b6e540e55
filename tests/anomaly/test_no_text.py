"""Words of a scores file that are not UTF-8: refused with the column, and in CSV with the line."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.errors import InputError

ROWS = [(flight, t, 0.5, 0, "none") for flight in ("a", "b", "c") for t in range(3)]


def evaluate(tmp_path, scores):
    splits = {"train_flights": ["a"], "val_flights": ["b"], "test_flights": ["c"]}
    (tmp_path / "splits.json").write_text(json.dumps(splits))
    config = {"scores": str(scores), "splits": str(tmp_path / "splits.json")}
    return adjudge.evaluate("anomaly", config, out=tmp_path / "run", report=False)


@pytest.mark.parametrize("column, place", [("flight", 0), ("attack", 4)])
def test_csv_that_is_not_utf8(tmp_path, column, place):
    lines = [",".join(map(str, row)).encode() for row in ROWS]
    cells = lines[4].split(b",")
    cells[place] = b"caf\xe9"
    lines[4] = b",".join(cells)
    path = tmp_path / "scores.csv"
    path.write_bytes(b"\n".join([b"flight,t,score,label,attack", *lines]) + b"\n")
    with pytest.raises(InputError, match=rf"scores.csv:6: column '{column}' holds text that is not UTF-8"):
        evaluate(tmp_path, path)


def test_bytes_in_parquet(tmp_path):
    table = pa.table(dict(zip(("flight", "t", "score", "label", "attack"), zip(*ROWS, strict=True), strict=True)))
    attack = pa.array([b"\xff"] * len(ROWS), pa.binary())
    pq.write_table(table.set_column(4, "attack", attack), tmp_path / "scores.parquet")
    with pytest.raises(InputError, match=r"column 'attack' is binary, expected words"):
        evaluate(tmp_path, tmp_path / "scores.parquet")
    flights = pa.array([row[0].encode() + b"\xff" for row in ROWS], pa.binary())
    pq.write_table(table.set_column(0, "flight", flights), tmp_path / "scores.parquet")
    with pytest.raises(InputError, match=r"column 'flight' is binary, expected words"):
        evaluate(tmp_path, tmp_path / "scores.parquet")
