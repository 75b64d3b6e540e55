"""What is the error if only the most confident answers are kept? Risk–coverage curve, AURC, E-AURC.

Rows of equal confidence have no order, so the errors of a tie block are spread evenly over it: row order changes
nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, Unpack

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats.bootstrap import Drawing, Statistic, level_of, several_of_cells, statistic_of_counts
from adjudge.stats.calibration import Tally
from adjudge.stats.estimate import Estimate, FloatArray, IntArray, checked_column, checked_flags, cluster_codes
from adjudge.stats.proportions import wilson

Area = Literal["aurc", "e_aurc"]
_ROW_BLOCKS = 512
_CLUSTER_BLOCKS = 128
_ROWS_OF_A_LARGE_BLOCK = 1000  # from so many rows a tie block on, harmonic numbers lose nothing and save a look at each


class Areas(msgspec.Struct, frozen=True, kw_only=True):
    """The areas of one risk–coverage curve."""

    aurc: float
    e_aurc: float


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """Answering at `threshold` and above: the share answered, and the error among the answered with its interval."""

    threshold: float
    answered: int
    coverage: float
    risk: Estimate


@dataclass(frozen=True)
class Blocks:
    """Tie blocks by falling confidence, the partial of every selective measure: confidence, rows, wrong rows."""

    confidence: FloatArray
    size: IntArray
    wrong: IntArray

    @classmethod
    def partial(cls, confidence: npt.ArrayLike, correct: npt.ArrayLike) -> Blocks:
        """Of a batch of rows. Confidences may be any finite scores."""
        # Adding 0.0 turns -0.0 into 0.0.
        c = checked_column(confidence, "confidence") + 0.0
        wrong = ~checked_flags(correct, "correct", c.size)
        return cls._gathered(c, np.ones(c.size, dtype=np.int64), wrong.astype(np.int64))

    @classmethod
    def of(cls, tally: Tally) -> Blocks:
        """Of rows that are counted already."""
        return cls._gathered(tally.doubles() + 0.0, tally.counts, tally.counts * (1 - tally.correct))

    def merge(self, other: Blocks) -> Blocks:
        """The tie blocks of both parts, as if the rows had been one column."""
        return Blocks._gathered(
            np.concatenate([self.confidence, other.confidence]),
            np.concatenate([self.size, other.size]),
            np.concatenate([self.wrong, other.wrong]),
        )

    @classmethod
    def _gathered(cls, confidence: FloatArray, size: IntArray, wrong: IntArray) -> Blocks:
        """Of counted rows, those of equal confidence put together."""
        rising, place = np.unique(confidence, return_inverse=True)
        rows, errors = (
            np.bincount(place, weights=counts, minlength=rising.size).astype(np.int64)[::-1].copy()
            for counts in (size, wrong)
        )
        return cls(rising[::-1].copy(), rows, errors)

    def finish(self) -> Areas | None:
        """The areas, worked out once; None without rows."""
        return self._areas

    @cached_property
    def _areas(self) -> Areas | None:
        """AURC and E-AURC; None without rows.

        AURC = (1/n)·Σ_k (errors among the k most confident)/k (Geifman, Uziel, El-Yaniv 2019, ICLR). E-AURC subtracts
        the same sum with all errors last.
        """
        n, errors = int(self.size.sum()), int(self.wrong.sum())
        if n == 0:
            return None
        if self.size.size * _ROWS_OF_A_LARGE_BLOCK < n:
            aurc = float(area_of_counts(np.concatenate([self.size - self.wrong, self.wrong])[None, :] * 1.0, "aurc")[0])
        else:
            aurc = self._by_row()
        return Areas(aurc=aurc, e_aurc=aurc - _best(n, errors))

    def _by_row(self) -> float:
        """AURC row by row."""
        n = int(self.size.sum())
        k = np.arange(1, n + 1, dtype=np.float64)
        if self.size.size == n:
            so_far = np.cumsum(self.wrong).astype(np.float64)
        else:
            start = np.cumsum(self.size) - self.size
            step = np.repeat(self.wrong / self.size, self.size)
            before = np.cumsum(self.wrong) - self.wrong
            so_far = np.repeat(before, self.size) + (k - np.repeat(start, self.size)) * step
        return float((so_far / k).sum()) / n


def areas(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> Areas | None:
    """AURC and E-AURC of a column of confidences; None without rows."""
    return Blocks.partial(confidence, correct).finish()


def selective_areas(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    wanted: Sequence[Area],
    *,
    clusters: npt.ArrayLike | None = None,
    blocks: Blocks | None = None,
    **drawing: Unpack[Drawing],
) -> list[Estimate]:
    """Some of the areas with bootstrap intervals from the same resamples, by cluster when given; null without rows.

    `blocks` are the tie blocks of the columns, where the caller has them.

    Resampled are blocks of neighbouring confidences (at most 512, or 128 by cluster) with their right and wrong rows;
    the replicates are moved by the small difference that the blocks make to the value itself.
    """
    for area in wanted:
        if area not in {"aurc", "e_aurc"}:
            raise StatsError(f"area {area!r} is not one of aurc, e_aurc")
    blocks = blocks or Blocks.partial(confidence, correct)
    whole = blocks.finish()
    if whole is None:
        return [Estimate.null("no rows with a confidence", level=level_of(drawing)) for _ in wanted]
    n = int(blocks.size.sum())
    limit = _ROW_BLOCKS if clusters is None else _CLUSTER_BLOCKS
    coarse = _coarse(blocks.size, limit)
    m = int(coarse[-1]) + 1
    size, wrong = (np.bincount(coarse, weights=part, minlength=m) for part in (blocks.size, blocks.wrong))
    cells = np.concatenate([size - wrong, wrong])
    functions = [_moved(area, float(getattr(whole, area)), cells) for area in wanted]
    if clusters is None:
        return several_of_cells(cells.astype(np.int64), functions, **drawing)
    cluster, clusters_in_all = cluster_codes(clusters, n)
    c = np.asarray(confidence, dtype=np.float64)
    where = coarse[np.searchsorted(-blocks.confidence, -c)]
    column = where + m * (np.asarray(correct) == 0)
    counts = np.bincount(cluster * (2 * m) + column, minlength=clusters_in_all * 2 * m).reshape(-1, 2 * m)
    return [statistic_of_counts(counts, function, n=n, value=value, **drawing) for function, value in functions]


def _moved(area: Area, value: float, cells: FloatArray) -> tuple[Statistic, float]:
    """The area of counts in blocks, moved so that it is `value` where nothing is resampled."""
    by = value - float(area_of_counts(cells[None, :], area)[0])
    return lambda counts: area_of_counts(counts, area) + by, value


def risk_coverage(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, *, points: int = 101, blocks: Blocks | None = None
) -> list[CurvePoint]:
    """The curve at up to `points` thresholds spread evenly over coverage, each with Wilson's interval (pointwise)."""
    if points < 1:
        raise StatsError(f"{points} points; at least one is needed")
    blocks = blocks or Blocks.partial(confidence, correct)
    ends, errors = np.cumsum(blocks.size), np.cumsum(blocks.wrong)
    if ends.size == 0:
        return []
    n = int(ends[-1])
    wanted = np.ceil(np.arange(1, points + 1) * n / points)
    chosen = np.unique(np.searchsorted(ends, wanted))
    answered = ends[chosen].tolist()
    risks = map(wilson, errors[chosen].tolist(), answered)
    return [
        CurvePoint(threshold=threshold, answered=k, coverage=k / n, risk=risk)
        for threshold, k, risk in zip(blocks.confidence[chosen].tolist(), answered, risks, strict=True)
    ]


