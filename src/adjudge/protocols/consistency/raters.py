"""Any number of raters over any label space: reading their ratings, and what is judged of an item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.evidence.rule import Condition, Finding, Limits, Rule, Slot, Variant
from adjudge.evidence.vocabulary import BUCKETS, Scope
from adjudge.protocols.base import Partition
from adjudge.protocols.consistency.rows import BAD_KEY, refuse, unknown_label
from adjudge.protocols.consistency.words import coded, codes

PREFIX = "rating:"
AGREED, SPLIT, TOO_FEW, BAD = range(4)
VERDICTS = ("AGREED", "SPLIT", "TOO_FEW", "BAD_ROW")
_BUCKET = np.array([BUCKETS.index(name) for name in ("passed", "failed", "missing", "unparsed")], dtype=np.int8)
EXPECTED = "a rating has `item` (or `qid`, `id`) and `label`, and `rater` where a file holds several"
_ONE = (Slot(None, 0),)
BATCH_ROWS = 8192


class Rating(msgspec.Struct, gc=False):
    """One rating, or (from a pairs file) two."""

    item: str | int | None = None
    qid: str | int | None = None
    id: str | int | None = None
    rater: str | int | None = None
    label: str | int | None = None
    scholar: Rating | None = None
    auditor: Rating | None = None

    def key(self) -> str:
        """The item's id."""
        found = next((value for value in (self.item, self.qid, self.id) if value is not None), None)
        if found is None:
            raise msgspec.ValidationError("Object missing required field `item`")
        return str(found)


_decoder = msgspec.json.Decoder(Rating)


def rating_key(path: str, line: int, text: bytes) -> tuple[str, str | None]:
    """The item and the rater; a file without raters is one rater, named as the file."""
    del line
    row = _decoder.decode(text)
    return row.key(), Path(path).stem if row.rater is None else str(row.rater)


