"""The rows of test by rising score, sorted once: every slice, chart and control reads them in this order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.batch import LEFT_OUT, ScoreTable
from adjudge.stats.ranking_bootstrap import Curve, RankedRows


@dataclass(frozen=True)
class SortedRows:
    """Score, group and 2 · flight + attacked of each row of test by rising score; `order` leads back to its row.

    Rows that are neither normal nor attacked are not among them. A group is the sequences of one attack and size, or the clean ones; every slice is made of whole groups.
    """

    score: Floats
    group: NDArray[np.int16]
    code: NDArray[np.int32]
    order: NDArray[np.uint32]
    distinct: bool
    test: NDArray[np.intp]
    groups: NDArray[np.int16]
    """The group of each sequence of the table."""
    flights: NDArray[np.int32]
    """The flight of each sequence of test, as a code."""

    @classmethod
    def of(cls, table: ScoreTable, test: NDArray[np.intp]) -> SortedRows:
        """Sort; the sequences of test stand together in the table."""
        rows = slice(int(table.edges[test[0]]), int(table.edges[test[-1] + 1])) if test.size else slice(0, 0)
        order = np.argsort(table.score[rows]).astype(np.uint32)
        if (table.label[rows] == LEFT_OUT).any():
            order = order[table.label[rows][order] != LEFT_OUT]
        score = table.score[rows][order]
        kinds = [f"{item.attack}/{item.magnitude}" for item in table.sequences]
        groups = np.unique(kinds, return_inverse=True)[1].astype(np.int16)
        flights = np.full(len(table.sequences), -1, dtype=np.int32)
        flights[test] = np.unique([table.sequences[index].flight for index in test], return_inverse=True)[1]
        sizes = np.diff(table.edges)[test]
        code = np.repeat(flights[test] << 1, sizes)
        code |= table.attacked[rows]
        return cls(
            score,
            np.repeat(groups[test], sizes)[order],
            code[order],
            order,
            bool((score[1:] != score[:-1]).all()),
            test,
            groups,
            flights,
        )

    @cached_property
    def whole(self) -> RankedRows:
        """All rows of test."""
        return RankedRows.sorted(self.score, self.code, int(self.flights.max(initial=-1)) + 1, distinct=self.distinct)

    @cached_property
    def curve(self) -> Curve:
        """The ROC curve of all rows of test."""
        return Curve.of(*self.whole.falling, self.whole.m)

    def slice(self, chosen: NDArray[np.intp], label: NDArray[np.bool_] | None = None) -> RankedRows:
        """Some sequences, with the flights among them as clusters; `label` are other classes of all rows."""
        if label is None and np.array_equal(chosen, self.test):
            return self.whole
        code = self.code if label is None else (self.code & ~1) | label
        score, wanted = self.score, np.unique(self.groups[chosen])
        if wanted.size < np.unique(self.groups[self.test]).size:
            kept = self.group == wanted[0]
            for group in wanted[1:]:
                kept |= self.group == group
            rows = np.flatnonzero(kept)
            score, code = score[rows], code[rows]
        flights = np.unique(self.flights[chosen])
        if flights.size <= self.flights.max(initial=-1):
            codes = np.zeros(2 * (int(self.flights.max()) + 1), dtype=np.int32)
            codes[2 * flights] = 2 * np.arange(flights.size)
            codes[2 * flights + 1] = 2 * np.arange(flights.size) + 1
            code = codes[code]
        return RankedRows.sorted(score, code, flights.size, distinct=self.distinct)
