"""Any number of raters over any label space: reading their ratings, and what is judged of an item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.evidence.rule import Condition, Finding, Limits, Rule, Variant
from adjudge.evidence.vocabulary import BUCKETS, Scope
from adjudge.protocols.base import Partition
from adjudge.protocols.common.columns import coded, codes
from adjudge.protocols.consistency.encoding import AGENTS
from adjudge.protocols.consistency.rows import (
    BAD_KEY,
    RATING_TYPES,
    SKIP_HINT,
    place_of,
    refuse,
    text_of,
    unknown_label,
)
from adjudge.readers.blocks import Block, what_is_wrong

PREFIX = "rating:"
AGREED, SPLIT, TOO_FEW, BAD = range(4)
VERDICTS = ("AGREED", "SPLIT", "TOO_FEW", "BAD_ROW")
BUCKET_OF = np.array([BUCKETS.index(name) for name in ("passed", "failed", "missing", "unparsed")], dtype=np.int8)
EXPECTED = "a rating has `item` (or `qid`, `id`) and `label`, and `rater` where a file holds several"
BATCH_ROWS = 8192


@dataclass
class RatingBatch:
    """Label codes (raters, items), −1 where a rater gave none; `bad` are rows that cannot be used."""

    ratings: NDArray[np.int8]
    bad: NDArray[np.bool_]
    reference: int | None
    notes: dict[int, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Items in the batch."""
        return int(self.ratings.shape[1])

    def counts(self, k: int) -> NDArray[np.int64]:
        """How many raters gave each item each label: (items, labels)."""
        return np.stack([(self.ratings == code).sum(axis=0) for code in range(k)], axis=1)

    def rated(self) -> NDArray[np.int64]:
        """Ratings an item."""
        counts: NDArray[np.int64] = (self.ratings >= 0).sum(axis=0)
        return counts

    def most(self) -> NDArray[np.int64]:
        """Ratings of an item's most common label."""
        k = int(self.ratings.max(initial=0)) + 1
        most: NDArray[np.int64] = self.counts(k).max(axis=1, initial=0)
        return most

    def verdicts(self) -> NDArray[np.int8]:
        """AGREED, SPLIT, TOO_FEW or BAD for each item."""
        rated = self.rated()
        judged = np.where(rated < 2, TOO_FEW, np.where(self.most() < rated, SPLIT, AGREED))
        return np.where(self.bad, BAD, judged).astype(np.int8)


@dataclass(frozen=True)
class RatersContext:
    """What the rules are built from."""

    reference: str | None


def rater_rules(context: RatersContext) -> list[Rule]:
    """The rules of an item that any number of raters labelled."""
    rules = [_enough(), _unanimous()]
    return [*rules, _reference(context.reference)] if context.reference is not None else rules


def _enough() -> Rule:
    def check(batch: RatingBatch) -> Finding:
        failed = (batch.bad | (batch.rated() < 2))[None]
        return Finding(
            failed,
            failed,
            observed=batch.rated()[None].astype(np.float64),
            variant=batch.bad.astype(np.int8)[None],
            details={(0, index): text for index, text in batch.notes.items()},
        )

    return Rule(
        code="rating.too_few",
        title="two raters or more labelled the item",
        passed="{observed} raters labelled the item",
        failed="{observed} raters labelled the item; agreement needs two",
        check=check,
        nominal=Limits(low=2.0, critical_low=2.0),
        variants=(Variant("rating.bad_row", "the row can be read", "the row cannot be used: {why}"),),
    )


def _unanimous() -> Rule:
    def quantity(batch: RatingBatch) -> NDArray[np.float64]:
        rated = np.maximum(batch.rated(), 1)
        minority: NDArray[np.float64] = ((rated - batch.most()) / rated)[None]
        return minority

    return Rule(
        code="rating.disagreement",
        title="all raters give the item the same label",
        scope=Scope.CROSS_FIELD,
        needs=("rating.too_few",),
        passed="all raters give the same label",
        failed="a share of {observed} of the ratings is not the most common label",
        quantity=quantity,
        limits=Limits(high=0.0),
    )


