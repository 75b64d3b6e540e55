"""From the replicates of a statistic to its interval.

Percentile; BCa (Efron 1987, JASA 82:171-185); expanded percentile (Hesterberg 2015, The American Statistician
69:371-386), which widens the percentile levels by Student's t and by sqrt(m/(m-1)) and is the default. Where clusters
differ in size, m is their effective number (Σ size)² / Σ size².
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np

from adjudge.errors import StatsError
from adjudge.stats.estimate import Estimate, FloatArray
from adjudge.stats.proportions import FEW_CLUSTERS, normal_cdf, normal_quantile, student_quantile

Method = Literal["expanded", "percentile", "bca"]

NAMES: dict[Method, str] = {"expanded": "expanded percentile", "percentile": "percentile", "bca": "BCa"}


Jackknife = Callable[[], tuple[FloatArray, FloatArray | None]]
"""Gives the leave-one-out values, and how often each counts where they do not count alike; BCa alone asks for them."""


def interval_of(
    estimate: Estimate,
    replicates: FloatArray,
    method: Method,
    *,
    units: float,
    strata: int = 1,
    jackknife: Jackknife | None = None,
    probabilities: FloatArray | None = None,
) -> Estimate:
    """The estimate with its interval from replicates of `units` resampled units.

    Undefined replicates (NaN) are left out and reported; `probabilities` are those of the replicates where they differ.
    """
    value, level, warnings = estimate.value, estimate.level, estimate.warnings
    assert value is not None  # noqa: S101 -- a statistic without a value is not resampled
    defined = np.isfinite(replicates)
    kept = int(defined.sum())
    if kept < replicates.size:
        lost = replicates.size - kept
        warnings = (*warnings, f"undefined in {lost} of {replicates.size} resamples, which the interval leaves out")
        replicates = replicates[defined]
        probabilities = None if probabilities is None else probabilities[defined] / probabilities[defined].sum()
    if 2 * kept < defined.size or kept == 0:
        warnings = (*warnings, "no interval: the statistic is undefined in most resamples")
        return msgspec.structs.replace(estimate, warnings=warnings)
    if method == "bca":
        if jackknife is None:
            raise StatsError("BCa needs the leave-one-out values of the statistic")
        acceleration = _acceleration(*jackknife())
        bounds = _bca_levels(value, replicates, probabilities, acceleration, level)
    elif method == "expanded":
        bounds = _expanded_levels(units, strata, level)
    else:
        bounds = ((1.0 - level) / 2.0, 0.5 + level / 2.0)
    low, high = _quantiles(replicates, probabilities, bounds)
    if low == high:
        warnings = (*warnings, "all resamples agree: an interval of no width says nothing about data not seen")
    return msgspec.structs.replace(estimate, low=low, high=high, warnings=warnings)


def quotient(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """A statistic of each resample as a ratio; NaN, which is undefined, where it would be over nothing."""
    ratio: FloatArray = np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom > 0)
    return ratio


def few(m: int, unit: str, distinct: int = 0) -> tuple[str, ...]:
    """The warning of an interval over fewer than ten units, which may have so many distinct resamples."""
    if m >= FEW_CLUSTERS:
        return ()
    known = f", which have {distinct} distinct resamples" if distinct else ""
    return (f"only {m} {unit}s{known}: an interval over fewer than {FEW_CLUSTERS} is a rough guide",)


def _expanded_levels(units: float, strata: int, level: float) -> tuple[float, float]:
    freedom = max(units - strata, 1.0)
    reach = math.sqrt(units / freedom) * student_quantile(freedom, 0.5 + level / 2.0)
    return normal_cdf(-reach), normal_cdf(reach)


def _bca_levels(
    value: float, replicates: FloatArray, probabilities: FloatArray | None, acceleration: float, level: float
) -> tuple[float, float]:
    share = np.full(replicates.size, 1.0 / replicates.size) if probabilities is None else probabilities
    below = float(share[replicates < value].sum()) + 0.5 * float(share[replicates == value].sum())
    edge = 0.5 / replicates.size
    bias = normal_quantile(min(max(below, edge), 1.0 - edge))
    z = normal_quantile(0.5 + level / 2.0)
    ends = []
    for quantile in (-z, z):
        scale = 1.0 - acceleration * (bias + quantile)
        shifted = bias + (bias + quantile) / scale if scale > 0 else math.copysign(math.inf, quantile)
        ends.append(normal_cdf(shifted))
    return ends[0], ends[1]


def _acceleration(jackknife: FloatArray, jackknife_weights: FloatArray | None) -> float:
    defined = np.isfinite(jackknife)
    moves = jackknife[defined]
    share = np.ones(moves.size) if jackknife_weights is None else jackknife_weights[defined]
    moves = (share @ moves) / share.sum() - moves
    spread = float(share @ moves**2)
    return 0.0 if spread == 0 else float(share @ moves**3) / (6.0 * spread**1.5)


def _quantiles(
    replicates: FloatArray, probabilities: FloatArray | None, bounds: tuple[float, float]
) -> tuple[float, float]:
    if probabilities is None:
        low, high = np.quantile(replicates, bounds, method="weibull").tolist()
        return float(low), float(high)
    order = np.argsort(replicates, kind="stable")
    ordered, cumulative = replicates[order], np.cumsum(probabilities[order])
    first = int(np.searchsorted(cumulative, bounds[0] - 1e-12))
    last = int(np.searchsorted(cumulative, bounds[1] - 1e-12))
    return float(ordered[min(first, ordered.size - 1)]), float(ordered[min(last, ordered.size - 1)])
