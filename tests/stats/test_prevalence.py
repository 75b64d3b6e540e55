from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from adjudge.errors import StatsError
from adjudge.stats.prevalence import rogan_gladen


def test_a_perfect_judge_needs_no_correction():
    found = rogan_gladen(30, 100, true_positive=50, false_negative=0, true_negative=50, false_positive=0)
    assert found.value == pytest.approx(0.3)
    assert found.low < 0.3 < found.high


def test_the_corrected_share_by_hand():
    # apparent .40, Se .9, Sp .8: (.40 + .8 − 1)/(.9 + .8 − 1) = .2/.7
    found = rogan_gladen(400, 1000, true_positive=90, false_negative=10, true_negative=80, false_positive=20)
    assert found.value == pytest.approx(0.2 / 0.7, abs=1e-12)
    assert found.n == 1000


def test_the_interval_by_hand():
    # z² = 3.84146: p' = 401.92073/1003.84146 = .400383, Se' = 91/102, Sp' = 81/102, so the share is .283415;
    # shift = 7.68292·(.283415·.00094326 − .716585·.00160289) = −.006771;
    # half = 1.959964·√(.00023916 + .00007577 + .00082307)/.686275 = .096343
    found = rogan_gladen(400, 1000, true_positive=90, false_negative=10, true_negative=80, false_positive=20)
    assert (found.low, found.high) == pytest.approx((0.180301, 0.372987), abs=2e-6)


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize(
    "counts", [(400, 1000, 90, 100, 80, 100), (30, 250, 45, 60, 170, 180), (60, 80, 19, 20, 8, 12)]
)
def test_the_width_is_that_of_the_delta_method(counts, level):
    """Equations 4, 6, 7, 16 and 17 of Lang and Reiczigel, checked against the function prevSeSp of the R package asht.

    Its author (M. P. Fay) notes that the variance is printed with (1 + P')² where (1 − P')² is meant; the derivatives of
    the corrected share, taken here by differences, say the same.
    """
    hits, n, tp, n_se, tn, n_sp = counts
    z = NormalDist().inv_cdf(0.5 + level / 2)
    sizes = (n + z * z, n_se + 2, n_sp + 2)
    shares = [(hits + z * z / 2) / sizes[0], (tp + 1) / sizes[1], (tn + 1) / sizes[2]]

    def corrected(apparent, se, sp):
        return (apparent + sp - 1) / (se + sp - 1)

    step, variance = 1e-6, 0.0
    for k, size in enumerate(sizes):
        up, down = ([x + side * step * (i == k) for i, x in enumerate(shares)] for side in (1, -1))
        slope = (corrected(*up) - corrected(*down)) / (2 * step)
        variance += slope**2 * shares[k] * (1 - shares[k]) / size
    found = rogan_gladen(
        hits, n, true_positive=tp, false_negative=n_se - tp, true_negative=tn, false_positive=n_sp - tn, level=level
    )
    share = corrected(*shares)
    spread = [share * shares[1] * (1 - shares[1]) / sizes[1], (1 - share) * shares[2] * (1 - shares[2]) / sizes[2]]
    middle = share + 2 * z * z * (spread[0] - spread[1])
    limits = [min(1.0, max(0.0, middle + side * z * math.sqrt(variance))) for side in (-1, 1)]
    assert (found.low, found.high) == pytest.approx(limits, abs=1e-8)


@pytest.mark.parametrize("apparent,value", [(0, 0.0), (1000, 1.0)])
def test_the_value_is_cut_to_a_share(apparent, value):
    found = rogan_gladen(apparent, 1000, true_positive=90, false_negative=10, true_negative=80, false_positive=20)
    assert found.value == value
    assert found.low <= value <= found.high


@pytest.mark.parametrize(
    "counts,why",
    [
        ((5, 5, 5, 5), "chance"),
        ((0, 0, 5, 5), "no positives"),
        ((5, 5, 0, 0), "no negatives"),
    ],
)
def test_null_where_the_judge_says_nothing(counts, why):
    tp, fn, tn, fp = counts
    found = rogan_gladen(5, 10, true_positive=tp, false_negative=fn, true_negative=tn, false_positive=fp)
    assert found.value is None
    assert why in found.why
    assert rogan_gladen(0, 0, true_positive=1, false_negative=1, true_negative=1, false_positive=0).value is None


def test_impossible_counts_are_refused():
    with pytest.raises(StatsError, match="more than"):
        rogan_gladen(11, 10, true_positive=1, false_negative=0, true_negative=1, false_positive=0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.85])
def test_the_interval_covers_as_often_as_it_says(share):
    rng = np.random.default_rng(7)
    se, sp, n, m, trials = 0.9, 0.85, 300, 120, 1500
    covered = 0
    for _ in range(trials):
        hits = rng.binomial(n, share * se + (1 - share) * (1 - sp))
        tp, tn = rng.binomial(m, se), rng.binomial(m, sp)
        found = rogan_gladen(
            int(hits), n, true_positive=int(tp), false_negative=m - int(tp),
            true_negative=int(tn), false_positive=m - int(tn),
        )  # fmt: skip
        covered += found.low <= share <= found.high
    assert 0.935 <= covered / trials <= 0.985
