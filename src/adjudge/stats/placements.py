"""How many rows of the other class each row stands above: the placements that AUROC and DeLong's variance are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adjudge.stats._checks import BoolArray, FloatArray, IntArray


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
