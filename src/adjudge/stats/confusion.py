"""The confusion table with its abstentions, errors and missing answers, and what follows from it.

Every row of the data is in exactly one cell: truth × (label answered, abstained, errored, missing). A measure is
taken over `all` rows, where no answer is a wrong answer, or over the `answered` ones. MCC is Gorodkin's for K classes
(Gorodkin 2004, Computational Biology and Chemistry 28:367-374), which for two classes is Matthews'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Unpack

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import bootstrap
from adjudge.stats.bootstrap import multinomial_cells
from adjudge.stats.estimate import Estimate, FloatArray, IntArray, checked_level
from adjudge.stats.proportions import cluster_wilson, wilson
from adjudge.stats.resampling import quotient

NO_ANSWER = ("abstained", "errored", "missing")
Over = Literal["all", "answered"]
Mask = npt.NDArray[np.bool_]
"""Some of the cells of a table."""


@dataclass(frozen=True)
class Confusion:
    """Counts[truth, answer], the answers being the labels, then abstained, errored, missing; per cluster if known."""

    labels: tuple[str, ...]
    counts: IntArray
    by_cluster: IntArray | None = None

    @property
    def n(self) -> int:
        """All rows."""
        return int(self.counts.sum())

    def over(self, over: Over) -> Confusion:
        """The table over all rows, or over the answered ones (without the last three columns)."""
        if over == "all":
            return self
        k = len(self.labels)
        by_cluster = None if self.by_cluster is None else self.by_cluster[:, :, :k]
        return Confusion(self.labels, self.counts[:, :k], by_cluster)

    def mask(self, truth: str | None = None, answer: str | None = None) -> Mask:
        """The cells of one true class, of one answer, of both, or all of them."""
        cells: Mask = np.ones(self.counts.shape, dtype=bool)
        if truth is not None:
            cells &= (np.arange(len(self.labels)) == self.place(truth))[:, None]
        if answer is not None:
            cells &= np.arange(self.counts.shape[1]) == (*self.labels, *NO_ANSWER).index(answer)
        return cells

    def place(self, label: str) -> int:
        """Where a label stands."""
        try:
            return self.labels.index(label)
        except ValueError:
            raise StatsError(f"label {label!r} is not one of {', '.join(self.labels)}") from None


def f1(confusion: Confusion, label: str, *, over: Over = "answered", **drawing: Unpack[bootstrap.Drawing]) -> Estimate:
    """2 TP / (2 TP + FP + FN) of a class; null when no row has the class and none was given it.

    Where all or none of TP + FP + FN are TP every resample has the same F1. The interval is then Wilson's for the share
    J = TP / (TP + FP + FN), carried over by F1 = 2J / (1 + J).
    """
    seen = confusion.over(over)
    hit = seen.mask(label, label)
    miss = (seen.mask(label) | seen.mask(answer=label)) & ~hit
    right, wrong = int(seen.counts[hit].sum()), int(seen.counts[miss].sum())
    if right + wrong and not (right and wrong):
        share = _rate(seen, hit, hit | miss, "", bootstrap.level_of(drawing)).mapped(lambda j: 2.0 * j / (1.0 + j))
        return msgspec.structs.replace(share, n=seen.n, method=f"{share.method} on TP / (TP + FP + FN)")
    why = f"no row has the class {label!r} and none was given it {_rows(over)}"
    return _bootstrap(seen, _f1, why, masks=(hit, miss, ~(hit | miss)), **drawing)


def balanced_accuracy(
    confusion: Confusion, *, over: Over = "answered", **drawing: Unpack[bootstrap.Drawing]
) -> Estimate:
    """The plain mean of the classes' recalls; null when a class has no rows."""
    seen = confusion.over(over)
    k = len(seen.labels)
    empty = [label for label, rows in zip(seen.labels, seen.counts.sum(axis=1), strict=True) if rows == 0]
    hits = [seen.mask(label, label) for label in seen.labels]
    misses = [seen.mask(label) & ~hit for label, hit in zip(seen.labels, hits, strict=True)]

    def statistic(cells: FloatArray) -> FloatArray:
        return np.asarray(quotient(cells[:, :k], cells[:, :k] + cells[:, k:]).mean(axis=1))

    why = f"no rows of class {', '.join(map(repr, empty))} {_rows(over)}"
    return _bootstrap(seen, statistic, why, masks=(*hits, *misses), **drawing)


