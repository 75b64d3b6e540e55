"""What could this many samples have shown? The smallest difference found with 80 % power, and the n a difference needs.

Two-sided tests at `alpha`. Proportions use the usual normal approximations; means use the noncentral t distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from adjudge.errors import StatsError
from adjudge.stats.estimate import Estimate, checked_count
from adjudge.stats.proportions import normal_quantile


def detectable_paired_proportions(n: int, discordant: float, *, alpha: float = 0.05, power: float = 0.8) -> Estimate:
    """The smallest difference of two accuracies on the same n samples that McNemar's test finds with this power.

    `discordant` is the share of samples on which exactly one of the two is right. δ solves
    n = (z_α·√ψ + z_β·√(ψ − δ²))²/δ² (Connor 1987, Biometrics 43:207-211). Null where even δ = ψ needs more samples.
    """
    pairs, psi = checked_count(n, "n"), _share(discordant, "discordant")
    _rates(alpha, power)
    method = "paired proportions, Connor"
    if pairs == 0 or psi == 0.0:
        return Estimate.null("no pairs" if pairs == 0 else "no discordant pairs to learn from", n=pairs, method=method)
    if _pairs(psi, psi, alpha, power) > pairs:
        return Estimate.null("too few samples: even if every discordant pair went one way", n=pairs, method=method)
    return Estimate(value=_solve(lambda d: _pairs(d, psi, alpha, power) - pairs, psi), n=pairs, method=method)


def pairs_needed(difference: float, discordant: float, *, alpha: float = 0.05, power: float = 0.8) -> Estimate:
    """About how many samples McNemar's test needs to find this difference with this power (Connor 1987)."""
    delta, psi = abs(difference), _share(discordant, "discordant")
    _rates(alpha, power)
    method = "paired proportions, Connor"
    if delta == 0.0:
        return Estimate.null("no number of samples finds a difference of 0", method=method)
    if delta > psi:
        raise StatsError(f"a difference of {delta} needs at least that share of discordant pairs, not {psi}")
    return Estimate(value=float(math.ceil(_pairs(delta, psi, alpha, power) - 1e-9)), method=method)


def detectable_mean(n: int, spread: float, *, alpha: float = 0.05, power: float = 0.8) -> Estimate:
    """The smallest mean of n paired differences of this standard deviation that a t test finds."""
    rows = checked_count(n, "n")
    _spread(spread)
    _rates(alpha, power)
    if rows < 2:
        return Estimate.null("a t test needs two samples", n=rows, method="paired t")
    high = spread / math.sqrt(rows)
    while _t_power(high, rows, spread, alpha) < power:
        high *= 2.0
    value = _solve(lambda d: power - _t_power(d, rows, spread, alpha), high)
    return Estimate(value=value, n=rows, method="paired t")


def rows_needed_mean(difference: float, spread: float, *, alpha: float = 0.05, power: float = 0.8) -> Estimate:
    """How many paired differences a t test needs to find this mean."""
    _spread(spread)
    _rates(alpha, power)
    delta = abs(difference)
    if delta == 0.0:
        return Estimate.null("no number of samples finds a difference of 0", method="paired t")
    low, high = 1, 2
    while _t_power(delta, high, spread, alpha) < power:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _t_power(delta, middle, spread, alpha) >= power else (middle, high)
    return Estimate(value=float(high), method="paired t")


def _pairs(delta: float, psi: float, alpha: float, power: float) -> float:
    za, zb = normal_quantile(1.0 - alpha / 2.0), normal_quantile(power)
    return (za * math.sqrt(psi) + zb * math.sqrt(max(psi - delta * delta, 0.0))) ** 2 / (delta * delta)


def _t_power(delta: float, n: int, spread: float, alpha: float) -> float:
    from scipy.special import nctdtr, stdtrit

    freedom, shift = n - 1, delta / spread * math.sqrt(n)
    edge = float(stdtrit(freedom, 1.0 - alpha / 2.0))
    # SciPy gives NaN for some values below 1e-9, all at shifts above 7.
    missed, far = (float(nctdtr(freedom, shift, at)) for at in (edge, -edge))
    return 1.0 - (0.0 if math.isnan(missed) else missed) + (0.0 if math.isnan(far) else far)


def _solve(function: Callable[[float], float], high: float) -> float:
    """The root of a falling function on (0, high]."""
    from scipy.optimize import brentq

    return float(brentq(function, high * 1e-12, high, xtol=1e-15, rtol=1e-14))


def _share(value: float, name: str) -> float:
    if not 0.0 <= value <= 1.0:
        raise StatsError(f"{name} {value!r} is not between 0 and 1")
    return float(value)


def _spread(value: float) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise StatsError(f"spread {value!r} is not a positive number")


def _rates(alpha: float, power: float) -> None:
    if not (0.0 < alpha < 1.0 and alpha < power < 1.0):
        raise StatsError(f"alpha {alpha!r} and power {power!r} must satisfy 0 < alpha < power < 1")
