"""Equivalence: TOST against statsmodels and its interval form."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t
from statsmodels.stats.weightstats import ttost_paired

from adjudge.errors import StatsError
from adjudge.stats.estimate import Estimate
from adjudge.stats.paired import inside_margin, tost_mean


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


def test_undefined_is_null():
    assert tost_mean([0.1], 0.2).p is None
    assert tost_mean([0.1, 0.1], 0.2).p is None


def test_inside_margin_without_interval_is_unknown():
    assert inside_margin(Estimate.null("no pairs"), 0.1) is None
    assert inside_margin(Estimate(value=0.0, low=-0.05, high=0.05), 0.1) is True


@pytest.mark.parametrize("margin", [0.0, -0.1, math.inf, math.nan])
def test_a_margin_is_positive(margin):
    with pytest.raises(StatsError, match="margin"):
        inside_margin(Estimate.null("x"), margin)
