"""Operating points: the promise is kept, the order of tests is respected, costs are minimal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from adjudge.errors import StatsError
from adjudge.stats.operating_point import cheapest_point, decimal_thresholds, operating_point


def test_the_decimal_grid_falls_and_holds_the_starts():
    grid = decimal_thresholds()
    assert (np.diff(grid) < 0).all()
    assert {0.0, 0.3, 0.5, 0.99, 0.995, 0.9999, 1.0} <= set(grid.tolist())


def test_zero_errors_need_enough_rows():
    # (1 − .05)^k ≤ .05 first at k = 59, with one start.
    def point(k):
        return operating_point(np.full(k, 0.9), np.zeros(k), target=0.05, thresholds=[0.9])

    assert point(58).threshold is None
    assert point(58).why
    found = point(59)
    assert found.threshold == 0.9
    assert found.bound == pytest.approx(1 - 0.05 ** (1 / 59), abs=1e-12)
    assert found.bound <= found.target


def test_the_exact_binomial_test_decides():
    n, target = 400, 0.1
    allowed = max(e for e in range(n) if binom.cdf(e, n, target) <= 0.05)
    for errors, expected in ((allowed, 0.5), (allowed + 1, None)):
        wrong = np.arange(n) < errors
        assert operating_point(np.full(n, 0.6), wrong, target=target, thresholds=[0.5]).threshold == expected


def test_one_start_stops_at_the_first_threshold_that_fails():
    # Perfect at .9 and above, bad between .8 and .9, perfect again below: the lower ones are never reached.
    confidence = np.repeat([0.95, 0.85, 0.75], [200, 200, 5000])
    wrong = np.repeat([False, True, False], [200, 200, 5000])
    grid = [0.9, 0.8, 0.7]
    assert operating_point(confidence, wrong, target=0.05, thresholds=grid).threshold == 0.9
    # A second start below has its own share of the level.
    assert operating_point(confidence, wrong, target=0.05, thresholds=grid, starts=[0.9, 0.7]).threshold == 0.7


def test_a_rejected_threshold_hands_its_level_on():
    # At .5 the p value lies between .025 and .05: rejected only with the level handed on from .9.
    n = 500
    errors = next(e for e in range(n) if 0.025 < binom.cdf(e, n, 0.1) <= 0.05)
    confidence = np.repeat([0.95, 0.6], [300, 200])
    wrong = np.zeros(n, dtype=bool)
    wrong[300 : 300 + errors] = True
    both = operating_point(confidence, wrong, target=0.1, thresholds=[0.9, 0.5], starts=[0.9, 0.5])
    assert both.threshold == 0.5
    wrong = np.zeros(n, dtype=bool)
    wrong[:errors] = True  # now .9 fails, and .5 has only its own half
    alone = operating_point(confidence, wrong, target=0.1, thresholds=[0.9, 0.5], starts=[0.9, 0.5])
    assert alone.threshold is None


def test_slip_rate_is_over_all_rows():
    confidence = np.repeat([0.95, 0.6, 0.2], [100, 100, 800])
    slip = np.zeros(1000, dtype=bool)
    slip[100:200:3] = True  # 34 slips between .6 and .95: 34 % of those answered there, 3.4 % of all
    point = operating_point(confidence, slip, target=0.05, of="all")
    assert point.threshold == 0.0
    assert point.errors == 34
    answered = operating_point(confidence, slip, target=0.05)
    assert answered.threshold > 0.6


@pytest.mark.parametrize(
    "error",
    [lambda c: np.full(c.size, 0.1000001), lambda c: 0.25 * (1 - c) + 0.06, lambda c: np.where(c > 0.9, 0.3, 0.05)],
)
def test_the_promise_is_kept_in_nineteen_of_twenty_calibration_files(error):
    rng = np.random.default_rng(11)
    levels = np.arange(50, 101) / 100
    risk = error(levels)
    broken = 0
    for _ in range(400):
        place = rng.integers(0, levels.size, 800)
        point = operating_point(levels[place], rng.random(800) < risk[place], target=0.1)
        if point.threshold is not None:
            broken += risk[levels >= point.threshold].mean() > 0.1
    assert broken <= 0.05 * 400 + 3 * (400 * 0.05 * 0.95) ** 0.5


def test_no_rows_has_no_threshold():
    assert operating_point([], [], target=0.1).why == "no calibration rows"


@pytest.mark.parametrize(
    "kwargs",
    [
        {"target": 0.0},
        {"target": 0.1, "level": 1.0},
        {"target": 0.1, "of": "some"},
        {"target": 0.1, "thresholds": [0.1, 0.9]},
        {"target": 0.1, "thresholds": []},
        {"target": 0.1, "starts": [0.555]},
        {"target": 0.1, "starts": []},
    ],
)
def test_bad_requests_are_refused(kwargs):
    with pytest.raises(StatsError):
        operating_point([0.5], [1], **kwargs)


def test_bad_columns_are_refused():
    with pytest.raises(StatsError, match="wrong"):
        operating_point([0.5], [2], target=0.1)
    with pytest.raises(StatsError, match="review"):
        cheapest_point([0.5], [1.0], review_cost=float("inf"))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0, 0, 0, 5, 20])), min_size=1, max_size=30),
    st.integers(0, 6),
)
@settings(max_examples=80, deadline=None)
def test_cheapest_point_is_the_least_over_all_thresholds(rows, review):
    confidence = np.array([c / 6 for c, _ in rows])
    cost = np.array([float(k) for _, k in rows])
    point = cheapest_point(confidence, cost, review_cost=review)
    every = {
        threshold: np.where(confidence >= threshold, cost, review).sum() / len(rows) for threshold in {*confidence, 2.0}
    }
    assert point.cost == pytest.approx(min(every.values()), abs=1e-12)
    assert every[2.0 if point.threshold is None else point.threshold] == pytest.approx(point.cost, abs=1e-12)
    assert point.cost_answer_all == pytest.approx(cost.mean(), abs=1e-12)
    assert point.cost_review_all == review


def test_cheapest_point_prefers_answers_at_equal_cost():
    point = cheapest_point([0.9, 0.8], [0.0, 1.0], review_cost=1.0)
    assert (point.threshold, point.answered) == (0.8, 2)
    assert cheapest_point([], [], review_cost=1.0) is None
    assert cheapest_point([0.5], [9.0], review_cost=1.0).threshold is None


def test_where_review_is_cheapest_nothing_is_answered():
    point = cheapest_point([0.9, 0.8, 0.7], [5.0, 5.0, 5.0], review_cost=1.0)
    assert (point.threshold, point.answered, point.cost) == (None, 0, 1.0)
