"""Detection in sequences of scores: thresholds, runs of exceedances and the alarms they raise, the time until one is raised.

An alarm is raised at the row where the N-th consecutive exceedance falls. A run never crosses the start of a
sequence; where only runs that begin inside a window count, the window's first row is the start of a sequence of its
own. Everything is whole-column logic: a window of N rows is all true when two overlapping windows of a power of two
are.

A miss is censored at the end of its window: it was not detected until then, and nothing more is known. Kaplan and Meier
1958, JASA 53:457-481; restricted mean up to the latest time with Greenwood's variance (Klein and Moeschberger 2003,
section 4.5).
"""

from __future__ import annotations

import math
from typing import NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import bootstrap
from adjudge.stats.estimate import (
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    check_same_length,
    checked_column,
    checked_count,
    checked_flags,
    cluster_codes,
)
from adjudge.stats.proportions import normal_quantile
from adjudge.stats.ranking_bootstrap import largest_allowed


def exceeded_by_at_most(scores: npt.ArrayLike, target: float) -> float:
    """The smallest score of the column of which at most target · n scores lie strictly above; no interpolation."""
    column = checked_column(scores, "scores")
    if column.size == 0:
        raise StatsError("a threshold needs scores")
    if not 0.0 < target < 1.0:
        raise StatsError(f"target {target!r} is not between 0 and 1")
    allowed = int(largest_allowed(np.array([column.size]), target)[0])
    place = column.size - 1 - min(allowed, column.size - 1)
    return float(np.partition(column, place)[place])


def needed(target: float) -> int:
    """How many scores a threshold at this share needs: with fewer, not one may lie above it."""
    return math.ceil(1.0 / target - 1e-9)


def first_reaching(sizes: npt.ArrayLike, hits: npt.ArrayLike, totals: npt.ArrayLike, target: float) -> float | None:
    """The smallest size whose share of hits, fitted to never fall with the size, is at least the target; else None.

    Isotonic regression weighted by the totals (Barlow et al. 1972); no extrapolation, no interpolation.
    """
    from scipy.optimize import isotonic_regression

    where, share_of = np.unique(checked_column(sizes, "sizes"), return_inverse=True)
    hits_of_size = np.bincount(share_of, weights=np.asarray(hits, dtype=np.float64), minlength=where.size)
    out_of = np.bincount(share_of, weights=np.asarray(totals, dtype=np.float64), minlength=where.size)
    used = out_of > 0
    if not used.any():
        return None
    fitted: FloatArray = isotonic_regression(hits_of_size[used] / out_of[used], weights=out_of[used]).x
    reached = np.flatnonzero(fitted >= target - 1e-12)
    return float(where[used][reached[0]]) if reached.size else None


def runs(over: npt.ArrayLike, starts: npt.ArrayLike, length: int) -> BoolArray:
    """True where a run of at least `length` consecutive exceedances of the same sequence stands."""
    exceeds, first = _exceedances(over, starts)
    if checked_count(length, "length") == 0:
        raise StatsError("a run has at least one row; length is 0")
    if length == 1:
        return exceeds.copy()
    # A window lies in one sequence when none of its rows but the first is a start.
    return _all_of_last(exceeds, length) & _all_of_last(~first, length - 1)


def first_alarms(over: npt.ArrayLike, starts: npt.ArrayLike, length: int) -> IntArray:
    """For each sequence the row, counted from its start, where its first alarm falls, or -1 where there is none."""
    standing, (_, first) = runs(over, starts, length), _exceedances(over, starts)
    begin = np.flatnonzero(first)
    alarms = np.flatnonzero(standing)
    place = np.searchsorted(alarms, begin)
    followed = place < alarms.size
    row = np.where(followed, alarms[np.minimum(place, max(alarms.size - 1, 0))] if alarms.size else 0, 0)
    end = np.append(begin[1:], first.size)
    return np.where(followed & (row < end), row - begin, -1).astype(np.int64)


def alarm_events(over: npt.ArrayLike, starts: npt.ArrayLike, length: int) -> IntArray:
    """For each sequence the number of alarms: a run that goes on is one alarm, however long."""
    standing, (_, first) = runs(over, starts, length), _exceedances(over, starts)
    onset = standing.copy()
    onset[1:] &= ~standing[:-1] | first[1:]
    begin = np.flatnonzero(first)
    if begin.size == 0:
        return np.zeros(0, dtype=np.int64)
    return np.add.reduceat(onset.astype(np.int64), begin)


def _all_of_last(flags: BoolArray, width: int) -> BoolArray:
    # True where this row and the width - 1 before it are; rows with fewer before them are not.
    result = flags.copy()
    have = 1
    while have < width:
        step = min(have, width - have)
        wider = np.zeros_like(result)
        np.logical_and(result[step:], result[:-step], out=wider[step:])
        result, have = wider, have + step
    return result


def _exceedances(over: npt.ArrayLike, starts: npt.ArrayLike) -> tuple[BoolArray, BoolArray]:
    exceeds, first = np.asarray(over), np.asarray(starts)
    for flags, name in ((exceeds, "over"), (first, "starts")):
        if flags.dtype != np.bool_ or flags.ndim != 1:
            raise StatsError(f"{name} must be a column of true and false")
    check_same_length(exceeds.size, first.size, "starts")
    if first.size and not first[0]:
        raise StatsError("the first row must start a sequence")
    return exceeds, first


class Survival(NamedTuple):
    """The share not yet detected after each distinct time, with its counts."""

    times: FloatArray
    detected: IntArray
    at_risk: IntArray
    share: FloatArray


def survival(times: npt.ArrayLike, detected: npt.ArrayLike) -> Survival:
    """The Kaplan–Meier curve; at equal times detections come before censorings."""
    column, flags = _times(times, detected)
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
    column, flags = _times(times, detected)
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
    low, high, method = (
        max(0.0, value - half),
        min(end, value + half),
        f"kaplan-meier restricted mean to {end:g}, greenwood",
    )
    return Estimate(value=value, low=low, high=high, level=level, n=column.size, method=method)


def _by_cluster(
    column: FloatArray, detected: BoolArray, clusters: npt.ArrayLike, edges: FloatArray, widths: FloatArray
) -> tuple[IntArray, bootstrap.Statistic]:
    """For each cluster how many are detected, and how many leave, at each step; the restricted mean of their sums."""
    group, m = cluster_codes(clusters, column.size)
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


def _times(times: npt.ArrayLike, detected: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    column = checked_column(times, "times")
    if column.size and column.min() < 0:
        raise StatsError("a time until detection is not negative")
    return column, checked_flags(detected, "detected", column.size)
