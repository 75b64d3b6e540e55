"""False alarms under a shifted condition."""

from __future__ import annotations

import pytest

from adjudge.errors import InputError

UNKNOWN = "unknown: no shifted condition in the data"


def windy(rows, calm=("v1", "v2", "a", "b"), lift=0.0):
    """Flight c flies in wind, and scores higher by `lift` when clean."""
    rows["wind"] = ["calm" if flight in calm else "strong" for flight in rows["flight"]]
    rows["score"] = [
        score + lift if flight not in calm and attack is None else score
        for score, flight, attack in zip(rows["score"], rows["flight"], rows["attack"], strict=True)
    ]
    return rows


def shifted(run):
    return run.metrics["negative_results"]["shifted_condition"]


def test_condition_that_validation_lacks_is_shifted(made, rows):
    run = made(windy(rows, lift=1.0), shift_column="wind")
    found = shifted(run)
    assert (found["column"], found["calibrated_on"]) == ("wind", ["calm"])
    assert [(item["condition"], item["shifted"], item["flights"]) for item in found["conditions"]] == [
        ("calm", False, 2),
        ("strong", True, 1),
    ]
    calm, strong = found["conditions"]
    # Every score above the threshold from the fifth row on: 196 of 200 rows alarm, in one event of 20 seconds.
    assert strong["fpr"] == 196 / 200
    assert strong["false_alarms_per_hour"] == pytest.approx(3600 / 20)
    assert calm["fpr"] == 0.0
    assert run.estimates["fpr", "wind=strong"].value == 196 / 200


def test_without_a_column_the_line_says_unknown(made, rows):
    assert shifted(made(windy(rows))) == UNKNOWN


def test_conditions_that_validation_has_too_are_not_shifted(made, rows):
    run = made(windy(rows, calm=("v1", "a", "b")), shift_column="wind")
    assert shifted(run) == "unknown: every wind of test is in validation too (calm, strong)"


def test_numbers_are_conditions_too(made, rows):
    rows["gusts"] = [1 if flight == "c" else 0 for flight in rows["flight"]]
    found = shifted(made(rows, shift_column="gusts"))
    assert [(item["condition"], item["shifted"]) for item in found["conditions"]] == [("0", False), ("1", True)]


def test_flight_under_two_conditions_is_refused(made, rows):
    windy(rows)["wind"][450] = "strong"
    with pytest.raises(InputError, match="flight a has more than one value of 'wind'"):
        made(rows, shift_column="wind")


def test_missing_column_is_refused(made):
    with pytest.raises(InputError, match="has no column 'wind'"):
        made(shift_column="wind")
