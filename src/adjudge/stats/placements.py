"""How many rows of the other class each row stands above: the placements that AUROC and DeLong's variance are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adjudge.stats._checks import BoolArray, FloatArray, IntArray


class Placements(NamedTuple):
    """Whole numbers a row, each row once or `counts` times: what DeLong's variance is made of."""

    places: IntArray
    counts: IntArray | None = None

    @property
    def n(self) -> int:
        """How many rows."""
        return self.places.size if self.counts is None else int(self.counts.sum())

    def total(self) -> int:
        """Their sum."""
        return int(self.places.sum()) if self.counts is None else _whole_dot(self.places, self.counts)

    def squares(self) -> int:
        """The sum of their squares."""
        if self.counts is None:
            return _whole_dot(self.places, self.places)
        if int(self.places.max(initial=0)) * int(self.counts.max(initial=0)) < 2**62:
            return _whole_dot(self.places, self.places * self.counts)
        return sum(k * place * place for place, k in zip(self.places.tolist(), self.counts.tolist(), strict=True))

    def variance(self) -> float:
        """Their sample variance."""
        # Sums of whole numbers are exact, so no order of the rows can show.
        n = self.n
        return (n * self.squares() - self.total() ** 2) / (n * (n - 1))


def placements(column: FloatArray, positive: BoolArray) -> tuple[Placements, Placements]:
    """Per positive 2 · (negatives below) + ties, per negative 2 · (positives above) + ties, by rising score."""
    ups, downs = (np.sort(scores_of_class) for scores_of_class in by_class(column, positive))
    up = np.searchsorted(downs, ups, side="left") + np.searchsorted(downs, ups, side="right")
    down = np.searchsorted(ups, downs, side="left") + np.searchsorted(ups, downs, side="right")
    return Placements(up.astype(np.int64)), Placements((2 * ups.size - down).astype(np.int64))


def counted_placements(column: FloatArray, positive: BoolArray, counts: IntArray) -> tuple[Placements, Placements]:
    """As `placements`, of rows that stand for several."""
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


def by_class(column: FloatArray, positive: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The scores of the positives and of the negatives; indices are several times faster here than two masks."""
    return column[np.flatnonzero(positive)], column[np.flatnonzero(~positive)]