def rating_key_or_bad(path: str, line: int, text: bytes) -> tuple[str, str | None]:
    """The same; one key for all rows without."""
    try:
        return rating_key(path, line, text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return BAD_KEY, None


def agent_key(path: str, line: int, text: bytes) -> tuple[str, None]:
    """The item alone, for files whose role is the rater."""
    return rating_key(path, line, text)[0], None


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

    def given(self) -> NDArray[np.int64]:
        """Ratings an item."""
        found: NDArray[np.int64] = (self.ratings >= 0).sum(axis=0)
        return found

    def most(self) -> NDArray[np.int64]:
        """Ratings of an item's most common label."""
        k = int(self.ratings.max(initial=0)) + 1
        found: NDArray[np.int64] = self.counts(k).max(axis=1, initial=0)
        return found

    def verdicts(self) -> NDArray[np.int8]:
        """AGREED, SPLIT, TOO_FEW or BAD for each item."""
        given = self.given()
        judged = np.where(given < 2, TOO_FEW, np.where(self.most() < given, SPLIT, AGREED))
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
        failed = (batch.bad | (batch.given() < 2))[None]
        return Finding(
            failed,
            failed,
            observed=batch.given()[None].astype(np.float64),
            variant=batch.bad.astype(np.int8)[None],
            details={(0, index): text for index, text in batch.notes.items()},
        )

    return Rule(
        code="rating.too_few",
        title="two raters or more labelled the item",
        scope=Scope.SAMPLE,
        slots=_ONE,
        passed="{observed} raters labelled the item",
        failed="{observed} raters labelled the item; agreement needs two",
        check=check,
        nominal=Limits(low=2.0, critical_low=2.0),
        variants=(Variant("rating.bad_row", "the row can be read", "the row cannot be used: {why}"),),
    )


def _unanimous() -> Rule:
    def quantity(batch: RatingBatch) -> NDArray[np.float64]:
        given = np.maximum(batch.given(), 1)
        found: NDArray[np.float64] = ((given - batch.most()) / given)[None]
        return found

    return Rule(
        code="rating.disagreement",
        title="all raters give the item the same label",
        scope=Scope.CROSS_FIELD,
        slots=_ONE,
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
        slots=_ONE,
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
    """Reads ratings of one partition into batches of items."""

    def __init__(self, labels: Sequence[str], *, skip_bad: bool, reference: str | None) -> None:
        self.labels, self.skip_bad, self.reference = tuple(labels), skip_bad, reference
        self._code = {label: code for code, label in enumerate(self.labels)}

    def read(self, partition: Partition) -> Iterator[tuple[RatingBatch, list[str], tuple[str, ...]]]:
        """(columns, item ids, raters) in the order of the ids."""
        raters = partition.groups or ("scholar", "auditor")
        items: dict[str, list[int]] = {}
        bad: dict[str, str] = {}
        doubled: set[tuple[str, int]] = set()
        for role, rows in partition.rows.items():
            for file, line, text in rows:
                try:
                    found = self._ratings(text, role, Path(partition.files[file]).stem)
                except (msgspec.DecodeError, UnicodeError, RecursionError, InputError) as error:
                    self._set_aside(bad, partition, file, line, _what(error))
                    continue
                for item, rater, code in found:
                    own = items.setdefault(item, [-1] * len(raters))
                    place = raters.index(rater)
                    if own[place] >= 0:
                        self._set_aside(bad, partition, file, line, f"item {item!r} is labelled twice by {rater!r}")
                        doubled.add((item, place))
                    else:
                        own[place] = code
        for item, place in doubled:
            items[item][place] = -1
        names = sorted({*items, *bad})
        for start in range(0, len(names), BATCH_ROWS):
            chosen = names[start : start + BATCH_ROWS]
            nothing = [-1] * len(raters)
            batch = RatingBatch(
                ratings=np.array([items.get(name, nothing) for name in chosen], dtype=np.int8).T,
                bad=np.array([name in bad for name in chosen]),
                reference=None if self.reference is None else raters.index(self.reference),
                notes={index: bad[name] for index, name in enumerate(chosen) if name in bad},
            )
            yield batch, chosen, raters

    def _ratings(self, text: bytes, role: str, stem: str) -> list[tuple[str, str, int]]:
        row = _decoder.decode(text)
        item = row.key()
        if role == "pairs":
            return [
                (item, name, self._label(part.label if part else None, name))
                for name, part in (("scholar", row.scholar), ("auditor", row.auditor))
            ]
        rater = role if role != "raters" else stem if row.rater is None else str(row.rater)
        return [(item, rater, self._label(row.label, rater))]

    def _label(self, label: str | int | None, rater: str) -> int:
        if label is None or label == "":
            raise InputError(f"{rater} has no label; expected one of {', '.join(self.labels)}")
        code = self._code.get(str(label))
        if code is None:
            raise InputError(unknown_label(str(label), self.labels))
        return code

    def _set_aside(self, bad: dict[str, str], partition: Partition, file: int, line: int, what: str) -> None:
        if not self.skip_bad:
            raise refuse(what, partition.files, file, line)
        bad[f"{Path(partition.files[file]).name}:{line}"] = what


def _what(error: Exception) -> str:
    if isinstance(error, InputError):
        return error.what
    if isinstance(error, msgspec.ValidationError):
        return f"{error}; {EXPECTED}"
    return f"is not JSON: {error}; {EXPECTED}"


def table(
    batch: RatingBatch, items: list[str], raters: Sequence[str], labels: Sequence[str], cites: pa.Array
) -> pa.Table:
    """The rows of samples.parquet: one column a rater."""
    verdicts = batch.verdicts()
    notes: list[str | None] = [batch.notes.get(index) for index in range(batch.n)]
    return pa.table(
        {
            "sample": pa.array(items, pa.string()),
            "model": coded(np.zeros(batch.n, dtype=np.int8), ("raters",)),
            "bucket": coded(_BUCKET[verdicts], BUCKETS),
            "verdict": coded(verdicts, VERDICTS),
            "cites": cites,
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
