"""Power: textbook sample sizes, statsmodels' t tests, and simulations of the tests themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower

from adjudge.errors import StatsError
from adjudge.stats.paired import mcnemar_chi2
from adjudge.stats.power import (
    detectable_mean,
    detectable_paired_proportions,
    pairs_needed,
    rows_needed_mean,
)


def test_textbook_sample_sizes():
    # A paired t test with d = .5, α = .05 two-sided and power .80 needs 34 pairs (statsmodels: 33.37).
    assert rows_needed_mean(0.5, 1.0).value == 34
    # Connor 1987: (1.95996·√.3 + .84162·√.29)²/.01 = 233.06.
    assert pairs_needed(0.1, 0.3).value == 234


@given(st.integers(4, 300), st.floats(0.1, 10), st.sampled_from([0.8, 0.9, 0.95]))  # at 3 statsmodels gives NaN
@settings(max_examples=40, deadline=None)
def test_means_equal_statsmodels(n, spread, power):
    paired = detectable_mean(n, spread, power=power).value
    assert TTestPower().power(paired / spread, n, 0.05) == pytest.approx(power, abs=1e-6)


@given(st.integers(40, 5000), st.floats(0.05, 0.9))
@settings(max_examples=40, deadline=None)
def test_detectable_and_needed_are_inverse(n, share):
    paired = detectable_paired_proportions(n, share)
    if paired.value is not None:
        assert pairs_needed(paired.value, share).value == n
    mean = detectable_mean(n, 1.0)
    assert rows_needed_mean(mean.value * (1 + 1e-9), 1.0).value in {n, n + 1}


def test_mcnemar_finds_the_detectable_difference_in_eight_of_ten():
    difference = detectable_paired_proportions(500, 0.2).value
    rng = np.random.default_rng(3)
    b, c = (0.2 + difference) / 2, (0.2 - difference) / 2
    draws = rng.multinomial(500, [b, c, 0.8], size=2000)
    found = np.mean([mcnemar_chi2(x, y, correction=False).p <= 0.05 for x, y, _ in draws.tolist()])
    assert found == pytest.approx(0.8, abs=0.035)


@pytest.mark.parametrize("n", [2, 3, 10**6])
def test_extreme_sample_sizes_have_an_answer(n):
    difference = detectable_mean(n, 1.0).value
    assert TTestPower().power(difference, n, 0.05) == pytest.approx(0.8, abs=1e-5)


def test_what_cannot_be_detected_is_null():
    assert detectable_paired_proportions(10, 0.1).value is None
    assert detectable_paired_proportions(0, 0.1).value is None
    assert detectable_paired_proportions(100, 0.0).value is None
    assert detectable_mean(1, 1.0).value is None
    assert pairs_needed(0.0, 0.2).value is None
    assert rows_needed_mean(0.0, 1.0).value is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: pairs_needed(0.3, 0.2),
        lambda: pairs_needed(0.1, 1.2),
        lambda: detectable_mean(10, 0.0),
        lambda: detectable_mean(10, 1.0, alpha=0.0),
        lambda: detectable_mean(10, 1.0, power=0.01),
    ],
)
def test_bad_requests_are_refused(call):
    with pytest.raises(StatsError):
        call()
