"""A share of successes with its interval, the difference of two shares on the same trials, and the tail of a column.

Wilson: Wilson 1927, JASA 22:209-212. Clopper and Pearson 1934, Biometrika 26:404-413. Jeffreys: Brown, Cai and
DasGupta 2001, Statistical Science 16:101-133. Differences: Newcombe 1998, Statistics in Medicine 17:2635-2650
(method 10). Design effect: Rao and Scott 1992, Biometrics 48:577-585. The quantile of a column is an order statistic with
the distribution-free interval whose coverage is a binomial probability (David and Nagaraja 2003, Order Statistics, section
7.1). The normal and Student quantiles they need stand here without SciPy where that is as good: importing `scipy.special`
for one or two numbers takes a quarter of a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    check_same_length,
    checked_column,
    checked_count,
    checked_counts,
    checked_level,
    checked_successes,
    cluster_codes,
)

_NORMAL = NormalDist()
_MANY = 300.0  # degrees of freedom from which on the expansion is within 2e-12 for shares up to 0.995, within 2e-10 to 0.99999


def normal_cdf(x: float) -> float:
    """The probability below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def normal_quantile(share: float) -> float:
    """The point with `share` of the normal distribution below it, 0 < share < 1."""
    return _NORMAL.inv_cdf(share)


def binomial_cdf(n: int, share: float) -> tuple[IntArray, FloatArray]:
    """The numbers of successes in n trials that have any probability to speak of, and that of at most so many each.

    From the ratios of neighbours, p(k + 1) / p(k) = (n − k) / (k + 1) · share / (1 − share); beyond ten standard
    deviations nothing is left.
    """
    reach = 10.0 * (math.sqrt(n * share * (1.0 - share)) + 1.0)
    low, high = max(0, math.floor(n * share - reach)), min(n, math.ceil(n * share + reach))
    hits = np.arange(low, high + 1)
    ratios = np.log((n - hits[:-1]) / (hits[:-1] + 1.0)) + math.log(share) - math.log1p(-share)
    logs = np.concatenate([[0.0], np.cumsum(ratios)])
    mass = np.exp(logs - logs.max())
    return hits, np.cumsum(mass) / mass.sum()


def student_quantile(freedom: float, share: float) -> float:
    """The point with `share` of Student's t below it.

    With many degrees of freedom by the expansion around the normal quantile (Abramowitz and Stegun, Handbook of
    Mathematical Functions, 1964, 26.7.5).
    """
    if freedom < _MANY:
        from scipy.special import stdtrit

        return float(stdtrit(freedom, share))
    x = normal_quantile(share)
    terms = (
        (x**3 + x) / 4.0,
        (5.0 * x**5 + 16.0 * x**3 + 3.0 * x) / 96.0,
        (3.0 * x**7 + 19.0 * x**5 + 17.0 * x**3 - 15.0 * x) / 384.0,
        (79.0 * x**9 + 776.0 * x**7 + 1482.0 * x**5 - 1920.0 * x**3 - 945.0 * x) / 92160.0,
    )
    correction = 0.0
    for term in reversed(terms):
        correction = (correction + term) / freedom
    return x + correction


FEW_CLUSTERS = 10


def wilson(successes: int, n: int, *, level: float = 0.95, design_effect: float = 1.0) -> Estimate:
    """The share of successes with Wilson's score interval; never of zero width, not even at 0/n.

    `design_effect` is how many times larger the variance is than that of independent trials: the interval is that of
    n / design_effect trials.
    """
    hits, trials = checked_successes(successes, n)
    level = checked_level(level)
    if not (math.isfinite(design_effect) and design_effect > 0):
        raise StatsError(f"design effect {design_effect!r} is not a positive number")
    method = "wilson" if design_effect == 1.0 else f"wilson, design effect {design_effect:.6g}"
    if trials == 0:
        return Estimate.null("no trials", level=level, method=method)
    low, high = share_interval(hits / trials, trials / design_effect, normal_quantile(0.5 + level / 2.0))
    return Estimate(value=hits / trials, low=low, high=high, level=level, n=trials, method=method)


def clopper_pearson(successes: int, n: int, *, level: float = 0.95) -> Estimate:
    """The share of successes with the exact interval: coverage is never below the level, and mostly above it."""
    return _beta_interval(successes, n, 0.0, level, "clopper-pearson")


def jeffreys(successes: int, n: int, *, level: float = 0.95) -> Estimate:
    """The share of successes with the equal-tailed interval of the Beta(1/2, 1/2) prior; 0 at 0/n and 1 at n/n."""
    return _beta_interval(successes, n, 0.5, level, "jeffreys")


