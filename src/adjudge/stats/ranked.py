"""Ranking measures by cluster from rows that were sorted once: AUROC, Recall@FPR, average precision, the best F1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from adjudge.stats import bootstrap, ranking_bootstrap
from adjudge.stats._checks import IntArray
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import cluster_wilson
from adjudge.stats.quantiles import normal_quantile
from adjudge.stats.ranking_bootstrap import Curve, PairCounts, RankedRows

ONE_CLASS = "only one class is in the data: ranking needs positives and negatives"


def auroc(rows: RankedRows, *, level: float = 0.95, **options: Any) -> Estimate:
    """The chance that a positive scores above a negative, ties counting half, with its cluster interval."""
    n = rows.code.size
    if rows.one_class:
        return Estimate.null(ONE_CLASS, n=n, level=level)
    table = PairCounts.of_ranked(rows)
    value = table.value
    if value in {0.0, 1.0} and rows.m > 1:
        ups, downs = table.positives, table.negatives
        low, high = newcombe_auroc(value, int((ups > 0).sum()), int((downs > 0).sum()), level=level)
        return Estimate(
            value=value,
            low=low,
            high=high,
            level=level,
            n=n,
            method="newcombe, every cluster counted as one row",
            warnings=bootstrap.few(rows.m, "cluster"),
        )
    return ranking_bootstrap.auroc(table, level=level, **options)


def recall_at_fpr(curve: Curve, target: float, *, level: float = 0.95, **options: Any) -> Estimate:
    """The largest true positive rate of a threshold whose false positive rate is at most the target."""
    hits = curve.ups[-1].astype(np.int64)
    if not hits.any() or hits.sum() == curve.place.size:
        return Estimate.null(ONE_CLASS, n=curve.place.size, level=level)
    found = ranking_bootstrap.recall_at_fpr(curve, target, level=level, **options)
    return of_some_width(found, cluster_wilson(hits if found.value == 1.0 else 0 * hits, hits, level=level))


def average_precision(rows: RankedRows, *, level: float = 0.95, **options: Any) -> Estimate:
    """Average precision with its cluster interval."""
    ranked, place = rows.falling
    if not ranked.positive.any():
        return Estimate.null("no positives", n=rows.code.size, level=level)
    value = ranked.average_precision()
    return ranking_bootstrap.average_precision(value, ranked, place, rows.m, level=level, **options)


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


def of_some_width(found: Estimate, wilson_like: Estimate) -> Estimate:
    """The interval of a share at 0 or 1 whose resamples all agree."""
    if found.low is None or found.low != found.high or found.value not in {0.0, 1.0}:
        return found
    return Estimate(
        value=found.value,
        low=wilson_like.low,
        high=wilson_like.high,
        level=found.level,
        n=found.n,
        method=f"{wilson_like.method}, over the positives",
        warnings=wilson_like.warnings,
    )
