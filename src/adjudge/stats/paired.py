"""Paired tests: do two systems differ on the same samples? McNemar, sign flips, swaps (p is never 0); equivalence; one at every look.

The test at every look (`paired_test`) is anytime-valid: it may be looked at after every sample and still errs at most α. With
b pairs that only the candidate wins and c that only the baseline wins, a fair coin decides each pair where the two are
equally good. E = B(a+b, a+c) / B(a, a) · 2^(b+c) is the likelihood ratio of a coin whose bias has the prior Beta(a, a)
against the fair one: a martingale of mean 1, so that it ever reaches 1/α with a chance of at most α (Ville 1939; as an
e-value: Ramdas et al. 2023, Statistical Science 38:576-601). A large a looks for small differences.
"""

from __future__ import annotations

import math
import sys
from typing import Literal, Unpack

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats.bootstrap import Drawing, Statistic, statistic_of_counts
from adjudge.stats.estimate import Estimate, FloatArray, checked_column, checked_count, cluster_codes
from adjudge.stats.resampling import generator

_LN10 = math.log(10.0)
_SMALLEST = sys.float_info.min
ENUMERATE_UP_TO = 16  # 2^16 sign patterns are fewer than anyone would draw
UNDEFINED_FOR_ONE = "the statistic is undefined for one of the two"


class PValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """The p value of one test, or null with `why`.

    `log10_p` is exact to rounding however small p is. Where p itself is below the smallest normal double, `p` is that
    double (an upper bound), never 0, and `warnings` says so.
    """

    p: float | None
    log10_p: float | None = None
    statistic: float | None = None
    n: int = 0
    method: str = ""
    seed: int | None = None
    why: str | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.p is None and not self.why:
            raise ValueError("a PValue without a value must say why")
        if self.p is not None and not 0.0 < self.p <= 1.0:
            raise ValueError(f"PValue.p is {self.p}; a p value lies in (0, 1]")


def p_value(ln_p: float, *, method: str, n: int, statistic: float | None = None, seed: int | None = None) -> PValue:
    """A PValue from the natural logarithm of p."""
    ln_p = min(ln_p, 0.0)
    p = math.exp(ln_p)
    warnings = ("p is below the smallest double; log10_p carries it",) if p < _SMALLEST else ()
    p, log10_p = max(p, _SMALLEST), ln_p / _LN10
    return PValue(p=p, log10_p=log10_p, statistic=statistic, n=n, method=method, seed=seed, warnings=warnings)


def _discordant(b: int, c: int) -> tuple[int, int]:
    if b < 0 or c < 0 or b != int(b) or c != int(c):
        raise StatsError(f"discordant counts must be whole numbers from 0 up, not {b} and {c}")
    return int(b), int(c)


def _ln_binomial_half(k: int, n: int) -> tuple[float, float]:
    """Logarithms of P(X ≤ k) and P(X = k) for X ~ Binomial(n, ½) and k ≤ n/2."""
    from scipy.special import betainc, gammaln
    from scipy.stats import binom

    cdf, pmf = float(betainc(n - k, k + 1, 0.5)), float(binom.pmf(k, n, 0.5))
    if pmf > 1e-280:
        return math.log(cdf), math.log(pmf)
    ln_pmf = float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) - n * math.log(2.0)
    # P(X ≤ k) = P(X = k)·(1 + k/(n−k+1) + k(k−1)/((n−k+1)(n−k+2)) + …); the ratios fall at least as fast as e^(−2j²/n).
    j = np.arange(min(k, 10 * math.isqrt(n) + 100), dtype=np.float64)
    return ln_pmf + math.log1p(float(np.cumprod((k - j) / (n - k + 1 + j)).sum())), ln_pmf


def mcnemar_exact(b: int, c: int) -> PValue:
    """McNemar's exact test: two-sided binomial on the discordant pairs.

    b pairs only the first system got right, c only the second; p = min(1, 2·P(X ≤ min(b, c))), X ~ Binomial(b+c, ½)
    (Agresti, Categorical Data Analysis, 1990, §10.1). Without discordant pairs p = 1.
    """
    b, c = _discordant(b, c)
    k, n = min(b, c), b + c
    ln_p = 0.0 if b == c else math.log(2.0) + _ln_binomial_half(k, n)[0]
    return p_value(ln_p, method="mcnemar exact", n=n, statistic=float(k))


