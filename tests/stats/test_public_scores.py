"""A published detector's confusion counts recomputed from its raw scores, and its ranking against scikit-learn."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

from adjudge.stats import confusion, ranking
from adjudge.stats.ranking_bootstrap import Curve, RankedRows

pytestmark = pytest.mark.realdata
DATA = Path(os.environ.get("ADJUDGE_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
SERIES = "numenta_cpu_utilization_asg_misconfiguration"


@pytest.fixture(scope="module")
def series():
    file = DATA / "reference" / "published.json"
    if not file.exists():
        pytest.skip(f"the public data sets are not at {DATA}; set ADJUDGE_DATA")
    entries = {entry["id"]: entry for entry in json.loads(file.read_text(encoding="utf-8"))}
    with (DATA / "anomaly_nab/results/numenta/realKnownCause" / f"{SERIES}.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    # The first 15 % of the rows, at most 750, are the detector's probation and are not scored.
    scored = rows[min(750, int(0.15 * len(rows))) :]
    scores = np.array([float(row["anomaly_score"]) for row in scored])
    return entries["nab-confusion"][SERIES], scores, np.array([row["label"] == "1" for row in scored])


def test_nab_confusion_at_the_published_threshold(series):
    published, scores, anomalous = series
    answers = np.zeros((2, 5), dtype=int)
    np.add.at(answers, (anomalous.astype(int), (scores >= published["threshold"]).astype(int)), 1)
    assert answers[:, :2].tolist() == [[published["TN"], published["FP"]], [published["FN"], published["TP"]]]
    table = confusion.Confusion(("normal", "anomaly"), answers)
    tp, fp, fn = (published[name] for name in ("TP", "FP", "FN"))
    f1 = confusion.f1(table, "anomaly", seed=1, stream="f1")
    assert f1.value == pytest.approx(2 * tp / (2 * tp + fp + fn), abs=1e-15)


def test_heavily_tied_scores_rank_as_in_scikit_learn(series):
    _, scores, anomalous = series
    assert np.unique(scores).size < scores.size / 2
    assert ranking.auroc(scores, anomalous).value == pytest.approx(metrics.roc_auc_score(anomalous, scores), abs=1e-12)
    rows = RankedRows.of(scores, anomalous, np.arange(scores.size) // 1000, scores.size // 1000 + 1)
    average = ranking.average_precision(rows, seed=1, stream="ap", resamples=5).value
    assert average == pytest.approx(metrics.average_precision_score(anomalous, scores), abs=1e-12)
    fpr, tpr, _ = metrics.roc_curve(anomalous, scores, drop_intermediate=False)
    recall = ranking.recall_at_fpr(Curve.of(*rows.falling, rows.m), 0.01, seed=1, stream="r").value
    assert recall == pytest.approx(tpr[fpr <= 0.01].max(), abs=1e-12)
