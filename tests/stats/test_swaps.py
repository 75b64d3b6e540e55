"""The swap test against every swap done by hand, against sign flips, and where it must be null."""

import itertools

import numpy as np
import pytest

from adjudge.errors import StatsError
from adjudge.stats.paired import sign_flip, swap_test


def ratio(sums):
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)


def mean(sums):
    return sums[:, 0] / sums[:, 1]


def by_hand(first, second, function):
    """Every assignment of the two systems to the two sides, one unit at a time."""
    gaps = []
    for swaps in itertools.product((False, True), repeat=len(first)):
        a = sum(np.array(second[i] if swap else first[i], float) for i, swap in enumerate(swaps))
        b = sum(np.array(first[i] if swap else second[i], float) for i, swap in enumerate(swaps))
        gaps.append(abs(function(b[None, :])[0] - function(a[None, :])[0]))
    return np.mean([np.isnan(gap) or gap >= gaps[0] - 1e-12 for gap in gaps])


@pytest.mark.parametrize("seed", range(6))
def test_exact_p_is_that_of_every_swap(seed):
    random = np.random.default_rng(seed)
    first, second = random.integers(0, 3, size=(2, 7, 2)).astype(float)
    first[:, 1] += first[:, 0]
    second[:, 1] += second[:, 0]
    found = swap_test(first, second, ratio, seed=0)
    assert found.p == pytest.approx(by_hand(first, second, ratio))
    assert (found.method, found.seed) == ("swap, all patterns, clusters", None)


def test_of_a_mean_it_is_the_sign_flip_test():
    random = np.random.default_rng(1)
    a, b = random.normal(size=(2, 12))
    counts = [np.stack([values, np.ones(12)], axis=1) for values in (a, b)]
    assert swap_test(*counts, mean, seed=0).p == pytest.approx(sign_flip(b - a, seed=0).p)


def test_drawn_p_is_near_the_exact_one_of_sign_flips_and_never_0():
    random = np.random.default_rng(2)
    a = random.normal(size=400)
    b = a + random.normal(0.1, 1.0, size=400)
    counts = [np.stack([values, np.ones(400)], axis=1) for values in (a, b)]
    drawn = swap_test(*counts, mean, seed=3)
    assert drawn.p == pytest.approx(sign_flip(b - a, seed=3).p, abs=0.01)
    assert (drawn.seed, drawn.method) == (3, "swap, 20000 patterns, clusters")
    apart = swap_test(counts[0], counts[0] + [5.0, 0.0], mean, seed=3)
    assert apart.p == pytest.approx(1 / 20001)


def test_row_order_changes_nothing():
    random = np.random.default_rng(4)
    first, second = random.integers(0, 2, size=(2, 300, 1)).astype(float)
    first, second = (np.hstack([side, np.ones((300, 1))]) for side in (first, second))
    order = random.permutation(300)
    assert swap_test(first, second, ratio, seed=0) == swap_test(first[order], second[order], ratio, seed=0)


def test_false_alarms_are_rare_under_no_difference():
    """F1 of two systems that are the same but for luck: p ≤ .05 in about 5 % of studies."""
    random = np.random.default_rng(5)
    alarms = 0
    for _ in range(200):
        label = random.random(60) < 0.5
        said = [label ^ (random.random(60) < 0.3) for _ in range(2)]
        counts = [np.stack([2.0 * (label & s), 1.0 * label + s], axis=1) for s in said]
        alarms += swap_test(*counts, ratio, seed=0, resamples=500).p <= 0.05
    assert alarms <= 20


def test_null_where_there_is_nothing():
    empty = np.zeros((0, 2))
    assert swap_test(empty, empty, ratio, seed=0).why == "no pairs"
    none, some = np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])
    assert "undefined for one of the two" in swap_test(none, some, ratio, seed=0).why
    assert swap_test(some, some, ratio, seed=0).p == 1.0
    with pytest.raises(StatsError, match="one shape"):
        swap_test(none, np.zeros((2, 2)), ratio, seed=0)
