"""The charts show the numbers of the run."""

from __future__ import annotations

import pytest


@pytest.fixture
def run(made):
    return made(
        catalog={
            "bias": {"parameters": {"position_bias_m": [1.0, 5.0]}, "seed": 7},
            "drift": {"parameters": {"position_drift_rate_mps": 1.0}, "seed": 7},
        }
    )


def spec(run, name):
    return next(chart["spec"] for chart in run.charts if chart["name"] == name)


def test_roc_passes_through_recall_at_1_and_5_percent(run):
    values = {row["fpr"]: row for row in spec(run, "roc")["data"]["values"]}
    metrics = run.metrics["metrics"]
    assert values[0.01]["tpr"] == metrics["recall_at_1pct_fpr"]
    assert values[0.05]["tpr"] == metrics["recall_at_5pct_fpr"]
    assert values[1.0]["tpr"] == 1.0
    assert all(row["low"] <= row["tpr"] <= row["high"] for row in values.values())
    assert any(row["low"] < row["high"] for row in values.values())


def test_roc_marks_the_frozen_threshold(run):
    (point,) = spec(run, "roc")["layer"][-1]["data"]["values"]
    assert point == {"fpr": run.metrics["metrics"]["fpr"], "tpr": run.metrics["metrics"]["recall"]}


def test_magnitudes_are_named_by_their_parameter(run):
    values = spec(run, "recall_by_magnitude")["data"]["values"]
    assert {row["attack"] for row in values} == {"bias (position_bias_m)", "drift (position_drift_rate_mps)"}
    assert [row["recall"] for row in values if row["attack"].startswith("drift")] == [
        row["recall"] for row in run.metrics["per_attack"] if row["attack"] == "drift" and row["magnitude"] == 1.0
    ]


def test_timeline_of_the_worst_attack_shows_window_threshold_and_alarms(made, rows):
    # Drift raises six rows of its window, of which the fifth and sixth stand in the alarm.
    for index, (attack, t) in enumerate(zip(rows["attack"], rows["t"], strict=True)):
        if attack == "bias":
            rows["score"][index] += 9 * rows["label"][index]
        if attack == "drift":
            rows["score"][index] = 0.1 + (9.0 if 12.0 <= t < 12.55 else 0.0)
    run = made(rows)
    drawn = spec(run, "worst_attack")
    assert drawn["title"]["text"] == "Worst attack: drift of size 1 on flight a, recall 4%"
    window, line, threshold, alarms = (layer["data"]["values"] for layer in drawn["layer"])
    assert window == [{"from": 10.0, "to": 15.0}]
    assert len(line) == 200
    assert threshold == [{"score": run.metrics["calibration"]["threshold"]}]
    assert alarms == [{"from": 12.4, "to": 12.6}]


def test_latency_says_how_many_were_missed(run):
    assert spec(run, "latency")["title"] == {
        "text": "Latency of 3 detected attacks",
        "anchor": "start",
        "subtitle": "6 missed, not shown",
    }
