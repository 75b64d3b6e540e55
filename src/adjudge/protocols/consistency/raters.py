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
from adjudge.protocols.common.columns import coded, codes, texts_by_row
from adjudge.protocols.consistency.rows import BAD_KEY, SKIP_HINT, Rating, place_of, refuse, text_of, unknown_label
from adjudge.readers.blocks import Block, what_is_wrong
from adjudge.readers.sources import beyond, bound

PREFIX = "rating:"
NO_RATING = -1
AGREED, SPLIT, TOO_FEW, BAD = range(4)
VERDICTS = ("AGREED", "SPLIT", "TOO_FEW", "BAD_ROW")
BUCKET_OF = np.array([BUCKETS.index(name) for name in ("passed", "failed", "missing", "unparsed")], dtype=np.int8)
EXPECTED = "a rating has `item` (or `qid`, `id`) and `label`, and `rater` where a file holds several"
BATCH_ROWS = 8192
_decoder = msgspec.json.Decoder(Rating)


@dataclass
class RatingBatch:
    """Label codes (raters, items), −1 where a rater gave none; `notes` tell of rows of an item that cannot be used."""

    ratings: NDArray[np.int8]
    reference: int | None
    notes: dict[int, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Items in the batch."""
        return int(self.ratings.shape[1])

    @property
    def bad(self) -> NDArray[np.bool_]:
        """Items that a row which cannot be used leaves with fewer than two ratings."""
        noted = np.zeros(self.n, dtype=np.bool_)
        noted[list(self.notes)] = True
        return noted & (self.rated() < 2)

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

    def minority(self) -> NDArray[np.float64]:
        """The share of an item's ratings that are not its most common label."""
        rated = np.maximum(self.rated(), 1)
        shares: NDArray[np.float64] = (rated - self.most()) / rated
        return shares

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
    rules = [
        Rule(
            code="rating.too_few",
            title="two raters or more labelled the item",
            passed="{observed} raters labelled the item",
            failed="{observed} raters labelled the item; agreement needs two",
            check=_enough,
            nominal=Limits(low=2.0, critical_low=2.0),
            variants=(Variant("rating.bad_row", "the row can be read", "the row cannot be used: {why}"),),
        ),
        Rule(
            code="rating.disagreement",
            title="all raters give the item the same label",
            scope=Scope.CROSS_FIELD,
            needs=("rating.too_few",),
            passed="all raters give the same label",
            failed="a share of {observed} of the ratings is not the most common label",
            quantity=lambda batch: batch.minority()[None],
            limits=Limits(high=0.0),
        ),
    ]
    if context.reference is not None:
        reference = Rule(
            code="rating.not_reference",
            title=f"every rater gives the label of the reference, {context.reference}",
            scope=Scope.CROSS_FIELD,
            needs=("rating.too_few",),
            passed="every rater gives the label of the reference",
            failed="{observed} raters give another label than the reference",
            quantity=_against_reference,
            limits=Limits(high=0.0),
            conditions=(
                Condition(
                    lambda batch: (batch.ratings[batch.reference] >= 0)[None], "the reference did not label the item"
                ),
            ),
        )
        rules.append(reference)
    return rules


def _enough(batch: RatingBatch) -> Finding:
    rated, bad = batch.rated(), batch.bad
    failed = (bad | (rated < 2))[None]
    details = {(0, row): text for row, text in batch.notes.items()}
    observed = rated[None].astype(np.float64)
    return Finding(failed, failed, observed=observed, variant=bad.astype(np.int8)[None], details=details)


def _against_reference(batch: RatingBatch) -> NDArray[np.float64]:
    differs = (batch.ratings >= 0) & (batch.ratings != batch.ratings[batch.reference])
    counts: NDArray[np.float64] = differs.sum(axis=0)[None].astype(float)
    return counts


class RatingReader:
    """Reads ratings. A row that cannot be used is an error, or, with `skip_bad`, a row with a note."""

    def __init__(self, labels: Sequence[str], *, skip_bad: bool) -> None:
        self.labels, self.skip_bad = tuple(labels), skip_bad
        self._code = {label: code for code, label in enumerate(self.labels)}

    def read(self, block: Block) -> pa.Table:
        """A row for every record; one that cannot be used has a note and no code."""
        reasons: dict[int, str] = {}  # why a record cannot be read, by the identity of what stands for it

        def unreadable(text: bytes, error: Exception) -> Rating:
            del text
            row = Rating()
            reasons[id(row)] = what_is_wrong(error, EXPECTED)
            return row

        rows = block.decode(_decoder, EXPECTED, unreadable=unreadable)
        stem = Path(block.path).stem  # a file without raters is one rater, named as the file
        keys = [next((text_of(name) for name in (row.item, row.qid, row.id) if name is not None), None) for row in rows]
        raters = [stem if row.rater is None else text_of(row.rater) for row in rows]
        notes = [
            reasons.get(id(row)) or self._wrong(row, key, rater)
            for row, key, rater in zip(rows, keys, raters, strict=True)
        ]
        first = next((place for place, note in enumerate(notes) if note is not None), None)
        if first is not None and not self.skip_bad:
            raise InputError(notes[first] or "", file=block.path, line=int(block.lines[first]), hint=SKIP_HINT)
        codes = [-1 if note else self._code[str(row.label)] for row, note in zip(rows, notes, strict=True)]
        return pa.table(
            {
                "key": pa.array([BAD_KEY if key is None else key for key in keys], pa.string()),
                "group": pa.array(
                    [None if key is None else rater for key, rater in zip(keys, raters, strict=True)], pa.string()
                ),
                "code": pa.array(codes, pa.int8()),
                "note": pa.array(notes, pa.string()),
                "file": pa.array([block.file] * len(rows), pa.int32()),
                "line": pa.array(block.lines),
            }
        )

    def _wrong(self, row: Rating, key: str | None, rater: str) -> str | None:
        """What is wrong with a row that can be read, if anything."""
        if key is None:
            return f"the record has no `item`; {EXPECTED}"
        if row.label is None or row.label == "":
            return f"{rater} has no label; expected one of {', '.join(self.labels)}"
        return None if str(row.label) in self._code else unknown_label(row.label, self.labels, fixed=False)


def batches(partition: Partition, reference: str | None, *, skip_bad: bool) -> Iterator[tuple[RatingBatch, list[str]]]:
    """(columns, item ids) of a partition in the order of the ids; a bad row without an item stands by file and line."""
    raters = partition.groups
    if len(raters) > bound("raters"):
        raise InputError(f"the input names {len(raters):,} raters; {beyond('raters')}")
    rows = partition.tables["raters"].combine_chunks()
    bad: dict[str, list[str]] = {}

    def set_aside(row: dict[str, Any], what: str) -> None:
        place = place_of(partition.files, row["file"], row["line"])
        bad.setdefault(place if row["key"] == BAD_KEY else row["key"], []).append(f"{place}: {what}")

    for row in rows.filter(pc.is_valid(rows.column("note"))).to_pylist():
        set_aside(row, row["note"])
    good = rows.filter(pc.is_null(rows.column("note")))
    items = pc.unique(good.column("key"))
    place = pc.index_in(good.column("key"), items).to_numpy().astype(np.int64)
    cell = place * len(raters) + pc.index_in(good.column("group"), pa.array(raters)).to_numpy()
    cells, first, times = np.unique(cell, return_index=True, return_counts=True)
    for at in np.setdiff1d(np.arange(len(cell)), first).tolist():
        again = good.slice(at, 1).to_pylist()[0]
        what = f"item {again['key']!r} is labelled twice by {again['group']!r}"
        if not skip_bad:
            raise refuse(what, partition.files, again["file"], again["line"])
        set_aside(again, what)
    ratings = np.full((len(items) + 1, len(raters)), NO_RATING, dtype=np.int8)  # the last row is that of a bad one
    ratings.ravel()[cells[times == 1]] = good.column("code").to_numpy()[first[times == 1]]
    places = {name: place for place, name in enumerate(items.to_pylist())}
    names = sorted({*places, *bad})
    for start in range(0, len(names), BATCH_ROWS):
        chosen = names[start : start + BATCH_ROWS]
        batch = RatingBatch(
            ratings=np.ascontiguousarray(ratings[[places.get(name, -1) for name in chosen]].T),
            reference=None if reference is None else raters.index(reference),
            notes={index: "\n".join(bad[name]) for index, name in enumerate(chosen) if name in bad},
        )
        yield batch, chosen


def table(
    batch: RatingBatch, items: list[str], raters: Sequence[str], labels: Sequence[str], decided: Mapping[str, pa.Array]
) -> pa.Table:
    """The rows of samples.parquet: what was decided, and one column a rater."""
    return pa.table(
        {
            "sample": pa.array(items, pa.string()),
            "model": coded(np.zeros(batch.n, dtype=np.int8), ("raters",)),
            **decided,
            "note": pa.array([batch.notes.get(row) for row in range(batch.n)], pa.string()),
            **{PREFIX + name: coded(batch.ratings[place], labels) for place, name in enumerate(raters)},
        }
    )


def raters_of(samples: pa.Table) -> tuple[str, ...]:
    """The raters, from the columns."""
    return tuple(name.removeprefix(PREFIX) for name in samples.column_names if name.startswith(PREFIX))


def restore(samples: pa.Table, labels: Sequence[str], reference: str | None) -> RatingBatch:
    """The batch as it was, from what is stored."""
    names = raters_of(samples)
    return RatingBatch(
        ratings=np.stack([codes(samples, PREFIX + name, labels) for name in names]),
        reference=None if reference is None else names.index(reference),
        notes=texts_by_row(samples.column("note")),
    )
