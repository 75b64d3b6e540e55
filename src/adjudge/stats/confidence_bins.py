"""Confidences in bins of equal width (exact decimal edges) or equal mass (ties kept together), and counted by value."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats.estimate import FloatArray, IntArray, checked_column, checked_flags

Closed = Literal["left", "right"]
Scheme = Literal["equal_width", "equal_mass"]


def columns(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[FloatArray, npt.NDArray[Any]]:
    """A column of confidences in [0, 1] and a column of whole 0 and 1, checked."""
    c = np.asarray(confidence, dtype=np.float64)
    # NaN fails both comparisons.
    if c.ndim != 1 or (c.size and not (c.min() >= 0.0 and c.max() <= 1.0)):
        c = checked_column(c, "confidence")
        place = int(np.flatnonzero((c < 0.0) | (c > 1.0))[0])
        raise StatsError(f"confidence[{place}] is {c[place]}; a confidence lies between 0 and 1")
    return c, checked_flags(correct, "correct", c.size).view(np.int8)


def edges(bins: int, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """The edges 0, 1/bins, …, 1, each the number of `dtype` nearest to the exact fraction.

    A confidence written as a decimal is the nearest number too, so 0.3 meets the edge 3/10 exactly, in float64 and in
    float32 alike; multiples of a step (3·0.1 = 0.30000000000000004) would miss it.
    """
    if bins < 1:
        raise StatsError(f"{bins} bins; at least one is needed")
    return np.array([k / bins for k in range(bins + 1)]).astype(dtype)


def equal_width(confidence: npt.ArrayLike, bins: int = 10, closed: Closed = "left") -> IntArray:
    """The bin of each confidence: [0, .1) … [.9, 1] when closed on the left, [0, .1] … (.9, 1] when on the right."""
    raw = np.asarray(confidence)
    values = raw if raw.dtype in {np.dtype(np.float32), np.dtype(np.float16)} else raw.astype(np.float64)
    inner = edges(bins, values.dtype)[1:-1]
    if closed not in {"left", "right"}:
        raise StatsError(f"bins are closed on the left or on the right, not {closed!r}")
    return np.searchsorted(inner, values, side="right" if closed == "left" else "left").astype(np.int64)


def equal_mass(confidence: npt.ArrayLike, bins: int = 10, counts: IntArray | None = None) -> IntArray:
    """The bin of each confidence when every bin shall hold as many rows; equal confidences stay together.

    A block of equal confidences on the places s … e−1 of n goes to the bin of its middle, ⌊bins·(s + e)/(2n)⌋, so
    bins may differ in size, or be empty, where ties are many. A confidence stands for `counts` rows, or for one.
    """
    values = np.asarray(confidence)
    edges(bins)
    if counts is None:
        distinct, size = np.unique(values, return_counts=True)
    else:
        distinct, place = np.unique(values, return_inverse=True)
        size = np.bincount(place, weights=counts).astype(np.int64)
    end = np.cumsum(size)
    bin_of = ((bins * (2 * end - size)) // (2 * max(int(size.sum()), 1))).astype(np.int64)
    # Bins rise with the confidence, so the least confidence of each tells where a row belongs.
    first = np.flatnonzero(np.diff(bin_of, prepend=-1))
    return bin_of[first][np.searchsorted(distinct[first], values, side="right") - 1]


def assign(
    confidence: npt.ArrayLike, bins: int, scheme: Scheme, closed: Closed, counts: IntArray | None = None
) -> IntArray:
    """The bin of each confidence, which stands for `counts` rows or for one, under the named scheme."""
    if scheme == "equal_width":
        return equal_width(confidence, bins, closed)
    if scheme == "equal_mass":
        return equal_mass(confidence, bins, counts)
    raise StatsError(f"bin scheme {scheme!r} is not one of equal_width, equal_mass")


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
        wrong, right = (np.unique(c[np.flatnonzero(y == code)], return_counts=True) for code in (0, 1))
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
