"""A batch of items as columns: matched by qid, and what the rules of the consistency protocol read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.base import Partition
from adjudge.protocols.consistency import encoding
from adjudge.protocols.consistency import rows as r
from adjudge.protocols.consistency.reasons import look_into
from adjudge.provenance.canonical import order_of


@dataclass
class PairBatch:
    """Columns over n items. `flags` has a row a flag; `reason_length`, `quotes`, `personal`, `seeding` one an agent."""

    status: encoding.Small
    scholar: encoding.Small
    auditor: encoding.Small
    flags: encoding.Small
    citations: encoding.Small
    out_of_scope: NDArray[np.int32]
    claim: encoding.Small
    answered: encoding.Small
    same_evidence: encoding.Small
    echoed: encoding.Small
    reason_length: NDArray[np.int32]
    personal: encoding.Small
    quotes: encoding.Small
    seeding: encoding.Small
    notes: dict[int, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Items in the batch."""
        return self.status.size

    @property
    def hard_flag(self) -> NDArray[np.bool_]:
        """Whether any red flag is raised."""
        raised: NDArray[np.bool_] = (self.flags == 1).any(axis=0)
        return raised


BATCH_ROWS = 32_768
TEXT_LIMIT = 2000
_PARTS = {
    "scholar": ("scholar_reason", "scholar_digest"),
    "auditor": ("auditor_reason", "auditor_digest"),
    "answers": ("claim", "cited", "cited_outside"),
}
_CODES = {"scholar": "scholar", "auditor": "auditor", "answers": "answer"}


@dataclass
class ReadBatch:
    """A batch as columns, with its keys and its texts; reasons are masked."""

    batch: PairBatch
    samples: pa.StringArray
    reasons: list[pa.StringArray]
    claims: pa.StringArray
    cited: list[pa.StringArray]
    reduced: list[encoding.Small]


class PairReader:
    """Reads pairs, or two agents' files and their answers. `flags` is how many flags there are."""

    def __init__(self, *, paired: bool, flags: int, skip_bad: bool) -> None:
        self.paired, self.flags, self.skip_bad = paired, flags, skip_bad

    def read(self, partition: Partition) -> Iterator[ReadBatch]:
        """Batches in the order of the keys; an item with a row that cannot be used is one item, and has no labels."""
        bad: dict[str, list[str]] = {}
        items = self._rows(partition, "pairs", bad) if self.paired else self._joined(partition, bad)
        if bad:
            usable = pc.invert(pc.is_in(items.column("key"), value_set=pa.array(list(bad), pa.string())))
            items = encoding.together(items.filter(usable), _bad_items(bad))
            items = items.take(pa.array(order_of(encoding.column(items, "key"))))
        for start in range(0, items.num_rows, BATCH_ROWS):
            yield columns(items.slice(start, BATCH_ROWS), self.flags)

    def _joined(self, partition: Partition, bad: dict[str, list[str]]) -> pa.Table:
        """The items of all roles; the status says who labelled them."""
        sides = {role: self._rows(partition, role, bad) for role in _PARTS if role in partition.tables}
        keys = pc.unique(pa.chunked_array([encoding.column(side, "key") for side in sides.values()]))
        keys = keys.take(pa.array(order_of(keys)))
        codes = encoding.blank(len(keys))
        texts: dict[str, pa.Array] = {}
        present = dict.fromkeys(_PARTS, np.zeros(len(keys), dtype=np.bool_))
        for role, side in sides.items():
            place = pc.index_in(keys, encoding.column(side, "key"))
            present[role] = place.is_valid().to_numpy(zero_copy_only=False)
            part = _CODES[role]
            codes[part][present[role]] = encoding.codes_of(side)[part][place.drop_null().to_numpy()]
            texts |= {name: encoding.column(side, name).take(place) for name in _PARTS[role]}
        one, two = present["scholar"], present["auditor"]
        codes["status"] = np.where(
            one & two,
            encoding.PAIRED,
            np.where(one, encoding.ONLY_SCHOLAR, np.where(two, encoding.ONLY_AUDITOR, encoding.UNKNOWN_ANSWER)),
        )
        return encoding.table(keys, codes, texts)

    def _rows(self, partition: Partition, role: str, bad: dict[str, list[str]]) -> pa.Table:
        """The rows of a role that can be used, in the order of their keys; the others go to `bad`."""
        table = partition.tables[role]
        keys, notes = encoding.column(table, "key"), encoding.column(table, "note")
        order = order_of(keys)
        wrong: dict[int, str] = {}
        if notes.null_count < len(notes):
            wrong = {row: notes[row].as_py() for row in np.flatnonzero(notes.is_valid()).tolist()}
        again = _equal_neighbours(keys.take(pa.array(order)))
        if again.any():
            self._twice(partition, role, np.sort(order[again]), wrong)
        if wrong:
            for row in sorted(wrong):
                place = r.place_of(partition.files, *self._place(partition, role, row))
                name = keys[row].as_py()
                bad.setdefault(place if name == r.BAD_KEY else name, []).append(f"{place}: {wrong[row]}")
            order = order[~np.isin(order, list(wrong))]
        return table.drop_columns(["file", "line"]).take(pa.array(order))

    def _twice(self, partition: Partition, role: str, rows: NDArray[np.int64], wrong: dict[int, str]) -> None:
        """Set aside rows whose qid is not theirs alone."""
        keys, status = partition.tables[role].column("key"), encoding.codes_of(partition.tables[role])["status"]
        first: dict[str, int] = {}
        for row in rows.tolist():
            if status[row] == encoding.BAD_ROW:
                continue
            qid = keys[row].as_py()
            if qid not in first:
                first[qid] = row
                continue
            file, line = self._place(partition, role, first[qid])
            what = f"qid {qid!r} stands already at {Path(partition.files[file]).name}:{line}"
            if not self.skip_bad:
                raise r.refuse(what, partition.files, *self._place(partition, role, row))
            wrong[row] = what
            wrong.setdefault(first[qid], f"qid {qid!r} stands again")

    @staticmethod
    def _place(partition: Partition, role: str, row: int) -> tuple[int, int]:
        table = partition.tables[role]
        return table.column("file")[row].as_py(), table.column("line")[row].as_py()