def _best(n: int, errors: int) -> float:
    """AURC when all errors come last: (1/n)·Σ_{k > n−e} (k − (n − e))/k."""
    if errors > _ROWS_OF_A_LARGE_BLOCK:
        last, first = harmonic(np.array([n, n - errors], dtype=np.float64))
        return float(errors - (n - errors) * (last - first)) / n
    k = np.arange(n - errors + 1, n + 1, dtype=np.float64)
    return float(((k - (n - errors)) / k).sum()) / n


def _coarse(size: IntArray, limit: int) -> IntArray:
    """Which of at most `limit` blocks each tie block belongs to, about equally many rows in each."""
    if size.size <= limit:
        return np.arange(size.size)
    end = np.cumsum(size)
    _, block = np.unique((limit * (2 * end - size)) // (2 * end[-1]), return_inverse=True)
    return block.astype(np.int64)


def area_of_counts(counts: FloatArray, area: Area) -> FloatArray:
    """The area of each row of counts: right rows of each block, then wrong rows, by falling confidence.

    A block of m rows, e of them wrong, after s rows with E wrong adds Σ_j (E + j·e/m)/(s + j) = e + (E −
    s·e/m)·(H(s+m) − H(s)) to n·AURC, H the harmonic numbers.
    """
    m = counts.shape[1] // 2
    wrong = counts[:, m:]
    size = counts[:, :m] + wrong
    n, errors = size.sum(axis=1), wrong.sum(axis=1)
    start, before = np.cumsum(size, axis=1) - size, np.cumsum(wrong, axis=1) - wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(size > 0, wrong / np.maximum(size, 1.0), 0.0)
        # A block begins where the one before it ends.
        sums = harmonic(np.concatenate([np.zeros((len(size), 1)), start + size], axis=1))
        total = (wrong + (before - start * share) * np.diff(sums, axis=1)).sum(axis=1)
        if area == "e_aurc":
            # Σ_{k > n−e} (1 − (n − e)/k)
            total -= errors - (n - errors) * (harmonic(n) - harmonic(n - errors))
        return np.asarray(total / n)


_FIRST = itertools.accumulate((Fraction(1, k) for k in range(1, 64)), initial=Fraction(0))
_TABLE = np.array([float(exact) for exact in _FIRST])


def harmonic(k: FloatArray) -> FloatArray:
    """H(k) of whole k ≥ 0, to the last digits.

    From 64 on by the expansion in x = k + 1/2: H(k) = ln x + γ + 1/(24x²) − 7/(960x⁴) + 31/(8064x⁶) − …, whose next term
    is below 1e-16 there (DeTemple and Wang 1991, J Math Anal Appl 160:149-156).
    """
    x = k + 0.5
    square = 1.0 / (x * x)
    rest = square * (1.0 / 24.0 + square * (-7.0 / 960.0 + square * (31.0 / 8064.0)))
    sums: FloatArray = np.log(x) + (np.euler_gamma + rest)
    small = np.nonzero(k < _TABLE.size)
    sums[small] = _TABLE[k[small].astype(np.int64)]
    return sums
