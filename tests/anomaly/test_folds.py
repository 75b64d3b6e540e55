"""Leave-one-flight-out: the folds, and what is reported over them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.errors import ConfigError
from adjudge.protocols.anomaly.example import write_example
from adjudge.protocols.anomaly.folds import folds_of
from adjudge.protocols.anomaly.rows import Flight


def test_every_flight_is_test_once_and_in_one_split_of_its_fold():
    flights = [Flight(f"f{k}", np.arange(3.0), {}) for k in range(5)]
    folds = list(folds_of(flights, 2))
    assert [name for name, _ in folds] == ["f0", "f1", "f2", "f3", "f4"]
    for name, parts in folds:
        assert [flight.id for flight in parts["test"]] == [name]
        assert len(parts["val"]) == 2
        assert sorted(flight.id for members in parts.values() for flight in members) == [f.id for f in flights]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The residual detector, whose spread and threshold must be fitted again in every fold."""
    folder = tmp_path_factory.mktemp("folds")
    config = write_example(folder, seed=2, flights=8, seconds=30.0, rate=10.0)
    catalog = {"bias": {"parameters": {"position_bias_m": 20.0}, "duration": 8.0, "seed": 1}}
    options = {"catalog": catalog, "detector": "residual", "resamples": 500, "refit_check": False}
    return adjudge.evaluate(
        "anomaly", {**config, **options, "leave_one_flight_out": True}, out=folder / "run", report=False
    )


def test_fold_numbers_against_the_stored_scores(run):
    from sklearn.metrics import roc_auc_score

    found = run.metrics["leave_one_flight_out"]
    rows = pq.read_table(run.path / "scores.parquet").to_pylist()
    by_fold = {}
    for row in rows:
        by_fold.setdefault(row["fold"], []).append(row)
    assert set(by_fold) == {None, *(f"f{k:02d}" for k in range(8))}
    thresholds = set()
    for fold in found["folds"]:
        own = by_fold[fold["flight"]]
        test = [row for row in own if row["split"] == "test"]
        clean = sorted(row["score"] for row in own if row["split"] == "val")
        assert {row["flight"] for row in test} == {fold["flight"]}
        assert fold["auroc"] == pytest.approx(
            roc_auc_score([row["label"] for row in test], [row["score"] for row in test]), abs=1e-12
        )
        assert fold["threshold"] == clean[len(clean) - 1 - len(clean) // 100]
        thresholds.add(fold["threshold"])
    assert len(thresholds) == 8


def test_mean_and_variance_are_over_the_folds(run):
    found = run.metrics["leave_one_flight_out"]
    values = [fold["auroc"] for fold in found["folds"]]
    over = found["over_folds"]["auroc"]
    assert over == {"folds": 8, "mean": np.mean(values), "variance": np.var(values, ddof=1)}
    precise = [fold["precision"] for fold in found["folds"] if fold["precision"] is not None]
    assert found["over_folds"]["precision"]["folds"] == len(precise)


def test_folds_are_verified(run):
    adjudge.verify(run)
    document = json.loads((run.path / "metrics.json").read_bytes())
    document["leave_one_flight_out"]["over_folds"]["auroc"]["mean"] = 0.99
    (run.path / "metrics.json").write_text(json.dumps(document, indent=2) + "\n")
    with pytest.raises(adjudge.errors.VerificationFailed, match=r"over_folds\.auroc\.mean is 0\.99"):
        adjudge.verify(adjudge.load_run(run.path))


def test_scores_file_has_no_folds(made):
    with pytest.raises(ConfigError, match="leave_one_flight_out needs data"):
        made(leave_one_flight_out=True)