def newcombe_paired_difference(both: int, only_a: int, only_b: int, neither: int, *, level: float = 0.95) -> Estimate:
    """The share of A's successes minus the share of B's on the same trials, from the four counts of the pairs."""
    e, f, g, h = (
        checked_count(value, name)
        for value, name in ((both, "both"), (only_a, "only_a"), (only_b, "only_b"), (neither, "neither"))
    )
    level = checked_level(level)
    method = "newcombe paired score difference"
    n = e + f + g + h
    if n == 0:
        return Estimate.null("no pairs", level=level, method=method)
    z = normal_quantile(0.5 + level / 2.0)
    p, q = (e + f) / n, (e + g) / n
    low_a, high_a = share_interval(p, n, z)
    low_b, high_b = share_interval(q, n, z)
    phi = _pair_correlation(e, f, g, h)
    down_a, up_a, down_b, up_b = p - low_a, high_a - p, q - low_b, high_b - q
    below = math.sqrt(max(0.0, down_a**2 - 2.0 * phi * down_a * up_b + up_b**2))
    above = math.sqrt(max(0.0, up_a**2 - 2.0 * phi * up_a * down_b + down_b**2))
    difference = (f - g) / n
    low, high = max(-1.0, difference - below), min(1.0, difference + above)
    return Estimate(value=difference, low=low, high=high, level=level, n=n, method=method)


def design_effect(successes: npt.ArrayLike, trials: npt.ArrayLike) -> float:
    """How many times larger the variance of a share is because trials come in clusters, from counts per cluster.

    Var = m/(m-1) · Σ(x_i - n_i p)² / n² against p(1-p)/n; not below 1. Where the data cannot show it (all trials equal,
    one cluster), every cluster counts as a single trial: Σ n_i² / n, the value at intra-class correlation 1.
    """
    x, sizes = checked_counts(successes, "successes"), checked_counts(trials, "trials")
    check_same_length(sizes.size, x.size, "successes")
    if (x > sizes).any():
        raise StatsError("a cluster has more successes than trials")
    x, sizes = x[sizes > 0], sizes[sizes > 0]
    m, n, hits = sizes.size, int(sizes.sum()), int(x.sum())
    if n == 0:
        raise StatsError("a design effect needs at least one trial")
    largest = float((sizes.astype(float) ** 2).sum() / n)
    if m < 2 or hits in {0, n}:
        return largest
    share = hits / n
    variance = m / (m - 1) * float(((x - sizes * share) ** 2).sum()) / n**2
    return max(1.0, variance * n / (share * (1.0 - share)))