def mcc(confusion: Confusion, *, over: Over = "answered", **drawing: Unpack[bootstrap.Drawing]) -> Estimate:
    """Matthews' correlation of truth and answer; null when either is the same on every row."""
    seen = confusion.over(over)
    k = len(seen.labels)

    def statistic(cells: FloatArray) -> FloatArray:
        tables = cells.reshape(-1, *seen.counts.shape)
        n = tables.sum(axis=(1, 2))
        truth, answer = tables.sum(axis=2), tables.sum(axis=1)
        right = np.trace(tables[:, :, :k], axis1=1, axis2=2)
        cross = right * n - (truth * answer[:, :k]).sum(axis=1)
        spread = (n**2 - (answer**2).sum(axis=1)) * (n**2 - (truth**2).sum(axis=1))
        return quotient(cross, np.sqrt(spread))

    why = f"truth or answer is the same on every row {_rows(over)}"
    return _bootstrap(seen, statistic, why, value=_mcc(seen.counts, k), **drawing)


def _mcc(counts: IntArray, k: int) -> float | None:
    cells = [[int(cell) for cell in row] for row in counts]
    truth, answer = [sum(row) for row in cells], [sum(column) for column in zip(*cells, strict=True)]
    n = sum(truth)
    cross = sum(cells[i][i] for i in range(k)) * n - sum(t * a for t, a in zip(truth, answer, strict=False))
    spread = (n * n - sum(a * a for a in answer)) * (n * n - sum(t * t for t in truth))
    return cross / math.sqrt(spread) if spread else None


def _bootstrap(
    seen: Confusion,
    statistic: bootstrap.Statistic,
    why: str,
    *,
    masks: Sequence[Mask] | None = None,
    value: float | None = None,
    **drawing: Unpack[bootstrap.Drawing],
) -> Estimate:
    """A statistic of the cells, or of the sums over `masks` of them, from resampled rows or clusters."""
    if seen.n == 0:
        return Estimate.null(why, level=bootstrap.level_of(drawing))
    if seen.by_cluster is None:
        cells = seen.counts.ravel() if masks is None else np.array([seen.counts[mask].sum() for mask in masks])
        return multinomial_cells(cells, statistic, value=value, why_null=why, **drawing)
    sizes = seen.by_cluster.sum(axis=(1, 2))
    used, sizes = seen.by_cluster[sizes > 0], sizes[sizes > 0]
    per_cluster = (
        used.reshape(len(used), -1) if masks is None else np.column_stack([used[:, mask].sum(axis=1) for mask in masks])
    )
    return bootstrap.statistic_of_counts(
        per_cluster, statistic, n=seen.n, value=value, sizes=sizes, why_null=why, **drawing
    )


def _rate(seen: Confusion, hits: Mask, base: Mask, why: str, level: float) -> Estimate:
    """The rows in `hits` as a share of those in `base`."""
    n = int(seen.counts[base].sum())
    if n == 0:
        return Estimate.null(why, level=checked_level(level), method="wilson")
    if seen.by_cluster is None:
        return wilson(int(seen.counts[hits].sum()), n, level=level)
    return cluster_wilson(seen.by_cluster[:, hits].sum(axis=1), seen.by_cluster[:, base].sum(axis=1), level=level)


def _f1(cells: FloatArray) -> FloatArray:
    return quotient(2.0 * cells[:, 0], 2.0 * cells[:, 0] + cells[:, 1])


def _rows(over: Over) -> str:
    return "among the answered" if over == "answered" else "in the data"
