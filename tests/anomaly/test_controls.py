"""Controls that can fail."""

from __future__ import annotations

import numpy as np


def outcomes(run):
    assert run.metrics["violations"] == []
    return {item["name"]: item["outcome"] for item in run.metrics["controls"]}


def test_detector_of_the_attack_passes(made, rows):
    rows["score"] = [score + 3.0 * label for score, label in zip(rows["score"], rows["label"], strict=True)]
    assert outcomes(made(rows)) == {
        "permuted_windows": "not_applicable",
        "shifted_windows": "pass",
        "random_detector": "pass",
    }


def test_detector_of_the_flight_keeps_its_auroc_and_fails(made, rows):
    noise = np.random.default_rng(4).random(len(rows["score"]))
    rows["score"] = [x + (3.0 if attack else 0.0) for x, attack in zip(noise.tolist(), rows["attack"], strict=True)]
    run = made(rows)
    assert outcomes(run)["shifted_windows"] == "fail"
    assert any("the scores follow the flight" in note for note in run.metrics["notes"])


def test_detector_below_chance_is_not_tested(made, rows):
    rows["score"] = [score - 3.0 * label for score, label in zip(rows["score"], rows["label"], strict=True)]
    assert outcomes(made(rows))["shifted_windows"] == "not_applicable"