def mcnemar_midp(b: int, c: int) -> PValue:
    """McNemar's mid-p test: as the exact test, but splits as extreme as the observed one count half.

    p = 2·P(X < k) + P(X = k), k = min(b, c); where b = c, p = 1 − ½·P(X = k) (Fagerland, Lydersen, Laake 2013, BMC Med
    Res Methodol 13:91). Null without discordant pairs.
    """
    b, c = _discordant(b, c)
    k, n = min(b, c), b + c
    if n == 0:
        return PValue(p=None, why="no discordant pairs", method="mcnemar mid-p")
    ln_cdf, ln_pmf = _ln_binomial_half(k, n)
    # 2·cdf − pmf where b ≠ c; pmf ≤ cdf, so no digits are lost.
    ln_p = math.log1p(-0.5 * math.exp(ln_pmf)) if b == c else ln_cdf + math.log(2.0 - math.exp(ln_pmf - ln_cdf))
    return p_value(ln_p, method="mcnemar mid-p", n=n, statistic=float(k))


def mcnemar_chi2(b: int, c: int, *, correction: bool = True) -> PValue:
    """McNemar's χ² with Edwards' continuity correction: (max(|b−c|−1, 0))² / (b+c), one degree of freedom.

    Null without discordant pairs. Where b = c the corrected statistic is 0, as in R.
    """
    b, c = _discordant(b, c)
    n = b + c
    method = "mcnemar chi2, continuity corrected" if correction else "mcnemar chi2"
    if n == 0:
        return PValue(p=None, why="no discordant pairs", method=method)
    from scipy.special import log_ndtr

    root = max(abs(b - c) - (1 if correction else 0), 0) / math.sqrt(n)
    # P(χ²₁ > root²) = 2·Φ(−root)
    return p_value(math.log(2.0) + float(log_ndtr(-root)), method=method, n=n, statistic=root * root)


def sign_flip(
    differences: npt.ArrayLike,
    *,
    seed: int,
    stream: str = "sign_flip",
    clusters: npt.ArrayLike | None = None,
    resamples: int = 20_000,
) -> PValue:
    """Permutation test of paired differences: under "no difference" each sample's (or cluster's) sign is a fair coin.

    The statistic is |Σd|. Up to 16 nonzero units every sign pattern is counted (exact); above, `resamples` patterns are
    drawn and p = (1 + as extreme) / (1 + drawn) (Phipson & Smyth 2010), so that it is never 0. Row order changes
    nothing.
    """
    units = _unit_sums(differences, clusters)
    if units.size == 0:
        return PValue(p=None, why="no pairs", method="sign flip")
    sizes = np.sort(np.abs(units[units != 0.0]))
    if sizes.size == 0:
        return p_value(0.0, method="sign flip, no nonzero difference", n=units.size, statistic=0.0)
    observed = abs(math.fsum(units))
    # A rounding step above zero: sums of the same numbers in another order count as equal.
    bound = observed - 1e-12 * math.fsum(sizes)
    exact = sizes.size <= ENUMERATE_UP_TO
    if exact:
        total = 1 << sizes.size
        bits = (np.arange(total)[:, None] >> np.arange(sizes.size)) & 1
        extreme = int(np.count_nonzero(np.abs((1.0 - 2.0 * bits) @ sizes) >= bound))
        ln_p = math.log(extreme / total)
    else:
        extreme = _count_extreme(sizes, bound, resamples, generator(seed, stream))
        ln_p = math.log((1 + extreme) / (1 + resamples))
    method = "sign flip, all patterns" if exact else f"sign flip, {resamples} patterns"
    if clusters is not None:
        method += ", clusters"
    return p_value(ln_p, method=method, n=units.size, statistic=observed, seed=None if exact else seed)


def _unit_sums(differences: npt.ArrayLike, clusters: npt.ArrayLike | None) -> FloatArray:
    d = checked_column(differences, "paired differences")
    if clusters is None:
        return d
    codes, m = cluster_codes(clusters, d.size)
    order = np.lexsort((d, codes))
    starts = np.searchsorted(codes[order], np.arange(m))
    return np.add.reduceat(d[order], starts) if d.size else d


