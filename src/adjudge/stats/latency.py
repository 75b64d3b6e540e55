"""Time until detection when some are never detected: the Kaplan–Meier restricted mean.

A miss is censored at the end of its window: it was not detected until then, and nothing more is known. Kaplan and
Meier 1958, JASA 53:457-481; restricted mean up to the latest time with Greenwood's variance (Klein and Moeschberger 2003, section 4.5).
"""

from __future__ import annotations

import math
from typing import NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import _checks, bootstrap
from adjudge.stats._checks import BoolArray, FloatArray, IntArray
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import normal_quantile


class Survival(NamedTuple):
    """The share not yet detected after each distinct time, with its counts."""

    times: FloatArray
    detected: IntArray
    at_risk: IntArray
    share: FloatArray


def survival(times: npt.ArrayLike, detected: npt.ArrayLike) -> Survival:
    """The Kaplan–Meier curve; at equal times detections come before censorings."""
    column, flags = _columns(times, detected)
    distinct, place = np.unique(column, return_inverse=True)
    events = np.bincount(place[flags], minlength=distinct.size)
    leaving = np.bincount(place, minlength=distinct.size)
    at_risk = column.size - np.cumsum(leaving) + leaving
    share = np.asarray(np.cumprod((at_risk - events) / at_risk), dtype=np.float64)
    return Survival(distinct, events, at_risk, share)


def restricted_mean(
    times: npt.ArrayLike,
    detected: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    **drawing: Unpack[bootstrap.Drawing],
) -> Estimate:
    """The mean time until detection or the latest time, whichever is first: the area under the curve up to it.

    Clusters are resampled when given, else the variance is Greenwood's.
    """
    level = bootstrap.level_of(drawing)
    column, flags = _columns(times, detected)
    if column.size == 0:
        return Estimate.null("no times", level=level, method="kaplan-meier restricted mean")
    end = float(column.max())
    if end == 0.0:
        raise StatsError("the latest time is 0; a mean up to it has no area")
    curve = survival(column, flags)
    edges = np.append(curve.times[curve.times < end], end)
    widths = np.diff(edges, prepend=0.0)
    share = np.concatenate([[1.0], curve.share[: edges.size - 1]])
    value = math.fsum(share * widths)
    if clusters is not None:
        counts, statistic = _by_cluster(column, flags, clusters, edges, widths)
        sizes = counts[:, edges.size :].sum(axis=1)
        return bootstrap.statistic_of_counts(counts, statistic, n=column.size, value=value, sizes=sizes, **drawing)
    later = np.cumsum((share * widths)[::-1])[::-1][1:]
    # Greenwood's d / (r (r - d)) at each time after which there is an area; the last, where nobody is left, has none.
    events, at_risk = curve.detected[: later.size], curve.at_risk[: later.size]
    terms = np.divide(events, at_risk * (at_risk - events), out=np.zeros(later.size), where=later > 0)
    half = normal_quantile(0.5 + level / 2.0) * math.sqrt(math.fsum(later**2 * terms))
    return Estimate(
        value=value,
        low=max(0.0, value - half),
        high=min(end, value + half),
        level=level,
        n=column.size,
        method=f"kaplan-meier restricted mean to {end:g}, greenwood",
    )


def _by_cluster(
    column: FloatArray, detected: BoolArray, clusters: npt.ArrayLike, edges: FloatArray, widths: FloatArray
) -> tuple[IntArray, bootstrap.Statistic]:
    """For each cluster how many are detected, and how many leave, at each step; the restricted mean of their sums."""
    group, m = _checks.groups(clusters, column.size)
    steps = edges.size
    # The latest times leave after the last step that matters.
    place = np.searchsorted(edges[:-1], column)
    events = np.bincount((group * steps + place)[detected], minlength=m * steps).reshape(-1, steps)
    leaving = np.bincount(group * steps + place, minlength=m * steps).reshape(-1, steps)

    def statistic(sums: FloatArray) -> FloatArray:
        drawn, gone = sums[:, :steps], sums[:, steps:]
        at_risk = gone.sum(axis=1, keepdims=True) - np.cumsum(gone, axis=1) + gone
        kept = np.divide(at_risk - drawn, at_risk, out=np.ones_like(at_risk), where=at_risk > 0)
        share = np.cumprod(kept[:, :-1], axis=1)
        return np.asarray(widths[0] + share @ widths[1:])

    return np.hstack([events, leaving]), statistic


def _columns(times: npt.ArrayLike, detected: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    column = _checks.column(times, "times")
    if column.size and column.min() < 0:
        raise StatsError("a time until detection is not negative")
    return column, _checks.flags(detected, "detected", column.size)