def cluster_wilson(successes: npt.ArrayLike, trials: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """The share of successes over clusters with Wilson's interval at the effective number of trials.

    The effective number is n / design effect, reduced by (z/t)² because the design effect itself is estimated from
    the clusters (Korn and Graubard 1998, Survey Methodology 24:193-201); t has one degree of freedom less than the
    effective number of clusters.
    """
    level = checked_level(level)
    x, sizes = checked_counts(successes, "successes"), checked_counts(trials, "trials")
    check_same_length(sizes.size, x.size, "successes")
    n, hits, m = int(sizes.sum()), int(x.sum()), int((sizes > 0).sum())
    if n == 0:
        return Estimate.null("no trials", level=level, method="wilson, cluster design effect")
    effect = design_effect(x, sizes)
    z = normal_quantile(0.5 + level / 2.0)
    t = student_quantile(max(effective_number(sizes) - 1.0, 1.0), 0.5 + level / 2.0)
    low, high = share_interval(hits / n, n / effect * (z / t) ** 2, z)
    method = f"wilson, cluster design effect {effect:.6g}, {m} clusters"
    return Estimate(value=hits / n, low=low, high=high, level=level, n=n, method=method, warnings=few_clusters(m))


def effective_number(sizes: npt.ArrayLike) -> float:
    """How many equal clusters tell as much as clusters of these sizes: (Σ size)² / Σ size² (Kish 1965)."""
    share = np.asarray(sizes, dtype=np.float64)
    largest = float(share.max(initial=0.0))
    if largest <= 0:
        return float(share.size)
    share = share / largest
    return float(share.sum() ** 2 / (share**2).sum())


def few_clusters(m: int) -> tuple[str, ...]:
    """The warning that an interval over fewer than ten clusters carries."""
    if m >= FEW_CLUSTERS:
        return ()
    return (f"only {m} cluster{'s' if m != 1 else ''}: an interval over fewer than {FEW_CLUSTERS} is a rough guide",)


def share_interval(share: float, effective: float, z: float) -> tuple[float, float]:
    """Wilson's interval of a share that is as certain as one of `effective` independent trials."""
    scale = 1.0 + z * z / effective
    centre = share + z * z / (2.0 * effective)
    half = z * math.sqrt(share * (1.0 - share) / effective + (z / (2.0 * effective)) ** 2)
    low = 0.0 if share == 0.0 else max(0.0, (centre - half) / scale)
    high = 1.0 if share == 1.0 else min(1.0, (centre + half) / scale)
    return low, high


def _pair_correlation(e: int, f: int, g: int, h: int) -> float:
    # Newcombe's φ: the correlation of the pairs, its numerator shrunk by n/2 towards 0 where it is positive.
    margins = (e + f) * (g + h) * (e + g) * (f + h)
    if margins == 0:
        return 0.0
    cross = e * h - f * g
    numerator = max(cross - (e + f + g + h) / 2.0, 0.0) if cross > 0 else float(cross)
    return numerator / math.sqrt(margins)


def _beta_interval(successes: int, n: int, prior: float, level: float, method: str) -> Estimate:
    """Equal tails of Beta(hits + prior, misses + 1 − prior) below and Beta(hits + 1 − prior, misses + prior) above."""
    from scipy.special import betaincinv

    hits, trials = checked_successes(successes, n)
    level = checked_level(level)
    if trials == 0:
        return Estimate.null("no trials", level=level, method=method)
    tail, misses = (1.0 - level) / 2.0, trials - hits
    low = 0.0 if hits == 0 else float(betaincinv(hits + prior, misses + 1.0 - prior, tail))
    high = 1.0 if misses == 0 else float(betaincinv(hits + 1.0 - prior, misses + prior, 1.0 - tail))
    return Estimate(value=hits / trials, low=low, high=high, level=level, n=trials, method=method)


def quantile(
    values: npt.ArrayLike, q: float, *, clusters: npt.ArrayLike | None = None, level: float = 0.95
) -> Estimate:
    """The smallest value that at least a share q of the column does not exceed, with an order-statistic interval.

    The interval [x_(l), x_(u)] covers the true quantile with probability P(l ≤ Binomial(n, q) < u), whatever the
    distribution. Of values that come in clusters its ends are the quantiles at the ends of Wilson's interval of the share q, at
    the clusters' design effect (Woodruff 1952, JASA 47:635-646). Where the column is too short for an end at this level,
    that end is null and a warning says so.
    """
    column, level = checked_column(values, "values"), checked_level(level)
    if not 0.0 < q < 1.0:
        raise StatsError(f"quantile {q!r} is not between 0 and 1")
    n = column.size
    if n == 0:
        return Estimate.null("no values", level=level, method="order statistics")
    ordered = np.sort(column)
    value = float(ordered[order_statistic(n, q) - 1])
    if clusters is None:
        method, warnings = "order statistics", tuple[str, ...]()
        first, last = _order_places(n, q, (1.0 - level) / 2.0)
    else:
        share = _share_up_to(column, value, order_statistic(n, q), clusters, level)
        method, warnings = f"order statistics at {share.method.partition(', ')[2]}", share.warnings
        first, last = math.ceil((share.low or 0.0) * n), math.floor((1.0 if share.high is None else share.high) * n) + 1
    missing = [end for end, outside in (("a lower", first < 1), ("an upper", last > n)) if outside]
    few = (f"{n} values are too few for {end} end of the {q:g} quantile at this level" for end in missing)
    low, high = (float(ordered[place - 1]) if 1 <= place <= n else None for place in (first, last))
    return Estimate(value=value, low=low, high=high, level=level, n=n, method=method, warnings=(*warnings, *few))


def _share_up_to(column: FloatArray, value: float, place: int, clusters: npt.ArrayLike, level: float) -> Estimate:
    """The share of values up to the quantile, which is the value at this place of them all, over clusters."""
    cluster, m = cluster_codes(clusters, column.size)
    sizes = np.bincount(cluster)
    # Of equal values at the quantile only so many count as up to it that the share is q.
    below = np.bincount(cluster[column < value], minlength=m)
    ties = np.bincount(cluster[column == value], minlength=m)
    hits = below + np.round(ties * (place - below.sum()) / ties.sum()).astype(np.int64)
    return cluster_wilson(hits, sizes, level=level)


def quantile_values(values: npt.ArrayLike, shares: Sequence[float]) -> list[float]:
    """The values of `quantile` alone, of a column that is not empty."""
    column = checked_column(values, "values")
    places = [order_statistic(column.size, q) - 1 for q in shares]
    parted = np.partition(column, places)
    return [float(parted[place]) for place in places]


def order_statistic(n: int, q: float) -> int:
    """ceil(n·q) in 1 … n: the rank of the q quantile as the inverse of the empirical distribution."""
    # n·q is a decimal share meant exactly: 0.95 of 20 is the 19th value, not the 20th because 0.95 is not a double.
    return min(max(math.ceil(n * q * (1.0 - 4e-16)), 1), n)


def exceedance(values: npt.ArrayLike, limit: float, *, level: float = 0.95) -> Estimate:
    """The share of values above the limit (a value at the limit does not exceed it), with Wilson's interval."""
    column = checked_column(values, "values")
    return wilson(int((column > limit).sum()), column.size, level=level)


def _order_places(n: int, q: float, tail: float) -> tuple[int, int]:
    # The largest l with P(Bin ≤ l - 1) ≤ tail and the smallest u with P(Bin ≥ u) ≤ tail; 0 and n + 1 mean none.
    ranks, cumulative = binomial_cdf(n, q)
    fits = ranks[cumulative <= tail]
    below = int(fits[-1]) + 1 if fits.size else 0
    enough = ranks[cumulative >= 1.0 - tail]
    above = int(enough[0]) + 1 if enough.size else n + 1
    return below, above