def _reference(name: str) -> Rule:
    def quantity(batch: RatingBatch) -> NDArray[np.float64]:
        truth = batch.ratings[batch.reference]
        others: NDArray[np.float64] = ((batch.ratings >= 0) & (batch.ratings != truth)).sum(axis=0)[None].astype(float)
        return others

    return Rule(
        code="rating.not_reference",
        title=f"every rater gives the label of the reference, {name}",
        scope=Scope.CROSS_FIELD,
        needs=("rating.too_few",),
        passed="every rater gives the label of the reference",
        failed="{observed} raters give another label than the reference",
        quantity=quantity,
        limits=Limits(high=0.0),
        conditions=(
            Condition(
                lambda batch: (batch.ratings[batch.reference] >= 0)[None], "the reference did not label the item"
            ),
        ),
    )


class RatingReader:
    """Reads the ratings of one role. A row that cannot be used is an error, or, with `skip_bad`, a row with a note."""

    def __init__(self, role: str, labels: Sequence[str], *, skip_bad: bool) -> None:
        self.role, self.labels, self.skip_bad = role, tuple(labels), skip_bad
        self._code = {label: code for code, label in enumerate(self.labels)}
        self._decoder = msgspec.json.Decoder(RATING_TYPES[role])

    def read(self, block: Block) -> pa.Table:
        """A row for every rating, and one for every record that cannot be used; the latter has a note and no code."""
        reasons: dict[int, str] = {}  # why a record cannot be read, by the identity of what stands for it

        def unreadable(text: bytes, error: Exception) -> Any:
            del text
            row = RATING_TYPES[self.role]()
            reasons[id(row)] = what_is_wrong(error, EXPECTED)
            return row

        stem = Path(block.path).stem
        ratings: list[tuple[str, str | None, int, str | None, int]] = []
        for line, row in zip(
            block.lines.tolist(), block.decode(self._decoder, EXPECTED, unreadable=unreadable), strict=True
        ):
            key = next((text_of(name) for name in (row.item, row.qid, row.id) if name is not None), None)
            labels = self._labels(row, stem)
            note = reasons.get(id(row))
            if note is None and key is None:
                note = f"the record has no `item`; {EXPECTED}"
            note = note or next((wrong for wrong in map(self._wrong, labels, labels.values()) if wrong), None)
            if note is None:
                ratings += [(key or "", rater, self._code[str(label)], None, line) for rater, label in labels.items()]
            elif self.skip_bad:
                rater = None if key is None else next(iter(labels))
                ratings.append((BAD_KEY if key is None else key, rater, -1, note, line))
            else:
                raise InputError(note, file=block.path, line=line, hint=SKIP_HINT)
        keys, raters, codes, notes, lines = zip(*ratings, strict=True)
        names = pa.array(raters, pa.string())
        return pa.table(
            {
                "key": pa.array(keys, pa.string()),
                "group": names if self.role == "raters" else pa.nulls(len(names), pa.string()),
                "rater": names,
                "code": pa.array(codes, pa.int8()),
                "note": pa.array(notes, pa.string()),
                "file": pa.array([block.file] * len(names), pa.int32()),
                "line": pa.array(lines, pa.int64()),
            }
        )

    def _labels(self, row: Any, stem: str) -> dict[str, str | int | None]:
        """Each rater of a record with the label; a file without raters is one rater, named as the file."""
        if self.role == "pairs":
            return {name: part.label if part else None for name in AGENTS for part in [getattr(row, name)]}
        if self.role == "raters":
            return {stem if row.rater is None else text_of(row.rater): row.label}
        return {self.role: row.label}

    def _wrong(self, rater: str, label: str | int | None) -> str | None:
        """What is wrong with a label, if anything."""
        if label is None or label == "":
            return f"{rater} has no label; expected one of {', '.join(self.labels)}"
        return None if str(label) in self._code else unknown_label(label, self.labels)


