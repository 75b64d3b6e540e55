"""Equivalence: TOST against statsmodels and its interval form, verdicts as a table."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t
from statsmodels.stats.weightstats import ttost_paired

from adjudge.errors import StatsError
from adjudge.stats.equivalence import inside_margin, tost_mean, tost_paired_proportions, verdict
from adjudge.stats.estimate import Estimate


@given(st.integers(0, 10**6), st.integers(3, 60), st.floats(0.05, 2.0))
@settings(max_examples=60, deadline=None)
def test_tost_equals_statsmodels(seed, n, margin):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0.2, 1.0, n), rng.normal(0.0, 1.0, n)
    theirs = ttost_paired(a, b, -margin, margin)[0]
    assert tost_mean(a - b, margin).p == pytest.approx(theirs, rel=1e-9)


def test_tost_at_five_percent_is_the_ninety_percent_interval_inside_the_margin():
    d = np.random.default_rng(1).normal(0.1, 1.0, 200)
    half = t.ppf(0.95, 199) * np.std(d, ddof=1) / math.sqrt(200)
    edge = abs(d.mean()) + half
    assert tost_mean(d, edge * 1.0001).p < 0.05 < tost_mean(d, edge * 0.9999).p


def test_tost_of_paired_proportions_by_hand():
    # 30 against 20 discordant of 1,000, margin .05: gap .04, se = √((.05 − .0025)/1000).
    result = tost_paired_proportions(30, 20, 1000, 0.05)
    assert result.p == pytest.approx(norm.sf(0.04 / math.sqrt(0.0475 / 1000)), rel=1e-9)
    assert tost_paired_proportions(80, 20, 1000, 0.05).p > 0.5


def test_tost_of_paired_proportions_keeps_its_level():
    # True difference at the margin: at most about 5 % may be called equivalent.
    rng = np.random.default_rng(2)
    draws = rng.multinomial(800, [0.10, 0.05, 0.85], size=3000)
    rejected = np.mean([tost_paired_proportions(b, c, 800, 0.05).p <= 0.05 for b, c, _ in draws.tolist()])
    assert 0.02 < rejected < 0.065


def test_tost_of_huge_samples_is_not_zero():
    result = tost_paired_proportions(10, 10, 10**7, 0.2)
    assert result.p > 0.0
    assert result.log10_p < -300


def test_undefined_is_null():
    assert tost_mean([0.1], 0.2).p is None
    assert tost_mean([0.1, 0.1], 0.2).p is None
    assert tost_paired_proportions(0, 0, 50, 0.1).p is None


@pytest.mark.parametrize(
    "low, high, margin, higher_is_better, expected",
    [
        (0.01, 0.05, None, True, "better"),
        (0.01, 0.05, None, False, "worse"),
        (-0.05, -0.01, None, True, "worse"),
        (-0.05, -0.01, None, False, "better"),
        (-0.01, 0.01, 0.02, True, "equivalent"),
        (0.005, 0.015, 0.02, True, "equivalent"),
        (0.005, 0.025, 0.02, True, "better"),
        (-0.01, 0.03, 0.02, True, "inconclusive"),
        (-0.01, 0.03, None, True, "inconclusive"),
        (-0.02, 0.01, 0.02, True, "inconclusive"),
        (0.0, 0.05, None, True, "inconclusive"),
        (None, None, 0.02, True, "inconclusive"),
    ],
)
def test_verdicts(low, high, margin, higher_is_better, expected):
    difference = Estimate(value=0.0, low=low, high=high)
    assert verdict(difference, margin=margin, higher_is_better=higher_is_better) == expected


def test_inside_margin_without_interval_is_unknown():
    assert inside_margin(Estimate.null("no pairs"), 0.1) is None
    assert inside_margin(Estimate(value=0.0, low=-0.05, high=0.05), 0.1) is True


@pytest.mark.parametrize("margin", [0.0, -0.1, math.inf, math.nan])
def test_a_margin_is_positive(margin):
    with pytest.raises(StatsError, match="margin"):
        inside_margin(Estimate.null("x"), margin)


def test_more_discordant_than_samples_is_refused():
    with pytest.raises(StatsError, match="discordant"):
        tost_paired_proportions(6, 5, 10, 0.1)


def test_a_margin_of_everything_leaves_no_error_to_divide_by():
    assert tost_paired_proportions(3, 1, 4, 1.0).statistic == math.inf
