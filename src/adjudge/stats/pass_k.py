"""pass@k and pass^k: the chance that one, or every, of k attempts at a sample passes, averaged over samples.

pass@k = 1 − C(n−c, k) / C(n, k) (Chen et al. 2021, arXiv:2107.03374, eq. 1) and pass^k = C(c, k) / C(n, k) (Yao et al.
2024, arXiv:2406.12045) are unbiased for each sample with c of n attempts passed. The interval is by sample: Wilson's at
the number of yes-or-no samples that would vary as much as these averages do.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats.estimate import Estimate, FloatArray, IntArray, check_same_length, checked_counts, checked_level
from adjudge.stats.proportions import few_clusters, normal_quantile, share_interval, student_quantile

_PSEUDO = 0.25
Which = Literal["any", "all"]


def pass_at_k(passed: npt.ArrayLike, attempts: npt.ArrayLike, k: int, *, level: float = 0.95) -> Estimate:
    """The chance that at least one of k attempts passes; null where a sample has fewer than k attempts."""
    return _pass_k(passed, attempts, k, "any", level)


def pass_hat_k(passed: npt.ArrayLike, attempts: npt.ArrayLike, k: int, *, level: float = 0.95) -> Estimate:
    """pass^k, the chance that all of k attempts pass; null where a sample has fewer than k attempts."""
    return _pass_k(passed, attempts, k, "all", level)


def sample_values(passed: IntArray, attempts: IntArray, k: int, which: Which) -> FloatArray:
    """The value of every sample; the few different pairs (passed, attempts) are computed once, in whole numbers."""
    pairs, place = np.unique(np.column_stack([passed, attempts]), axis=0, return_inverse=True)
    values = []
    for c, n in pairs.tolist():
        ways = math.comb(n, k)
        values.append((ways - math.comb(n - c, k)) / ways if which == "any" else math.comb(c, k) / ways)
    return np.array(values)[place.reshape(-1)]


def share_of_values(values: FloatArray, *, level: float, method: str) -> Estimate:
    """The mean of values between 0 and 1 with Wilson's interval at their effective number of yes-or-no trials.

    That number is p(1−p) over the variance of the mean, reduced by (z/t)² because the variance is estimated (Korn and
    Graubard 1998, Survey Methodology 24:193-201); where all values are 0 or all are 1 it is the number of values. The variance
    counts a quarter of a value at 0 and at 1 beside the others: near the ends few values carry it, and without them the
    intervals of the coverage study are too narrow there (91.7 % at p = .94; docs/statistics-coverage.md).
    """
    m = values.size
    share = math.fsum(values) / m
    total = m + 2.0 * _PSEUDO
    centre = (math.fsum(values) + _PSEUDO) / total
    squares = math.fsum((values - centre) ** 2) + _PSEUDO * (centre**2 + (1.0 - centre) ** 2)
    spread = squares / (total - 1.0) / m if m > 1 else 0.0
    effective = share * (1.0 - share) / spread if spread > 0.0 and 0.0 < share < 1.0 else float(m)
    z = normal_quantile(0.5 + level / 2.0)
    t = student_quantile(max(m - 1.0, 1.0), 0.5 + level / 2.0)
    low, high = share_interval(share, effective * (z / t) ** 2, z)
    return Estimate(value=share, low=low, high=high, level=level, n=m, method=method, warnings=few_clusters(m))


def _pass_k(passed: npt.ArrayLike, attempts: npt.ArrayLike, k: int, which: Which, level: float) -> Estimate:
    c, n = checked_counts(passed, "passed"), checked_counts(attempts, "attempts")
    check_same_length(n.size, c.size, "passed")
    level = checked_level(level)
    method = f"pass{'@' if which == 'any' else '^'}{k}, wilson by sample"
    if k < 1:
        raise StatsError(f"k is {k}; it is a whole number from 1")
    if (c > n).any():
        raise StatsError("a sample has more attempts passed than attempts")
    if not c.size:
        return Estimate.null("no samples", level=level, method=method)
    few = int(np.count_nonzero(n < k))
    if few:
        why = f"{few} of {c.size} samples have fewer than {k} attempts (the fewest has {int(n.min())})"
        return Estimate.null(why, n=int(c.size), level=level, method=method)
    return share_of_values(sample_values(c, n, k, which), level=level, method=method)
