"""Scores of a made-up detector, and a run over them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adjudge

SPLITS = {"train_flights": ["t1"], "val_flights": ["v1", "v2"], "test_flights": ["a", "b", "c"]}


def score_rows(seed: int = 0, *, n: int = 200) -> dict[str, list]:
    """Two validation flights, and three test flights clean and under two attacks; bias is seen, drift is not."""
    random = np.random.default_rng(seed)
    rows: dict[str, list] = {name: [] for name in ("flight", "t", "score", "label", "attack", "magnitude", "seed")}

    def add(flight, attack=None, magnitude=None, lift=0.0):
        label = np.zeros(n, dtype=int)
        if attack:
            label[100:150] = 1
        rows["flight"] += [flight] * n
        rows["t"] += (np.arange(n) / 10).tolist()
        rows["score"] += (random.random(n) + lift * label).tolist()
        rows["label"] += label.tolist()
        rows["attack"] += [attack] * n
        rows["magnitude"] += [magnitude] * n
        rows["seed"] += [None if attack is None else 7] * n

    for flight in ("v1", "v2"):
        add(flight)
    for flight in ("a", "b", "c"):
        add(flight)
        add(flight, "bias", 1.0, 0.0)
        add(flight, "bias", 5.0, 2.0)
        add(flight, "drift", 1.0, 0.0)
    return rows


@pytest.fixture
def made(tmp_path):
    """A function that writes scores and splits, runs the protocol on them and returns the run."""

    def run(rows=None, splits=None, *, out="run", gates=(), **options):
        pq.write_table(pa.table(rows or score_rows()), tmp_path / "scores.parquet")
        (tmp_path / "splits.json").write_text(json.dumps(splits or SPLITS))
        config = {"scores": str(tmp_path / "scores.parquet"), "splits": str(tmp_path / "splits.json")}
        return adjudge.evaluate(
            "anomaly", {**config, "resamples": 500, **options}, out=tmp_path / out, force=True, report=False
        )

    return run


@pytest.fixture
def rows():
    """Fresh rows that a test may change."""
    return score_rows()
