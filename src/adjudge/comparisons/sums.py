"""Statistics of summed columns: what each row adds, and the statistic of the sums.

A ratio, MCC or a calibration error is no mean of samples, but it follows from sums over them; so the two systems can be resampled
or swapped in whole samples (or clusters), and the statistic taken of the new sums. The last column counts the rows that take part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from adjudge.comparisons.outcomes import Floats, Outcome, all_hold, plain
from adjudge.stats import calibration, selective
from adjudge.stats.bootstrap import Statistic
from adjudge.stats.calibration import equal_width
from adjudge.stats.ranking import auroc_value
from adjudge.stats.resampling import quotient

_BLOCKS, _FEW_BLOCKS, _MANY_ROWS = 128, 32, 20_000
_STEP = 1e-4


@dataclass(frozen=True)
class Summed:
    """One outcome of two systems as columns to be summed, with the statistic, and its exact values where columns are coarse."""

    first: Floats
    second: Floats
    statistic: Statistic
    exact: tuple[float | None, float | None] | None = None

    def rows(self, keep: Any) -> Summed:
        """Some of the rows; all that take part must be among them."""
        return Summed(self.first[keep], self.second[keep], self.statistic, self.exact)

    def values(self) -> tuple[float | None, float | None]:
        """The statistic of each system; None where it is not defined."""
        return self.exact or (value_of(self.statistic, self.first), value_of(self.statistic, self.second))


def value_of(statistic: Statistic, columns: Floats) -> float | None:
    """The statistic of the exact sums of some columns."""
    sums = np.array([[math.fsum(column) for column in columns.T]])
    value = float(statistic(sums)[0]) if len(columns) else math.nan
    return None if math.isnan(value) else value


def influence(statistic: Statistic, columns: Floats) -> Floats:
    """What each unit adds to the statistic, to first order: their mean is its value, their spread its error.

    f(S) + ∇f(S)·(m·u − S) for units u with sum S, the gradient by central differences (Cochran 1977, Sampling Techniques, §6.3,
    for a ratio).
    """
    sums = columns.sum(axis=0)
    steps = np.eye(sums.size) * np.maximum(np.abs(sums), 1.0) * _STEP
    gradient = (statistic(sums + steps) - statistic(sums - steps)) / (2.0 * steps.diagonal())
    # A column that is 0 cannot go below: there the difference is one-sided, or it says nothing.
    gradient = np.where(np.isfinite(gradient), gradient, 0.0)
    value = float(statistic(sums[None])[0])
    added: Floats = value + (columns * len(columns) - sums) @ gradient
    return added


def summed(outcome: Outcome, first: pa.Table, second: pa.Table, inside: Any) -> Summed:
    """The columns of an outcome for two systems, over the rows that it is about."""
    if outcome.kind in _OF_CELLS:
        a, b = (_cells(outcome, rows) * inside[:, None] for rows in (first, second))
        return Summed(a, b, _OF_CELLS[outcome.kind])
    scores = [_Scores.of(outcome, rows, inside) for rows in (first, second)]
    if outcome.kind == "ece":
        a, b = (score.gaps(outcome.bins) for score in scores)
        return Summed(a, b, calibration.ece_of_sums, _exact(scores, partial(calibration.ece_value, bins=outcome.bins)))
    if outcome.kind in {"brier", "log_loss"}:
        a, b = (score.losses(outcome.kind) for score in scores)
        return Summed(a, b, _ratio)
    blocks = _blocks(scores)
    a, b = (score.blocks(blocks) for score in scores)
    return Summed(a, b, _CURVES[outcome.kind], _exact(scores, _CURVE_VALUES[outcome.kind]))


@dataclass(frozen=True)
class _Scores:
    """Confidences and whether they were right, of the rows that have a usable one; NaN elsewhere."""

    confidence: Floats
    right: Floats

    @classmethod
    def of(cls, outcome: Outcome, rows: pa.Table, inside: Any) -> _Scores:
        confidence = np.array(plain(rows.column(outcome.column)).to_numpy(zero_copy_only=False), dtype=np.float64)
        confidence[~(inside & all_hold(outcome.usable, rows))] = np.nan
        return cls(confidence, all_hold(outcome.right, rows).astype(np.float64))

    @property
    def used(self) -> Any:
        """Which rows take part."""
        return ~np.isnan(self.confidence)

    def gaps(self, bins: int) -> Floats:
        """Confidence minus right in each bin, and the count."""
        columns = np.zeros((self.right.size, bins + 1))
        rows = np.flatnonzero(self.used)
        columns[rows, equal_width(self.confidence[rows], bins)] = self.confidence[rows] - self.right[rows]
        columns[rows, bins] = 1.0
        return columns

    def losses(self, kind: str) -> Floats:
        """Brier's or the log loss of each row, and the count."""
        c, right = np.where(self.used, self.confidence, 0.5), self.right
        with np.errstate(divide="ignore"):
            loss = (c - right) ** 2 if kind == "brier" else -np.log(np.where(right > 0.5, c, 1.0 - c))
        return np.stack([np.where(self.used, loss, 0.0), self.used.astype(np.float64)], axis=1)

    def blocks(self, edges: Floats) -> Floats:
        """Right rows of each block by falling confidence, wrong rows of each, and the count."""
        m = edges.size
        columns = np.zeros((self.right.size, 2 * m + 1))
        rows = np.flatnonzero(self.used)
        block = np.searchsorted(-edges, -self.confidence[rows])
        columns[rows, block + m * (self.right[rows] < 0.5)] = 1.0
        columns[rows, 2 * m] = 1.0
        return columns


