"""The tail of a column: quantiles, and how often a bound is exceeded.

Quantiles are order statistics of the sorted column with the distribution-free interval whose coverage is a binomial
probability (David and Nagaraja 2003, Order Statistics, section 7.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import _checks
from adjudge.stats._checks import FloatArray
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import binomial_cdf, cluster_wilson, wilson


def quantile(
    values: npt.ArrayLike, q: float, *, clusters: npt.ArrayLike | None = None, level: float = 0.95
) -> Estimate:
    """The smallest value that at least a share q of the column does not exceed, with an order-statistic interval.

    The interval [x_(l), x_(u)] covers the true quantile with probability P(l ≤ Binomial(n, q) < u), whatever the
    distribution. Of values that come in clusters its ends are the quantiles at the ends of Wilson's interval of the share q, at
    the clusters' design effect (Woodruff 1952, JASA 47:635-646). Where the column is too short for an end at this level,
    that end is null and a warning says so.
    """
    column, level = _checks.column(values, "values"), _checks.level(level)
    if not 0.0 < q < 1.0:
        raise StatsError(f"quantile {q!r} is not between 0 and 1")
    n = column.size
    if n == 0:
        return Estimate.null("no values", level=level, method="order statistics")
    ordered = np.sort(column)
    value = float(ordered[order_statistic(n, q) - 1])
    if clusters is None:
        method, warnings = "order statistics", tuple[str, ...]()
        low, high = _order_places(n, q, (1.0 - level) / 2.0)
    else:
        share = _share_up_to(column, value, order_statistic(n, q), clusters, level)
        method, warnings = f"order statistics at {share.method.partition(', ')[2]}", share.warnings
        low, high = math.ceil((share.low or 0.0) * n), math.floor((1.0 if share.high is None else share.high) * n) + 1
    missing = [end for end, outside in (("a lower", low < 1), ("an upper", high > n)) if outside]
    few = (f"{n} values are too few for {end} end of the {q:g} quantile at this level" for end in missing)
    return Estimate(
        value=value,
        low=float(ordered[low - 1]) if low >= 1 else None,
        high=float(ordered[high - 1]) if high <= n else None,
        level=level,
        n=n,
        method=method,
        warnings=(*warnings, *few),
    )


def _share_up_to(column: FloatArray, value: float, place: int, clusters: npt.ArrayLike, level: float) -> Estimate:
    """The share of values up to the quantile, which is the value at this place of them all, over clusters."""
    cluster, m = _checks.groups(clusters, column.size)
    sizes = np.bincount(cluster)
    # Of equal values at the quantile only so many count as up to it that the share is q.
    below = np.bincount(cluster[column < value], minlength=m)
    ties = np.bincount(cluster[column == value], minlength=m)
    hits = below + np.round(ties * (place - below.sum()) / ties.sum()).astype(np.int64)
    return cluster_wilson(hits, sizes, level=level)


def quantile_values(values: npt.ArrayLike, shares: Sequence[float]) -> list[float]:
    """The values of `quantile` alone, of a column that is not empty."""
    column = _checks.column(values, "values")
    places = [order_statistic(column.size, q) - 1 for q in shares]
    parted = np.partition(column, places)
    return [float(parted[place]) for place in places]


def order_statistic(n: int, q: float) -> int:
    """ceil(n·q) in 1 … n: the rank of the q quantile as the inverse of the empirical distribution."""
    # n·q is a decimal share meant exactly: 0.95 of 20 is the 19th value, not the 20th because 0.95 is not a double.
    return min(max(math.ceil(n * q * (1.0 - 4e-16)), 1), n)


def exceedance(values: npt.ArrayLike, limit: float, *, level: float = 0.95) -> Estimate:
    """The share of values above the limit (a value at the limit does not exceed it), with Wilson's interval."""
    column = _checks.column(values, "values")
    return wilson(int((column > limit).sum()), column.size, level=level)


def _order_places(n: int, q: float, tail: float) -> tuple[int, int]:
    # The largest l with P(Bin ≤ l - 1) ≤ tail and the smallest u with P(Bin ≥ u) ≤ tail; 0 and n + 1 mean none.
    ranks, cumulative = binomial_cdf(n, q)
    fits = ranks[cumulative <= tail]
    below = int(fits[-1]) + 1 if fits.size else 0
    enough = ranks[cumulative >= 1.0 - tail]
    above = int(enough[0]) + 1 if enough.size else n + 1
    return below, above