def columns(items: pa.Table, flags: int) -> ReadBatch:
    """The columns of some items."""
    codes = encoding.codes_of(items)
    agents = (codes["scholar"], codes["auditor"])
    labels = (_column(agents[0]["label"]), _column(agents[1]["label"]))
    reasons = look_into([encoding.column(items, f"{name}_reason") for name in encoding.AGENTS], labels)
    answer = codes["answer"]
    notes = encoding.column(items, "note")
    batch = PairBatch(
        status=_column(codes["status"]),
        scholar=labels[0],
        auditor=labels[1],
        flags=encoding.flag_codes(answer["flags_known"], answer["flags_raised"], flags),
        citations=_column(answer["citations"]),
        out_of_scope=np.ascontiguousarray(answer["out_of_scope"]),
        claim=_column(answer["claim"]),
        answered=_column(answer["answered"]),
        same_evidence=_same(*(encoding.column(items, f"{name}_digest") for name in encoding.AGENTS)),
        echoed=_column(answer["echoed"]),
        reason_length=reasons.lengths,
        personal=reasons.personal,
        quotes=reasons.quotes,
        seeding=np.stack([agent["seeding"] for agent in agents]),
        notes={}
        if notes.null_count == len(notes)
        else {row: notes[row].as_py() for row in np.flatnonzero(notes.is_valid()).tolist()},
    )
    reduced = [_column(agent["reduced"]) for agent in agents]
    claims, *cited = (encoding.column(items, name) for name in ("claim", "cited", "cited_outside"))
    return ReadBatch(batch, encoding.column(items, "key"), reasons.texts, claims, cited, reduced)


def _column(values: NDArray[np.int8]) -> encoding.Small:
    return np.ascontiguousarray(values)


def _same(one: pa.StringArray, two: pa.StringArray) -> encoding.Small:
    """Whether both agents saw the same evidence, where both say which."""
    if one.null_count == len(one) or two.null_count == len(two):
        return np.full(len(one), encoding.ABSENT, dtype=np.int8)
    same: encoding.Small = pc.equal(one, two).cast(pa.int8()).fill_null(encoding.ABSENT).to_numpy()
    return same


def _equal_neighbours(keys: pa.StringArray) -> NDArray[np.bool_]:
    """Which of some sorted keys stand more than once."""
    repeated = np.zeros(len(keys), dtype=np.bool_)
    if len(keys) > 1:
        equal = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
        repeated[1:] |= equal
        repeated[:-1] |= equal
    return repeated


def _bad_items(bad: dict[str, list[str]]) -> pa.Table:
    """Items that no row of can be used, each with a line a row on what is wrong."""
    codes = encoding.blank(len(bad))
    codes["status"] = encoding.BAD_ROW
    notes = pa.array(["\n".join(lines) for lines in bad.values()], pa.string())
    return encoding.table(pa.array(list(bad), pa.string()), codes, {"note": notes})
