"""Ranking measures by cluster from rows that were sorted once: AUROC, Recall@FPR, average precision, the best F1."""

from __future__ import annotations

import math
from typing import Unpack

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.stats import bootstrap
from adjudge.stats._checks import IntArray
from adjudge.stats.bootstrap import Drawing
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import cluster_wilson, normal_quantile
from adjudge.stats.ranking_bootstrap import Curve, PairCounts, RankedRows, average_precisions
from adjudge.stats.replicates import few

ONE_CLASS = "only one class is in the data: ranking needs positives and negatives"


def auroc(rows: RankedRows, **drawing: Unpack[Drawing]) -> Estimate:
    """The chance that a positive scores above a negative, ties counting half, with its cluster interval."""
    n, level = rows.code.size, bootstrap.level_of(drawing)
    if rows.one_class:
        return Estimate.null(ONE_CLASS, n=n, level=level)
    table = PairCounts(rows)
    value = table.value
    if value in {0.0, 1.0} and rows.m > 1:
        downs, ups = (rows.sizes > 0).sum(axis=0).tolist()
        low, high = newcombe_auroc(value, ups, downs, level=level)
        return Estimate(
            value=value,
            low=low,
            high=high,
            level=level,
            n=n,
            method="newcombe, every cluster counted as one row",
            warnings=few(rows.m, "cluster"),
        )
    units = bootstrap.Units(rows.m, n, rows.sizes.sum(axis=1))
    return bootstrap.resample(value, units, table.replicate, table.leave_one_out, **drawing)


def recall_at_fpr(curve: Curve, target: float, **drawing: Unpack[Drawing]) -> Estimate:
    """The largest true positive rate of a threshold whose false positive rate is at most the target."""
    n, hits, level = curve.place.size, curve.ups[-1].astype(np.int64), bootstrap.level_of(drawing)
    if not hits.any() or hits.sum() == n:
        return Estimate.null(ONE_CLASS, n=n, level=level)
    m, sizes = hits.size, hits + curve.downs[-1].astype(np.int64)
    value = float(curve.recall_at(np.ones((1, m)), target)[0])
    estimate = bootstrap.resample(
        value,
        bootstrap.Units(m, n, sizes),
        lambda drawn: curve.recall_at(drawn, target),
        lambda: curve.recall_at(1.0 - np.eye(m), target),
        **drawing,
    )
    return of_some_width(estimate, cluster_wilson(hits if value == 1.0 else 0 * hits, hits, level=level))


def average_precision(rows: RankedRows, **drawing: Unpack[Drawing]) -> Estimate:
    """Average precision with its cluster interval; every resample passes once over the sorted rows."""
    n, m = rows.code.size, rows.m
    ranked, _ = rows.falling
    if not ranked.positive.any():
        return Estimate.null("no positives", n=n, level=bootstrap.level_of(drawing))
    return bootstrap.resample(
        ranked.average_precision(),
        bootstrap.Units(m, n, rows.sizes.sum(axis=1)),
        lambda drawn: average_precisions(rows.code[::-1], ranked.ends, drawn),
        lambda: average_precisions(rows.code[::-1], ranked.ends, 1.0 - np.eye(m)),
        **drawing,
    )


def best_f1(rows: RankedRows) -> tuple[float, float] | None:
    """The largest F1 of any threshold on these very rows, and the threshold (calls at or above it); an upper bound."""
    ranked, _ = rows.falling
    total = int(rows.sizes[:, 1].sum())
    if total == 0:
        return None
    last = np.flatnonzero(ranked.ends)
    f1 = 2.0 * np.cumsum(ranked.positive)[last] / (last + 1 + total)
    best = int(np.argmax(f1))
    return float(f1[best]), float(rows.score[rows.score.size - 1 - last[best]])


def newcombe_auroc(value: float, positives: int, negatives: int, *, level: float = 0.95) -> tuple[float, float]:
    """The score interval of AUROC from the class sizes alone; of some width even at 0 and 1."""
    z = normal_quantile(0.5 + level / 2.0)
    half = (positives + negatives) / 2.0 - 1.0

    def reach(theta: float) -> float:
        spread = 1.0 + half * ((1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta))
        return z * math.sqrt(theta * (1.0 - theta) * spread / (positives * negatives))

    def solve(inside: float, outside: float) -> float:
        for _ in range(200):
            middle = (inside + outside) / 2.0
            if abs(value - middle) <= reach(middle):
                inside = middle
            else:
                outside = middle
        return inside

    return (0.0 if value == 0 else solve(value, 0.0)), (1.0 if value == 1 else solve(value, 1.0))


def largest_allowed(negatives: npt.NDArray[np.generic], target: float) -> IntArray:
    """The largest number of false positives whose rate among so many negatives is at most the target."""
    total = np.asarray(negatives, dtype=np.float64)
    guess = np.floor(total * target) + 1.0
    # A correctly rounded share k/n compares with a decimal target as the numbers meant do.
    for _ in range(2):
        with np.errstate(invalid="ignore", divide="ignore"):
            guess = np.where((guess > total) | (guess / total > target), guess - 1.0, guess)
    return np.maximum(guess, 0.0).astype(np.int64)


def of_some_width(estimate: Estimate, wilson_like: Estimate) -> Estimate:
    """The estimate; a share at 0 or 1 whose resamples all agree with the interval that Wilson gives it instead."""
    if estimate.low is None or estimate.low != estimate.high or estimate.value not in {0.0, 1.0}:
        return estimate
    method = f"{wilson_like.method}, over the positives"
    return msgspec.structs.replace(wilson_like, value=estimate.value, n=estimate.n, method=method)