def _blocks(scores: Sequence[_Scores]) -> Floats:
    """The least confidence of each block, falling: every different one, or about equally many rows in each of fewer."""
    every = np.sort(np.concatenate([score.confidence[score.used] for score in scores]))[::-1]
    distinct = np.unique(every)[::-1]
    limit = _BLOCKS if every.size <= _MANY_ROWS else _FEW_BLOCKS
    if distinct.size <= limit:
        return distinct
    ends = (np.arange(1, limit + 1) * every.size) // limit - 1
    return np.unique(every[ends])[::-1]


def _exact(scores: Sequence[_Scores], value: Any) -> tuple[float | None, float | None]:
    first, second = (value(score.confidence[score.used], score.right[score.used] > 0.5) for score in scores)
    return first, second


def _cells(outcome: Outcome, rows: pa.Table) -> Floats:
    """Hits and base of a ratio; else a column a cell, and the count of rows that are in any."""
    if outcome.kind == "ratio":
        return np.stack([outcome.weights(outcome.hits, rows), outcome.weights(outcome.base, rows)], axis=1)
    cells = np.stack([outcome.weights([cell], rows) for cell in outcome.cells], axis=1)
    return np.column_stack([cells, (cells > 0.0).any(axis=1)])


def _ratio(sums: Floats) -> Floats:
    """Hits over base, NaN where there is no base."""
    return quotient(sums[:, 0], sums[:, 1])


def _balanced(sums: Floats) -> Floats:
    """The mean of hits over base, of cells that are hits and base in turn."""
    cells = sums[:, :-1]
    return np.asarray(quotient(cells[:, ::2], cells[:, 1::2]).mean(axis=1))


def _mcc(sums: Floats) -> Floats:
    """Matthews' correlation of the cells TP, FN, FP, TN; NaN where a margin is empty."""
    tp, fn, fp, tn = sums[:, :4].T
    margins = (tp + fn) * (tp + fp) * (tn + fp) * (tn + fn)
    return quotient(tp * tn - fp * fn, np.sqrt(np.maximum(margins, 0.0)))


def _area_of_sums(area: selective.Area, sums: Floats) -> Floats:
    return np.where(sums[:, -1] > 0.0, selective.area_of_counts(sums[:, :-1], area), np.nan)


def _auroc(sums: Floats) -> Floats:
    """The chance that a right answer is more confident than a wrong one, ties half."""
    right, wrong = np.split(sums[:, :-1], 2, axis=1)
    below = wrong.sum(axis=1)[:, None] - np.cumsum(wrong, axis=1)
    return quotient((right * (below + wrong / 2.0)).sum(axis=1), right.sum(axis=1) * wrong.sum(axis=1))


def _area(area: selective.Area, confidence: Floats, right: Any) -> float | None:
    areas = selective.areas(confidence, right)
    return None if areas is None else float(getattr(areas, area))


_OF_CELLS: dict[str, Statistic] = {"ratio": _ratio, "mcc": _mcc, "balanced": _balanced}
_AREAS: tuple[selective.Area, ...] = ("aurc", "e_aurc")
_CURVES: dict[str, Statistic] = {**{area: partial(_area_of_sums, area) for area in _AREAS}, "auroc": _auroc}
_CURVE_VALUES: dict[str, Any] = {**{area: partial(_area, area) for area in _AREAS}, "auroc": auroc_value}
