"""How well scores put positives above negatives: AUROC with DeLong's interval.

AUROC is the Mann–Whitney count, held in integers as 2 · wins + ties. DeLong, DeLong and Clarke-Pearson 1988,
Biometrics 44:837-845, from placements found by sorting (Sun and Xu 2014, IEEE Signal Processing Letters
21:1389-1393). Where DeLong's variance is 0 the interval is Newcombe's (2006, Statistics in Medicine 25:559-573,
method 5). With clusters the interval is a cluster bootstrap (`ranked`, from rows sorted once).
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import _checks, bootstrap, ranked
from adjudge.stats._checks import BoolArray, FloatArray, IntArray
from adjudge.stats.estimate import Estimate
from adjudge.stats.placements import by_class, counted_placements, placements, variance_of_auroc
from adjudge.stats.proportions import normal_quantile
from adjudge.stats.ranked import ONE_CLASS, newcombe_auroc
from adjudge.stats.ranking_bootstrap import RankedRows


def auroc(
    scores: npt.ArrayLike,
    positives: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    counts: IntArray | None = None,
    seed: int = 0,
    stream: str = "auroc",
    level: float = 0.95,
    **resampling: Unpack[bootstrap.Resampling],
) -> Estimate:
    """The chance that a positive scores above a negative, ties counting half; DeLong's interval, or by cluster.

    Without clusters a row may stand for several equal ones: for as many as `counts` says.
    """
    column, positive = _columns(scores, positives)
    level = _checks.level(level)
    if _one_class(positive):
        n = column.size if counts is None else int(counts.sum())
        return Estimate.null(ONE_CLASS, n=n, level=level)
    if clusters is None:
        return _auroc_of_rows(column, positive, counts, level)
    return ranked.auroc(_ranked(column, positive, clusters), seed=seed, stream=stream, level=level, **resampling)


def auroc_value(scores: npt.ArrayLike, positives: npt.ArrayLike) -> float | None:
    """AUROC alone, or None with one class only."""
    column, positive = _columns(scores, positives)
    if _one_class(positive):
        return None
    ups, downs = (np.sort(scores_of_class) for scores_of_class in by_class(column, positive))
    return _doubled_wins(ups, downs) / (2 * ups.size * downs.size)


def _auroc_of_rows(column: FloatArray, positive: BoolArray, counts: IntArray | None, level: float) -> Estimate:
    up, down = placements(column, positive) if counts is None else counted_placements(column, positive, counts)
    value = up.total() / (2 * up.n * down.n)
    variance = variance_of_auroc(up, down)
    n = up.n + down.n
    if not variance or value in {0.0, 1.0}:
        low, high = newcombe_auroc(value, up.n, down.n, level=level)
        return Estimate(value=value, low=low, high=high, level=level, n=n, method="newcombe")
    # On the logit scale the interval stays within 0 and 1 (Pepe 2003, section 5.2).
    half = normal_quantile(0.5 + level / 2.0) * math.sqrt(variance) / (value * (1.0 - value))
    middle = math.log(value / (1.0 - value))
    low, high = (_share_of_logit(middle + way * half) for way in (-1, 1))
    return Estimate(value=value, low=low, high=high, level=level, n=n, method="delong, logit scale")


def _share_of_logit(x: float) -> float:
    smaller = math.exp(-abs(x)) / (1.0 + math.exp(-abs(x)))
    return smaller if x < 0 else 1.0 - smaller


def _doubled_wins(ups: FloatArray, downs: FloatArray) -> int:
    if ups.size > downs.size:
        # Search the shorter column: wins over it are all pairs less its own wins.
        return 2 * ups.size * downs.size - _doubled_wins_by_search(downs, ups)
    return _doubled_wins_by_search(ups, downs)


def _doubled_wins_by_search(ups: FloatArray, downs: FloatArray) -> int:
    smaller = np.searchsorted(downs, ups, side="left")
    tied = downs[np.minimum(smaller, downs.size - 1)] == ups
    total = 2 * int(smaller.sum())
    if tied.any():
        total += int((np.searchsorted(downs, ups[tied], side="right") - smaller[tied]).sum())
    return total


def _columns(scores: npt.ArrayLike, positives: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    column = _checks.column(scores, "scores")
    flags = np.asarray(positives)
    if flags.dtype.kind != "b":
        if flags.size and not np.isin(flags, (0, 1)).all():
            raise StatsError("positives holds values other than true and false")
        flags = flags.astype(bool)
    _checks.same_length(column.size, flags.size, "positives")
    return column, flags


def _ranked(column: FloatArray, positive: BoolArray, clusters: npt.ArrayLike) -> RankedRows:
    labels = np.asarray(clusters)
    _checks.same_length(column.size, labels.size, "clusters")
    if labels.dtype.kind in "iu" and labels.size and labels.min() >= 0 and labels.max() < 4 * labels.size:
        # Small whole numbers need no sorting to be counted.
        used = np.bincount(labels.astype(np.int64)) > 0
        return RankedRows.of(column, positive, (np.cumsum(used) - 1)[labels], int(used.sum()))
    names, place = np.unique(labels, return_inverse=True)
    return RankedRows.of(column, positive, place.astype(np.int64), names.size)


def _one_class(positive: BoolArray) -> bool:
    ups = int(np.count_nonzero(positive))
    return ups in {0, positive.size}