def batches(partition: Partition, reference: str | None, *, skip_bad: bool) -> Iterator[tuple[RatingBatch, list[str]]]:
    """(columns, item ids) of a partition in the order of the ids; bad rows stand among them by file and line."""
    raters = raters_in(partition)
    rows = pa.concat_tables(partition.tables.values()).combine_chunks()
    good = rows.filter(pc.is_null(rows.column("note")))
    bad = {
        place_of(partition.files, row["file"], row["line"]): row["note"]
        for row in rows.filter(pc.is_valid(rows.column("note"))).select(["file", "line", "note"]).to_pylist()
    }
    items = pc.unique(good.column("key"))
    place = pc.index_in(good.column("key"), items).to_numpy().astype(np.int64)
    cell = place * len(raters) + pc.index_in(good.column("rater"), pa.array(raters)).to_numpy()
    cells, first, times = np.unique(cell, return_index=True, return_counts=True)
    for row in np.setdiff1d(np.arange(len(cell)), first).tolist():
        again = good.slice(row, 1).to_pylist()[0]
        what = f"item {again['key']!r} is labelled twice by {again['rater']!r}"
        if not skip_bad:
            raise refuse(what, partition.files, again["file"], again["line"])
        bad[place_of(partition.files, again["file"], again["line"])] = what
    ratings = np.full((len(items) + 1, len(raters)), -1, dtype=np.int8)  # the last row is that of a bad one
    ratings.ravel()[cells[times == 1]] = good.column("code").to_numpy()[first[times == 1]]
    places = {name: place for place, name in enumerate(items.to_pylist())}
    names = sorted({*places, *bad})
    for start in range(0, len(names), BATCH_ROWS):
        chosen = names[start : start + BATCH_ROWS]
        batch = RatingBatch(
            ratings=np.ascontiguousarray(ratings[[places.get(name, -1) for name in chosen]].T),
            bad=np.array([name in bad for name in chosen]),
            reference=None if reference is None else raters.index(reference),
            notes={index: bad[name] for index, name in enumerate(chosen) if name in bad},
        )
        yield batch, chosen


def raters_in(partition: Partition) -> tuple[str, ...]:
    """All raters of the input; where a file is an agent's, the two agents."""
    return partition.groups or AGENTS


def table(
    batch: RatingBatch, items: list[str], raters: Sequence[str], labels: Sequence[str], decided: Mapping[str, pa.Array]
) -> pa.Table:
    """The rows of samples.parquet: what was decided, and one column a rater."""
    notes: list[str | None] = [batch.notes.get(index) for index in range(batch.n)]
    return pa.table(
        {
            "sample": pa.array(items, pa.string()),
            "model": coded(np.zeros(batch.n, dtype=np.int8), ("raters",)),
            **decided,
            "note": pa.array(notes, pa.string()),
            **{PREFIX + name: coded(batch.ratings[place], labels) for place, name in enumerate(raters)},
        }
    )


def raters_of(samples: pa.Table) -> tuple[str, ...]:
    """The raters, from the columns."""
    return tuple(name.removeprefix(PREFIX) for name in samples.column_names if name.startswith(PREFIX))


def restore(samples: pa.Table, labels: Sequence[str], reference: str | None) -> RatingBatch:
    """The batch as it was, from what is stored."""
    names = raters_of(samples)
    notes = samples.column("note").to_pylist()
    return RatingBatch(
        ratings=np.stack([codes(samples, PREFIX + name, labels) for name in names]),
        bad=np.array([note is not None for note in notes]),
        reference=None if reference is None else names.index(reference),
        notes={index: note for index, note in enumerate(notes) if note is not None},
    )
