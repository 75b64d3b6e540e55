"""Paired tests against published figures, statsmodels, and sums done in exact integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from adjudge.errors import StatsError
from adjudge.stats.paired import (
    PValue,
    mcnemar_chi2,
    mcnemar_exact,
    mcnemar_midp,
    paired_difference,
    sign_flip,
)


def test_chi2_is_agresti_1990(reference):
    case = reference("paired")["mcnemar_agresti_1990"]
    b, c = case["table"][0][1], case["table"][1][0]
    corrected, plain = mcnemar_chi2(b, c), mcnemar_chi2(b, c, correction=False)
    assert corrected.statistic == pytest.approx(case["chi2_corrected"], abs=5e-4)
    assert corrected.p == pytest.approx(case["p_corrected"], abs=5e-9)
    assert plain.statistic == pytest.approx(case["chi2"], abs=5e-4)
    assert plain.p == pytest.approx(case["p"], abs=5e-9)


def test_exact_and_midp_are_fagerland_2013(reference):
    case = reference("paired")["mcnemar_fagerland_2013"]
    assert mcnemar_exact(case["b"], case["c"]).p == pytest.approx(case["exact"], abs=5e-5)
    assert mcnemar_midp(case["b"], case["c"]).p == pytest.approx(case["midp"], abs=5e-5)


def _exact(b, c):
    """2·P(X ≤ min) as a fraction of big integers."""
    n, k = b + c, min(b, c)
    return min(Fraction(1), Fraction(2 * sum(math.comb(n, i) for i in range(k + 1)), 2**n))


def _log10(fraction):
    return math.log10(fraction.numerator) - math.log10(fraction.denominator)


@pytest.mark.parametrize("b, c", [(2000, 100), (100, 2000), (1200, 0), (1500, 1450), (2500, 1500), (40, 12), (0, 1)])
def test_exact_equals_big_integers(b, c):
    result = mcnemar_exact(b, c)
    assert result.log10_p == pytest.approx(_log10(_exact(b, c)), rel=1e-12, abs=1e-12)


def test_equal_discordant_counts_have_p_one():
    assert mcnemar_exact(600, 600).p == 1.0
    assert mcnemar_exact(0, 0).p == 1.0
    assert mcnemar_chi2(600, 600).p == 1.0


def test_tiny_p_is_carried_by_its_logarithm():
    result = mcnemar_exact(2000, 100)
    assert round(result.log10_p, 3) == -458.628
    assert 0.0 < result.p < 1e-300
    assert result.warnings


def test_no_discordant_pairs_is_null_where_undefined():
    assert mcnemar_chi2(0, 0) == PValue(p=None, why="no discordant pairs", method="mcnemar chi2, continuity corrected")
    assert mcnemar_midp(0, 0).p is None


def test_midp_with_equal_counts_takes_half_the_middle():
    assert mcnemar_midp(3, 3).p == pytest.approx(1 - 0.5 * math.comb(6, 3) / 64, abs=1e-15)


@given(st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_mcnemar_equals_statsmodels(b, c):
    table = [[5, b], [c, 7]]
    assert mcnemar_exact(b, c).p == pytest.approx(statsmodels_mcnemar(table, exact=True).pvalue, rel=1e-11)
    if b != c:
        # With b = c statsmodels subtracts 1 from 0 and squares it.
        theirs = statsmodels_mcnemar(table, exact=False, correction=True)
        assert mcnemar_chi2(b, c).statistic == pytest.approx(theirs.statistic, rel=1e-12, abs=1e-15)
        assert mcnemar_chi2(b, c).p == pytest.approx(theirs.pvalue, rel=1e-11)
    if b + c:
        assert mcnemar_midp(b, c).p <= mcnemar_exact(b, c).p


@pytest.mark.parametrize("b, c", [(-1, 3), (2.5, 1)])
def test_counts_must_be_counts(b, c):
    with pytest.raises(StatsError, match="discordant counts"):
        mcnemar_exact(b, c)


def test_sign_flip_is_fishers_count_on_darwins_maize(reference):
    case = reference("paired")["fisher_darwin_1935"]
    result = sign_flip(case["differences"], seed=0)
    assert result.statistic == case["sum"]
    assert result.p == pytest.approx(case["extreme"] / case["patterns"], rel=1e-14)
    assert result.seed is None


def test_sign_flip_sampling_agrees_with_the_exact_sign_test():
    # All differences ±1: the sign flip is McNemar's exact test.
    d = np.repeat([1.0, -1.0, 0.0], [35, 18, 40])
    result = sign_flip(d, seed=3, resamples=200_000)
    exact = mcnemar_exact(35, 18).p
    assert result.p == pytest.approx(exact, abs=5 * math.sqrt(exact / 200_000))
    assert result.seed == 3


def test_sign_flip_sampling_of_distinct_sizes_agrees_with_enumeration(reference):
    d = np.array(reference("paired")["fisher_darwin_1935"]["differences"] + [5.5, -3.25], dtype=float)
    every = ((np.arange(2**17)[:, None] >> np.arange(17)) & 1) * 2.0 - 1.0
    exact = np.mean(np.abs(every @ d) >= abs(d.sum()) - 1e-9)
    result = sign_flip(d, seed=1, resamples=100_000)
    assert result.p == pytest.approx(exact, abs=5 * math.sqrt(exact / 100_000))


def test_sign_flip_ignores_row_order_and_is_seeded():
    rng = np.random.default_rng(5)
    d = rng.normal(0.2, 1.0, 60)
    first = sign_flip(d, seed=9, resamples=5000)
    assert sign_flip(rng.permutation(d), seed=9, resamples=5000) == first
    assert sign_flip(d, seed=10, resamples=5000).p != first.p


def test_sign_flip_by_cluster_flips_clusters_together():
    d, clusters = [1, 1, 1, 1, 2, 2], ["a", "a", "b", "b", "c", "c"]
    # Three clusters with sums 2, 2, 4: only the two patterns of one sign reach |8|.
    assert sign_flip(d, clusters=clusters, seed=0).p == pytest.approx(2 / 8)
    assert sign_flip(d, seed=0).p == pytest.approx(2 / 64)


def test_sign_flip_without_difference_or_pairs():
    assert sign_flip([0.0, 0.0], seed=0).p == 1.0
    assert sign_flip([], seed=0).p is None
    with pytest.raises(StatsError, match="NaN"):
        sign_flip([1.0, float("nan")], seed=0)


def test_a_null_p_must_say_why():
    with pytest.raises(ValueError, match="why"):
        PValue(p=None)
    with pytest.raises(ValueError, match=r"\(0, 1\]"):
        PValue(p=0.0)


def test_paired_difference_uses_the_pairing():
    rng = np.random.default_rng(2)
    common = rng.normal(0.0, 5.0, 400)
    a, b = common + rng.normal(0.3, 0.5, 400), common
    trials = np.ones(400)
    paired = paired_difference(np.c_[a, trials], np.c_[b, trials], lambda c: c[:, 0] / c[:, 1], seed=1, stream="d")
    assert paired.value == pytest.approx(np.mean(a - b), rel=1e-12)
    assert paired.high - paired.low < 0.15  # unpaired it would be about 1.4
    assert paired.low < 0.3 < paired.high


def test_paired_difference_of_a_ratio():
    rng = np.random.default_rng(3)
    hits_a, hits_b = rng.integers(3, 10, 60), rng.integers(2, 9, 60)
    trials = np.full(60, 10)

    def share(counts):
        return counts[:, 0] / counts[:, 1]

    first, second = np.column_stack([hits_a, trials]), np.column_stack([hits_b, trials])
    estimate = paired_difference(first, second, share, seed=4, stream="share")
    assert estimate.value == pytest.approx((hits_a.sum() - hits_b.sum()) / 600, abs=1e-15)
    assert estimate.low < estimate.value < estimate.high
    same = paired_difference(first, first, share, seed=4, stream="share")
    assert (same.low, same.high) == (0.0, 0.0)


def test_paired_difference_is_null_where_one_side_is_undefined():
    def share(counts):
        with np.errstate(invalid="ignore"):
            return counts[:, 0] / counts[:, 1]

    estimate = paired_difference([[1, 2], [1, 2]], [[0, 0], [0, 0]], share, seed=0, stream="share")
    assert estimate.value is None
    with pytest.raises(StatsError, match="shape"):
        paired_difference([[1, 2]], [[1, 2, 3]], share, seed=0, stream="share")
