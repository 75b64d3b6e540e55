"""Confidences and whether the answers were right, counted: many rows say the same, and what follows is worked out once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from adjudge.stats._checks import FloatArray, IntArray
from adjudge.stats.confidence_bins import columns

_TEN_THOUSAND = 10_000.0
_PROBE = 1000


class Tally(NamedTuple):
    """How often each pair of a confidence and right (1) or wrong (0) stands there: the wrong first, each by rising confidence.

    Rows that have clusters stand there one by one instead. Confidences keep the precision they came in, since the edges of bins depend on it.
    """

    confidence: npt.NDArray[Any]
    correct: npt.NDArray[Any]
    counts: IntArray

    @classmethod
    def of(cls, confidence: npt.ArrayLike, correct: npt.ArrayLike) -> Tally:
        """The rows counted, checked as every calibration measure asks for it."""
        c, y, _ = cls.one_by_one(confidence, correct)
        distinct = _decimals if c.size and _is_decimal(c[:_PROBE]) and _is_decimal(c) else _distinct
        wrong, right = (distinct(c[np.flatnonzero(y == code)]) for code in (0, 1))
        return cls(
            np.concatenate([wrong[0], right[0]]),
            np.repeat(np.array([0, 1], dtype=np.int8), [wrong[0].size, right[0].size]),
            np.concatenate([wrong[1], right[1]]),
        )

    @classmethod
    def one_by_one(cls, confidence: npt.ArrayLike, correct: npt.ArrayLike) -> Tally:
        """The rows checked, in their order, each standing for itself."""
        c, y = columns(confidence, correct)
        raw = np.asarray(confidence)
        return cls(raw if raw.dtype.kind == "f" else c, y, np.ones(c.size, dtype=np.int64))

    @property
    def n(self) -> int:
        """How many rows."""
        return int(self.counts.sum())

    def doubles(self) -> FloatArray:
        """The confidences as numbers to count with."""
        return self.confidence.astype(np.float64)


class Pieces(NamedTuple):
    """Runs of equal rows, cut: of every piece the run it is of, its rows, and the part it is in."""

    run: IntArray
    size: IntArray
    part: IntArray


def cut(counts: IntArray, edges: IntArray) -> Pieces:
    """Cut runs of counts[k] equal rows, one after another, into the parts edges[p] … edges[p + 1] of all rows."""
    ends = np.cumsum(counts)
    marks = np.unique(np.concatenate([edges, ends]))
    starts = marks[:-1]
    return Pieces(
        np.searchsorted(ends, starts, side="right"), np.diff(marks), np.searchsorted(edges, starts, side="right") - 1
    )


def _is_decimal(values: npt.NDArray[Any]) -> bool:
    """Whether all are doubles written with at most four decimals, as most confidences are."""
    return values.dtype == np.float64 and bool((np.rint(values * _TEN_THOUSAND) / _TEN_THOUSAND == values).all())


def _decimals(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """As `_distinct`, without sorting."""
    counts = np.bincount(np.rint(values * _TEN_THOUSAND).astype(np.int64))
    distinct = np.flatnonzero(counts)
    return distinct / _TEN_THOUSAND, counts[distinct]


def _distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """The values that there are, rising, and how often each stands there."""
    ordered = np.sort(values)
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: ordered.size])
    return ordered[first], np.diff(np.append(first, ordered.size)).astype(np.int64)
