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

from adjudge.stats import _checks, bootstrap, ranked
from adjudge.stats._checks import BoolArray, FloatArray, IntArray
from adjudge.stats.estimate import Estimate
from adjudge.stats.placements import placements, variance_of_auroc
from adjudge.stats.proportions import normal_quantile
from adjudge.stats.ranked import ONE_CLASS, newcombe_auroc
from adjudge.stats.ranking_bootstrap import RankedRows


def auroc(
    scores: npt.ArrayLike, positives: npt.ArrayLike, *, counts: IntArray | None = None, level: float = 0.95
) -> Estimate:
    """The chance that a positive scores above a negative, ties counting half, with DeLong's interval for independent rows.

    A row may stand for several equal ones: for as many as `counts` says.
    """
    column, positive = _columns(scores, positives)
    up, down = placements(column, positive, np.ones(column.size, dtype=np.int64) if counts is None else counts)
    level, n = _checks.level(level), up.n + down.n
    if not (up.n and down.n):
        return Estimate.null(ONE_CLASS, n=n, level=level)
    value = up.total() / (2 * up.n * down.n)
    variance = variance_of_auroc(up, down)
    if not variance or value in {0.0, 1.0}:
        low, high = newcombe_auroc(value, up.n, down.n, level=level)
        return Estimate(value=value, low=low, high=high, level=level, n=n, method="newcombe")
    # On the logit scale the interval stays within 0 and 1 (Pepe 2003, section 5.2).
    half = normal_quantile(0.5 + level / 2.0) * math.sqrt(variance) / (value * (1.0 - value))
    middle = math.log(value / (1.0 - value))
    low, high = (_share_of_logit(middle + way * half) for way in (-1, 1))
    return Estimate(value=value, low=low, high=high, level=level, n=n, method="delong, logit scale")


def auroc_by_cluster(
    scores: npt.ArrayLike, positives: npt.ArrayLike, clusters: npt.ArrayLike, **drawing: Unpack[bootstrap.Drawing]
) -> Estimate:
    """As `auroc`, of rows that come in clusters, which are resampled."""
    column, positive = _columns(scores, positives)
    return ranked.auroc(RankedRows.of(column, positive, *_checks.groups(clusters, column.size)), **drawing)


def auroc_value(scores: npt.ArrayLike, positives: npt.ArrayLike) -> float | None:
    """AUROC alone, or None with one class only."""
    column, positive = _columns(scores, positives)
    # Indices are several times faster here than masks.
    ups, downs = (np.sort(column[np.flatnonzero(rows)]) for rows in (positive, ~positive))
    if not (ups.size and downs.size):
        return None
    below, up_to = (int(np.searchsorted(downs, ups, side=side).sum()) for side in ("left", "right"))
    return (below + up_to) / (2 * ups.size * downs.size)


def _share_of_logit(x: float) -> float:
    smaller = math.exp(-abs(x)) / (1.0 + math.exp(-abs(x)))
    return smaller if x < 0 else 1.0 - smaller


def _columns(scores: npt.ArrayLike, positives: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    column = _checks.column(scores, "scores")
    return column, _checks.flags(positives, "positives", column.size)
