"""How well scores put positives above negatives: AUROC; Recall@FPR, average precision and the best F1 of rows sorted once.

AUROC is the Mann–Whitney count, held in integers as 2 · wins + ties. DeLong, DeLong and Clarke-Pearson 1988,
Biometrics 44:837-845, from placements found by sorting (Sun and Xu 2014, IEEE Signal Processing Letters
21:1389-1393). Where DeLong's variance is 0 the interval is Newcombe's (2006, Statistics in Medicine 25:559-573,
method 5). With clusters the interval is a cluster bootstrap (`ranking_bootstrap`).
"""

from __future__ import annotations

import math
from typing import NamedTuple, Unpack

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.stats.bootstrap import Drawing, Units, level_of, resample
from adjudge.stats.estimate import (
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    checked_column,
    checked_flags,
    checked_level,
    cluster_codes,
)
from adjudge.stats.proportions import cluster_wilson, normal_quantile
from adjudge.stats.ranking_bootstrap import Curve, PairCounts, RankedRows, average_precisions
from adjudge.stats.resampling import few

ONE_CLASS = "only one class is in the data: ranking needs positives and negatives"


def auroc(
    scores: npt.ArrayLike, positives: npt.ArrayLike, *, counts: IntArray | None = None, level: float = 0.95
) -> Estimate:
    """The chance that a positive scores above a negative, ties counting half, with DeLong's interval for independent rows.

    A row may stand for several equal ones: for as many as `counts` says.
    """
    column, positive = _columns(scores, positives)
    up, down = placements(column, positive, np.ones(column.size, dtype=np.int64) if counts is None else counts)
    level, n = checked_level(level), up.n + down.n
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
    scores: npt.ArrayLike, positives: npt.ArrayLike, clusters: npt.ArrayLike, **drawing: Unpack[Drawing]
) -> Estimate:
    """As `auroc`, of rows that come in clusters, which are resampled."""
    column, positive = _columns(scores, positives)
    return cluster_auroc(RankedRows.of(column, positive, *cluster_codes(clusters, column.size)), **drawing)


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
    column = checked_column(scores, "scores")
    return column, checked_flags(positives, "positives", column.size)


def cluster_auroc(rows: RankedRows, **drawing: Unpack[Drawing]) -> Estimate:
    """The chance that a positive scores above a negative, ties counting half, with its cluster interval."""
    n, level = rows.code.size, level_of(drawing)
    if rows.one_class:
        return Estimate.null(ONE_CLASS, n=n, level=level)
    table = PairCounts(rows)
    value = table.value
    if value in {0.0, 1.0} and rows.m > 1:
        downs, ups = (rows.sizes > 0).sum(axis=0).tolist()
        low, high = newcombe_auroc(value, ups, downs, level=level)
        method, warnings = "newcombe, every cluster counted as one row", few(rows.m, "cluster")
        return Estimate(value=value, low=low, high=high, level=level, n=n, method=method, warnings=warnings)
    units = Units(rows.m, n, rows.sizes.sum(axis=1))
    return resample(value, units, table.replicate, table.leave_one_out, **drawing)


def recall_at_fpr(curve: Curve, target: float, **drawing: Unpack[Drawing]) -> Estimate:
    """The largest true positive rate of a threshold whose false positive rate is at most the target."""
    n, hits, level = curve.place.size, curve.ups[-1].astype(np.int64), level_of(drawing)
    if not hits.any() or hits.sum() == n:
        return Estimate.null(ONE_CLASS, n=n, level=level)
    m, sizes = hits.size, hits + curve.downs[-1].astype(np.int64)
    value = float(curve.recall_at(np.ones((1, m)), target)[0])
    estimate = resample(
        value,
        Units(m, n, sizes),
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
        return Estimate.null("no positives", n=n, level=level_of(drawing))
    return resample(
        ranked.average_precision(),
        Units(m, n, rows.sizes.sum(axis=1)),
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


def of_some_width(estimate: Estimate, wilson_like: Estimate) -> Estimate:
    """The estimate; a share at 0 or 1 whose resamples all agree with the interval that Wilson gives it instead."""
    if estimate.low is None or estimate.low != estimate.high or estimate.value not in {0.0, 1.0}:
        return estimate
    method = f"{wilson_like.method}, over the positives"
    return msgspec.structs.replace(wilson_like, value=estimate.value, n=estimate.n, method=method)


class Placements(NamedTuple):
    """Whole numbers, each for `counts` rows: what DeLong's variance is made of."""

    places: IntArray
    counts: IntArray

    @property
    def n(self) -> int:
        """How many rows."""
        return int(self.counts.sum())

    def total(self) -> int:
        """Their sum."""
        return _whole_dot(self.places, self.counts)

    def squares(self) -> int:
        """The sum of their squares."""
        if int(self.places.max(initial=0)) * int(self.counts.max(initial=0)) < 2**62:
            return _whole_dot(self.places, self.places * self.counts)
        return sum(k * place * place for place, k in zip(self.places.tolist(), self.counts.tolist(), strict=True))

    def variance(self) -> float:
        """Their sample variance."""
        # Sums of whole numbers are exact, so no order of the rows can show.
        n = self.n
        return (n * self.squares() - self.total() ** 2) / (n * (n - 1))


def placements(column: FloatArray, positive: BoolArray, counts: IntArray) -> tuple[Placements, Placements]:
    """Per positive 2 · (negatives below) + ties, per negative 2 · (positives above) + ties, by rising score.

    Each score stands for `counts` rows.
    """
    sides = []
    for rows in (np.flatnonzero(positive), np.flatnonzero(~positive)):
        order = rows[np.argsort(column[rows])]
        sides.append((column[order], counts[order], np.append(0, np.cumsum(counts[order]))))
    (ups, of_ups, before_up), (downs, of_downs, before_down) = sides
    up = before_down[np.searchsorted(downs, ups, side="left")] + before_down[np.searchsorted(downs, ups, side="right")]
    down = before_up[np.searchsorted(ups, downs, side="left")] + before_up[np.searchsorted(ups, downs, side="right")]
    return Placements(up, of_ups), Placements(2 * int(before_up[-1]) - down, of_downs)


def variance_of_auroc(up: Placements, down: Placements) -> float | None:
    """DeLong's variance; None with fewer than two rows of a class."""
    if up.n < 2 or down.n < 2:
        return None
    return up.variance() / (2 * down.n) ** 2 / up.n + down.variance() / (2 * up.n) ** 2 / down.n


def _whole_dot(a: IntArray, b: IntArray) -> int:
    # Exact: in parts that fit 64 bits, else in whole numbers without a limit.
    largest = int(np.abs(a).max(initial=0)) * int(np.abs(b).max(initial=0))
    if largest * a.size < 2**62:
        return int(np.dot(a, b))
    total = 0
    for k in range(0, a.size, 1 << 16):
        x, y = a[k : k + (1 << 16)], b[k : k + (1 << 16)]
        if largest * x.size < 2**62:
            total += int(np.dot(x, y))
        else:
            total += sum(int(p) * int(q) for p, q in zip(x.tolist(), y.tolist(), strict=True))
    return total