def _count_extreme(sizes: FloatArray, bound: float, resamples: int, rng: np.random.Generator) -> int:
    """How many random sign patterns give |Σ±size| ≥ bound; equal sizes are drawn together, as one binomial."""
    values, counts = np.unique(sizes, return_counts=True)
    single, shared, repeats = values[counts == 1], values[counts > 1], counts[counts > 1]
    extreme = 0
    block = max(1, 4_000_000 // values.size)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        sums = np.zeros(rows)
        if shared.size:
            sums += (2.0 * rng.binomial(repeats, 0.5, size=(rows, shared.size)) - repeats) @ shared
        if single.size:
            packed = rng.integers(0, 256, size=(rows, -(-single.size // 8)), dtype=np.uint8)
            sums += (2.0 * np.unpackbits(packed, axis=1, count=single.size) - 1.0) @ single
        extreme += int(np.count_nonzero(np.abs(sums) >= bound))
    return extreme


def paired_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    function: Statistic,
    *,
    n: int | None = None,
    unit: str = "cluster",
    **drawing: Unpack[Drawing],
) -> Estimate:
    """A statistic of summed counts (F1, κ, ECE …), first − second: both systems are resampled with the same draws.

    `first` and `second` are counts[m, k] of the same m clusters (or samples), `function` maps (rows, k) to (rows,), NaN
    where undefined. Null where it is undefined for one of the two.
    """
    a, b = paired_counts(first, second)
    k = a.shape[1]

    def gap(counts: FloatArray) -> FloatArray:
        return function(counts[:, :k]) - function(counts[:, k:])

    return statistic_of_counts(np.hstack([a, b]), gap, n=n, unit=unit, why_null=UNDEFINED_FOR_ONE, **drawing)


def paired_counts(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The counts[m, k] of two systems over the same units, checked."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 2 or a.shape != b.shape:
        raise StatsError(f"paired counts must have one shape (units, counts), not {a.shape} and {b.shape}")
    return a, b


_CELLS_AT_ONCE = 4_000_000


def swap_test(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    function: Statistic,
    *,
    seed: int,
    stream: str = "swap_test",
    resamples: int = 20_000,
    unit: str = "cluster",
) -> PValue:
    """|f(Σ second) − f(Σ first)| against its values when the two are swapped in a random half of the units.

    `first` and `second` are counts[m, k] of the same m units (samples, clusters), `function` maps (rows, k) to (rows,), NaN
    where undefined. Up to 16 units that differ every swap is counted (exact); above, `resamples` are drawn and p = (1 + as
    extreme) / (1 + drawn) (Phipson & Smyth 2010, Stat Appl Genet Mol Biol 9:39). A swap on which the statistic is undefined
    counts as extreme, which can only make p larger. Row order changes nothing. Null where the statistic is undefined for
    one of the two.
    """
    a, b = paired_counts(first, second)
    if not len(a):
        return PValue(p=None, why="no pairs", method="swap")
    of_a, of_b = (np.array([math.fsum(column) for column in side.T]) for side in (a, b))
    observed = float(np.abs(function(of_b[None, :]) - function(of_a[None, :]))[0])
    if math.isnan(observed):
        return PValue(p=None, why=UNDEFINED_FOR_ONE, method="swap", n=len(a))
    moves, repeats = np.unique((b - a)[(a != b).any(axis=1)], axis=0, return_counts=True)
    if not len(moves):
        return p_value(0.0, method="swap, no unit differs", n=len(a), statistic=0.0)
    # A rounding step below: the same sums in another order count as equal.
    bound = observed - 1e-12 * max(1.0, observed)

    def extreme(swapped: FloatArray) -> int:
        moved = of_a + swapped @ moves
        gap = np.abs(function(of_a + of_b - moved) - function(moved))
        return int(np.count_nonzero((gap >= bound) | np.isnan(gap)))

    units = int(repeats.sum())
    exact = units <= ENUMERATE_UP_TO
    if exact:
        bits = (np.arange(1 << units)[:, None] >> np.arange(units)) & 1
        owner = np.repeat(np.arange(len(moves)), repeats)
        ln_p = math.log(extreme(bits @ (owner[:, None] == np.arange(len(moves))).astype(np.float64)) / (1 << units))
    else:
        random, as_extreme = generator(seed, stream), 0
        block = max(1, _CELLS_AT_ONCE // len(moves))
        for start in range(0, resamples, block):
            rows = min(block, resamples - start)
            as_extreme += extreme(random.binomial(repeats, 0.5, size=(rows, len(moves))).astype(np.float64))
        ln_p = math.log((1 + as_extreme) / (1 + resamples))
    method = ("swap, all patterns" if exact else f"swap, {resamples} patterns") + (f", {unit}s" if unit else "")
    return p_value(ln_p, method=method, n=len(a), statistic=observed, seed=None if exact else seed)


Verdict = Literal["better", "worse", "equivalent", "inconclusive"]


def tost_mean(differences: npt.ArrayLike, margin: float) -> PValue:
    """Two one-sided t tests that the mean paired difference lies within ±margin; p is the larger of the two.

    Schuirmann 1987, J Pharmacokinet Biopharm 15:657-680. Rejecting at α is the same as the 1 − 2α t interval lying
    inside the margin. Null with fewer than two differences, or where they are all equal.
    """
    d = np.sort(checked_column(differences, "differences"))
    margin = _margin(margin)
    if d.size < 2 or d[0] == d[-1]:
        why = "fewer than two differences" if d.size < 2 else "all differences are equal, so their spread is unknown"
        return PValue(p=None, why=why, n=d.size, method="TOST, paired t")
    from scipy.stats import t

    error = float(np.std(d, ddof=1)) / math.sqrt(d.size)
    gap = margin - abs(float(np.mean(d)))
    return p_value(float(t.logsf(gap / error, d.size - 1)), method="TOST, paired t", n=d.size, statistic=gap / error)


def inside_margin(difference: Estimate, margin: float) -> bool | None:
    """Whether the whole interval of a difference lies within ±margin; None without an interval."""
    margin = _margin(margin)
    if difference.low is None or difference.high is None:
        return None
    return -margin < difference.low and difference.high < margin


def _margin(margin: float) -> float:
    if not (math.isfinite(margin) and margin > 0.0):
        raise StatsError(f"margin {margin!r} is not a positive number")
    return float(margin)


PRIOR = 10.0


class Sequential(msgspec.Struct, frozen=True, kw_only=True):
    """What the pairs seen so far say; `ln_e` is the natural logarithm of the e-value, which may be out of a float's range."""

    wins: int
    losses: int
    ln_e: float
    alpha: float
    outcome: Literal["worse", "better", "undecided"]

    @property
    def e_value(self) -> float:
        """How many times likelier the pairs are under a biased coin; infinite where no float holds it."""
        return math.exp(self.ln_e) if self.ln_e < 700.0 else math.inf

    @property
    def p(self) -> float:
        """A p value that is valid at every look: 1 / E, at most 1."""
        return math.exp(min(0.0, -self.ln_e))


def ln_e_value(wins: int, losses: int, *, prior: float = PRIOR) -> float:
    """The logarithm of E after so many wins and losses; ties tell nothing."""
    b, c = checked_count(wins, "wins"), checked_count(losses, "losses")
    if not (math.isfinite(prior) and prior > 0.0):
        raise StatsError(f"prior is {prior}, expected a number above 0")
    return _ln_beta(prior + b, prior + c) - _ln_beta(prior, prior) + (b + c) * math.log(2.0)


def paired_test(wins: int, losses: int, *, alpha: float = 0.05, prior: float = PRIOR) -> Sequential:
    """The candidate is worse where E ≥ 1/α and it lost more pairs than it won, better where it won more."""
    if not 0.0 < alpha < 1.0:
        raise StatsError(f"alpha is {alpha}, expected a number between 0 and 1")
    ln_e = ln_e_value(wins, losses, prior=prior)
    decided = ln_e >= -math.log(alpha) and wins != losses
    outcome: Literal["worse", "better", "undecided"] = (
        "undecided" if not decided else "worse" if losses > wins else "better"
    )
    return Sequential(wins=wins, losses=losses, ln_e=ln_e, alpha=alpha, outcome=outcome)


def _ln_beta(x: float, y: float) -> float:
    return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)
