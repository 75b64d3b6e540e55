"""Scores by flown sequence, what the rules of the contract read of them, and the rows of test sorted by score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.rule import Floats, Mask
from adjudge.protocols.anomaly.checks import Check
from adjudge.protocols.anomaly.rows import SPLITS
from adjudge.stats.ranking_bootstrap import Curve, RankedRows

NORMAL, ATTACKED, LEFT_OUT = 0, 1, 2
"""What a row is: normal, attacked (or faulty), or neither, as a known fault is in an attacked copy of its flight."""
LABELLED = "labelled"
"""The attack of a sequence whose rows are labelled and whose attack has no name."""


@dataclass(frozen=True)
class Sequence:
    """What a sequence is: its flight and split, and the attack on it, if any."""

    flight: str
    split: str
    attack: str | None
    magnitude: float | None
    seed: int | None
    variant: int = 0
    """Tells apart attacks of one size and seed that differ in another parameter."""
    condition: str | None = None

    @property
    def id(self) -> str:
        """The sample id: flight, attack, size, seed and variant."""
        if self.attack is None:
            return self.flight
        size = "" if self.magnitude is None else f":{self.magnitude:g}"
        seed = "" if self.seed is None else f"#{self.seed}"
        return f"{self.flight}|{self.attack}{size}{seed}" + (f"~{self.variant}" if self.variant else "")

    def key(self) -> tuple[Any, ...]:
        """The order of sequences in the run."""
        return (
            SPLITS.index(self.split) if self.split in SPLITS else len(SPLITS),
            self.attack or "",
            -1.0 if self.magnitude is None else self.magnitude,
            -1 if self.seed is None else self.seed,
            self.variant,
            self.flight,
        )


class Scored(NamedTuple):
    """The rows of one sequence: times, scores, and what each row is."""

    item: Sequence
    time: Floats
    score: Floats
    label: NDArray[np.int8]


@dataclass
class ScoreTable:
    """Rows sorted by sequence, in the order of the file within each; sequence i has rows edges[i] to edges[i + 1]."""

    sequences: list[Sequence]
    edges: NDArray[np.int64]
    time: Floats
    score: Floats
    label: NDArray[np.int8]
    declared: list[tuple[str, str]]
    """(flight, split) as the file itself says, where it has a split column."""

    @classmethod
    def of(cls, scored: Iterable[Scored]) -> ScoreTable:
        """The rows of all sequences in the order of the run; one with labelled rows and no attack is `labelled`."""
        parts = [
            part._replace(item=replace(part.item, attack=LABELLED))
            if part.item.attack is None and (part.label == ATTACKED).any()
            else part
            for part in scored
        ]
        parts.sort(key=lambda part: part.item.key())
        items, times, scores, labels = zip(*parts, strict=True)
        edges = np.cumsum([0, *map(len, times)], dtype=np.int64)
        return cls([*items], edges, np.concatenate(times), np.concatenate(scores), np.concatenate(labels), [])

    @property
    def attacked(self) -> Mask:
        """The rows that are attacked."""
        return np.equal(self.label, ATTACKED)

    def rows(self, index: int) -> slice:
        """The rows of one sequence."""
        return slice(int(self.edges[index]), int(self.edges[index + 1]))

    def of_split(self, split: str) -> list[int]:
        """The sequences of a split."""
        return [index for index, item in enumerate(self.sequences) if item.split == split]

    def clean(self, split: str) -> list[int]:
        """The sequences of a split without an attack."""
        return [index for index in self.of_split(split) if self.sequences[index].attack is None]


def changes(values: NDArray[np.generic]) -> Mask:
    """Where a value is not that of the row before."""
    changed = np.ones(values.size, dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed


@dataclass
class ContractBatch:
    """What the rules read: every detector's checks, and per sequence its detector, whether it is attacked, its alarms."""

    n: int
    checks: Items[Mapping[str, Check]]
    model: NDArray[np.intp]
    broken: Mask
    attacked: Mask
    detected: Mask
    latency: Floats
    events: Floats


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
        group, distinct = np.repeat(groups[test], sizes)[order], bool((score[1:] != score[:-1]).all())
        return cls(score, group, code[order], order, distinct, test, groups, flights)

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
            rows = np.flatnonzero(np.isin(self.group, wanted))
            score, code = score[rows], code[rows]
        flights = np.unique(self.flights[chosen])
        if flights.size <= self.flights.max(initial=-1):
            codes = np.zeros((int(self.flights.max()) + 1, 2), dtype=np.int32)
            codes[flights] = np.arange(2 * flights.size).reshape(-1, 2)
            code = codes.ravel()[code]
        return RankedRows.sorted(score, code, flights.size, distinct=self.distinct)
