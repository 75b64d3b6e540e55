"""The operating point is chosen on the calibration file and applied to the test."""

from __future__ import annotations

import pytest

from adjudge.stats.operating_point import cheapest_point, operating_point

KEY = "m|no-tools"


@pytest.fixture
def calibration(record, tmp_path, write_lines):
    """500 records: those at .9 and above are right 99 % of the time, those below half of the time."""
    rows = []
    for n in range(500):
        sure = n % 2 == 0
        right = n % 200 != 0 if sure else n % 4 == 1
        label = "fake" if n % 3 else "real"
        other = "real" if label == "fake" else "fake"
        rows.append({**record(n, label, label if right else other, 0.95 if sure else 0.6), "id": f"c{n}"})
    rows.append({**record(0, "fake", "uncertain", 0.5), "id": "c-unsure"})
    rows.append({**record(0, "fake", "fake", None), "id": "c-mute"})
    return rows, write_lines(tmp_path / "calibration.jsonl", rows)


@pytest.fixture
def test_rows(record):
    return [record(n, "fake" if n % 2 else "real", "fake", 0.95 if n < 10 else 0.6) for n in range(40)]


def test_the_threshold_is_that_of_the_calibration_rows(judge, calibration, test_rows, trial):
    rows, path = calibration
    run = judge(test_rows, calibration=[path], target_risk=0.05)
    use = [row for row in rows if row["prediction"] != "uncertain" and row["confidence"] is not None]
    expected = operating_point(
        [row["confidence"] for row in use], [row["prediction"] != row["label"] for row in use], target=0.05
    )
    assert expected.threshold == pytest.approx(0.61)
    chosen = run.metrics["operating_points"][KEY]
    assert (chosen["threshold"], chosen["bound"], chosen["n"]) == (expected.threshold, expected.bound, 500)
    applied = trial(run)["operating_point"]
    assert (applied["threshold"], applied["answered"]) == (expected.threshold, 10)
    assert applied["coverage"]["value"] == 0.25
    assert applied["error_answered"]["value"] == 0.5
    assert applied["real_false_flag_rate"]["value"] == 5 / 20
    assert applied["fake_slip_rate"]["value"] == 0.0


def test_the_choice_does_not_look_at_the_test(judge, calibration, test_rows, record):
    _, path = calibration
    one = judge(test_rows, calibration=[path], target_risk=0.05)
    other = judge([record(n, "real", "fake", 0.99) for n in range(30)], calibration=[path], target_risk=0.05)
    assert one.metrics["operating_points"] == other.metrics["operating_points"]


def test_slip_rate_is_over_all_fakes(judge, calibration, test_rows):
    rows, path = calibration
    run = judge(test_rows, calibration=[path], target_risk=0.02, risk="slip")
    fakes = [row for row in rows if row["label"] == "fake"]
    confidence = [
        row["confidence"] if row["prediction"] != "uncertain" and row["confidence"] else -1.0 for row in fakes
    ]
    expected = operating_point(confidence, [row["prediction"] == "real" for row in fakes], target=0.02, of="all")
    assert run.metrics["operating_points"][KEY]["threshold"] == expected.threshold
    assert run.metrics["operating_points"][KEY]["n"] == len(fakes)


def test_least_cost(judge, calibration, test_rows, trial):
    rows, path = calibration
    costs = {"slip": 10.0, "flag": 3.0, "review": 1.0}
    run = judge(test_rows, calibration=[path], costs=costs)
    use = [row for row in rows if row["prediction"] != "uncertain" and row["confidence"] is not None]
    cost = [0.0 if r["prediction"] == r["label"] else 10.0 if r["label"] == "fake" else 3.0 for r in use]
    expected = cheapest_point([r["confidence"] for r in use], cost, review_cost=1.0)
    assert expected is not None
    assert run.metrics["operating_points"][KEY]["threshold"] == expected.threshold == 0.95
    assert trial(run)["operating_point"]["cost"] == pytest.approx((5 * 3.0 + 30 * 1.0) / 40)


def test_another_model_has_no_operating_point(judge, calibration, record, trial):
    _, path = calibration
    run = judge([record(n, "fake", "fake", model="n") for n in range(5)], calibration=[path], target_risk=0.05)
    assert trial(run, "n|no-tools")["operating_point"] == {
        "threshold": None,
        "why": "the calibration files do not have this configuration",
    }


def test_a_target_out_of_reach_is_null_with_the_reason(judge, record, test_rows, tmp_path, write_lines, trial):
    path = write_lines(tmp_path / "few.jsonl", [{**record(n, "fake", "fake"), "id": f"c{n}"} for n in range(5)])
    applied = trial(judge(test_rows, calibration=[path], target_risk=0.01))["operating_point"]
    assert applied["threshold"] is None
    assert "so few rows" in applied["why"]


def test_trials_of_a_calibration_sample_count_once(judge, calibration, test_rows, tmp_path, write_lines):
    rows, path = calibration
    again = write_lines(tmp_path / "twice.jsonl", [{**row, "trial": t} for row in rows for t in (1, 0)])
    one = judge(test_rows, calibration=[path], target_risk=0.05)
    two = judge(test_rows, calibration=[again], target_risk=0.05)
    assert one.metrics["operating_points"] == two.metrics["operating_points"]
