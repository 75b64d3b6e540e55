"""The rows of test by rising score, sorted once: every slice, chart and control reads them in this order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.anomaly.flights import Floats
from adjudge.protocols.anomaly.table import ScoreTable
from adjudge.stats.ranking_bootstrap import RankedRows


@dataclass(frozen=True)
class SortedRows:
    """Score, sequence and class of each row of test by rising score; `order` leads back to the rows of test."""

    score: Floats
    sequence: NDArray[np.int32]
    label: NDArray[np.bool_]
    order: NDArray[np.uint32]
    flight: NDArray[np.int64]
    """The flight of each sequence of the table, as a code."""

    @classmethod
    def of(cls, table: ScoreTable, test: NDArray[np.intp]) -> SortedRows:
        """Sort; the sequences of test stand together in the table."""
        rows = slice(int(table.edges[test[0]]), int(table.edges[test[-1] + 1])) if test.size else slice(0, 0)
        score = table.score[rows]
        order = np.argsort(score).astype(np.uint32)
        owner = np.repeat(test.astype(np.int32), np.diff(table.edges)[test])
        _, flight = np.unique([item.flight for item in table.sequences], return_inverse=True)
        return cls(score[order], owner[order], table.label[rows][order], order, flight.astype(np.int64))

    def slice(self, chosen: NDArray[np.intp], label: NDArray[np.bool_] | None = None) -> RankedRows:
        """Some sequences, with the flights among them as clusters; `label` are other classes of all rows."""
        label = self.label if label is None else label
        wanted = np.zeros(self.flight.size, dtype=bool)
        wanted[chosen] = True
        names, code = np.unique(self.flight[chosen], return_inverse=True)
        place = np.zeros(self.flight.size, dtype=np.int64)
        place[chosen] = code << 1
        score, sequence = self.score, self.sequence
        kept = wanted[sequence]
        if not kept.all():
            rows = np.flatnonzero(kept)
            score, sequence, label = score[rows], sequence[rows], label[rows]
        codes = place[sequence]
        codes |= label
        return RankedRows.sorted(score, codes, names.size)
