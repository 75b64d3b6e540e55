"""pass@k and pass^k against every subset of the attempts."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.errors import StatsError
from adjudge.stats.pass_k import pass_at_k, pass_hat_k

attempts = st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=8)


def enumerated(samples, k, way):
    """The mean over samples of the share of k-subsets that pass, counted one by one."""
    shares = [np.mean([way(chosen) for chosen in combinations(sample, k)]) for sample in samples]
    return float(np.mean(shares))


@given(attempts, st.integers(1, 5))
def test_both_are_the_share_of_subsets(samples, k):
    passed = [sum(sample) for sample in samples]
    assert pass_at_k(passed, [5] * len(samples), k).value == pytest.approx(enumerated(samples, k, any))
    assert pass_hat_k(passed, [5] * len(samples), k).value == pytest.approx(enumerated(samples, k, all))


@given(attempts, st.integers(1, 5))
def test_the_interval_holds_the_value_and_stays_between_0_and_1(samples, k):
    for way in (pass_at_k, pass_hat_k):
        estimate = way([sum(sample) for sample in samples], [5] * len(samples), k)
        assert 0.0 <= estimate.low <= estimate.value + 1e-12
        assert estimate.value - 1e-12 <= estimate.high <= 1.0


def test_the_case_of_the_specification():
    passed = [5, 5, 5, 4, 4, 3, 2, 1, 0, 0]
    assert pass_at_k(passed, [5] * 10, 1).value == pytest.approx(0.58, abs=1e-15)
    assert pass_hat_k(passed, [5] * 10, 3).value == pytest.approx((3 * 10 + 2 * 4 + 1) / (10 * 10), abs=1e-15)


def test_with_one_attempt_it_is_a_wilson_interval_with_student_t():
    estimate = pass_hat_k([1] * 30 + [0] * 70, [1] * 100, 1)
    assert estimate.value == 0.3
    assert estimate.low == pytest.approx(0.2176, abs=2e-3)
    assert estimate.high == pytest.approx(0.3967, abs=2e-3)


def test_too_few_attempts_are_null_and_nonsense_is_refused():
    estimate = pass_at_k([1, 2], [2, 3], 3)
    assert estimate.value is None
    assert estimate.why == "1 of 2 samples have fewer than 3 attempts (the fewest has 2)"
    assert pass_at_k([], [], 1).why == "no samples"
    with pytest.raises(StatsError, match="k is 0"):
        pass_at_k([1], [1], 0)
    with pytest.raises(StatsError, match="more attempts passed"):
        pass_at_k([2], [1], 1)
