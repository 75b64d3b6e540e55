"""From blocks of JSON to columns: the results of one run, read many at a time.

Rows of a known form are read by comparing bytes, other rows by the compiled scan, and what that is not certain about the
ordinary way. The facts of a record are sent as a code. What a code stands for is sent once a block, in the column
`group`, which every partition gets; or beside the record, in `facts`, where there are too many to hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.triage.batch import TIMES, Floats
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.facts import NUMBERS, Facts, Setup, code_of, packed
from adjudge.protocols.triage.records import EXPECTED, LAST_TRIAL, Records, Row, stamped
from adjudge.protocols.triage.slices import SliceTexts
from adjudge.readers.blocks import Block
from adjudge.readers.forms import Forms, Holes
from adjudge.readers.numbered import Numbered
from adjudge.readers.scan import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    INTEGER,
    NULL,
    OBJECT,
    REAL,
    TEXT,
    TRUE,
    Path,
    Scanned,
    Wanted,
    padded,
    scan,
)

MOST_TOOLS = 8  # calls of tools that the compiled loops look into; a record with more is read the ordinary way
HELD_TEXT = 1 << 18  # characters of facts that every partition gets

Rows = NDArray[np.intp]
_WIDTH = NUMBERS.itemsize // 8
_ID: Path = ("id",)
_STAMP: Path = ("timestamp",)
_SETUP: tuple[Path, ...] = (
    ("model",),
    ("use_tools",),
    ("trial",),
    ("prompt_hashes",),
    ("models",),
    ("run_config", "temperature"),
)
_SAID: tuple[Path, ...] = (("label",), ("prediction",), ("error",), ("error_type",), ("cache", "hit"))
_TIMES: dict[str, Path] = {
    name: ("latency_seconds",) if name == "latency_seconds" else ("timings", name) for name in TIMES
}
_CALLS: tuple[Path, ...] = tuple(("tool_details", place, "seconds") for place in range(MOST_TOOLS))
_TEXTS, _NUMBERS = (TEXT, ESCAPED, NULL, ABSENT), (INTEGER, REAL, NULL, ABSENT)
_FLAGS, _LISTS, _OBJECTS = (TRUE, FALSE, NULL, ABSENT), (ARRAY, NULL, ABSENT), (OBJECT, ABSENT)
_KINDS: dict[Path, tuple[int, ...]] = {
    _ID: (TEXT, ESCAPED),
    **dict.fromkeys([("model",), ("label",), ("prediction",), ("error",), ("error_type",)], _TEXTS),
    **dict.fromkeys([("use_tools",), ("cache", "hit")], _FLAGS),
    **dict.fromkeys([("confidence",), ("run_config", "temperature"), *_TIMES.values(), *_CALLS], _NUMBERS),
    **dict.fromkeys([("timings",), ("cache",), ("run_config",), *(path[:2] for path in _CALLS)], _OBJECTS),
    **dict.fromkeys([("tool_usage",), ("tool_details",)], _LISTS),
    ("trial",): (INTEGER, ABSENT),
    _STAMP: (INTEGER, REAL, TEXT, NULL, ABSENT),
}
"""What the typed reader would read too, and in the same way."""

_HOLES: dict[Path, tuple[int, float]] = {
    ("confidence",): (0, math.nan),
    **{path: (1 + place, math.nan) for place, path in enumerate(_TIMES.values())},
    **{path: (_WIDTH + place, 0.0) for place, path in enumerate(_CALLS)},
}


class Fact(NamedTuple):
    """The facts of some records as they are sent."""

    text: str
    code: int
    setup: Setup

    @classmethod
    def of(cls, facts: Facts) -> Fact:
        """The facts as they are sent."""
        text = facts.text()
        return cls(text, code_of(text), facts.setup)


@dataclass
class _Part:
    """Some rows of a block: ids, numbers, and for each row the places of its facts and of its slices."""

    rows: Rows
    ids: pa.StringArray
    numbers: NDArray[np.void]
    place: NDArray[np.int64]
    facts: Sequence[Fact]
    cut: NDArray[np.int32]
    slices: Sequence[str]


class ResultIntake:
    """Reads the results of one run."""

    def __init__(self, config: TriageConfig, run: str | None) -> None:
        self.config = config
        self._records = Records(config, run)
        self._slices = SliceTexts(config.slices)
        texts: list[Path] = [_ID, _STAMP, *_SETUP, *_SAID]
        self._wanted = Wanted(
            [*texts, ("confidence",), ("tool_usage",), *_TIMES.values(), *_CALLS, *self._slices.paths]
        )
        self._allowed = self._wanted.allowed(_KINDS)
        self._setups: Numbered[Setup] = Numbered(self._wanted, _SETUP)
        self._saids: Numbered[Facts] = Numbered(self._wanted, _SAID)
        self._sliced: Numbered[str] = Numbered(self._wanted, self._slices.paths)
        self._forms = Forms(Holes([*texts, *self._slices.paths], _HOLES, _KINDS, [_ID]), _WIDTH)
        self._version = 0
        self._held: set[str] = set()
        self._room = HELD_TEXT

    def read(self, block: Block) -> pa.Table:
        """A row for every record."""
        data = padded(block.data, int(block.ends.max(initial=0)))
        parts: list[_Part] = []
        rest = np.arange(len(block))
        if block.fast and self._forms.known:
            parts.append(self._formed(block, data))
            rest = np.delete(rest, parts[0].rows) if parts[0].rows.size < rest.size else rest[:0]
        if rest.size:
            scanned = self._scan(block, data, rest)
            if not scanned.odd.all():
                parts.append(self._scanned(block, scanned, rest))
                self._learn(block, parts[-1].rows)
            if scanned.odd.any():
                parts.append(self._ordinary(block, rest[scanned.odd]))
        return self._table(block, _joined([part for part in parts if part.rows.size]))

    def _formed(self, block: Block, data: NDArray[np.uint8]) -> _Part:
        forms = self._forms
        if self._version != forms.version:
            self._version = forms.version
            self._alike: Numbered[tuple[Fact, ...]] = Numbered(forms.slots, forms.below((*_SETUP, *_SAID)), [0])
            self._cut: Numbered[str] = Numbered(forms.slots, forms.below(self._slices.paths), [0])
        scanned, form, values, number, known = forms.read(
            data, block.starts, block.ends, self._alike, lambda row: _stampings(self._example(block, row).facts)
        )
        place = 3 * number.astype(np.int64)
        if _STAMP in forms.slots.nodes:
            place += np.where(scanned.kinds(*_STAMP) == ABSENT, 0, 1 + _stamped(scanned))
        cut, slices = np.zeros(place.size, dtype=np.int32), [""]
        if self._slices.paths:
            cut, slices = self._cut.of(scanned, lambda row: self._example(block, row).slices)
        found = _Part(
            np.arange(len(block)),
            scanned.texts(*_ID),
            _numbers(values, np.array([own.base.size - _WIDTH for own in forms.all()])[form]),
            place,
            [fact for facts in known for fact in facts],
            cut,
            slices,
        )
        return _kept(found, ~scanned.odd) if scanned.odd.any() else found

    def _scan(self, block: Block, data: NDArray[np.uint8], rows: Rows) -> Scanned:
        """The rows that the typed reader would read too, and in the same way; all others are odd."""
        scanned = scan(self._wanted, data, block.starts[rows], block.ends[rows], fast=block.fast)
        if scanned.odd.all():
            return scanned
        scanned.expect_all(self._allowed)
        trial = scanned.numbers("trial")
        scanned.odd |= (trial < 0) | (trial > LAST_TRIAL) | (scanned.numbers("tool_details") > MOST_TOOLS)
        return scanned

    def _scanned(self, block: Block, scanned: Scanned, rows: Rows) -> _Part:
        setup, setups = self._setups.of(scanned, lambda at: self._example(block, int(rows[at])).facts.setup)
        said, saids = self._saids.of(scanned, lambda at: self._example(block, int(rows[at])).facts)
        kept = ~scanned.odd
        code = (setup.astype(np.int64) * len(saids) + said) * 2 + _stamped(scanned)
        pairs, place = np.unique(code[kept], return_inverse=True)
        facts = []
        for pair in pairs.tolist():
            both, given = divmod(pair, 2)
            own, other = divmod(both, len(saids))
            facts.append(Fact.of(stamped(Facts(setups[own], saids[other].said), given=bool(given))))
        cut, slices = np.zeros(place.size, dtype=np.int32), [""]
        if self._slices.paths:
            cut, slices = self._sliced.of(scanned, lambda at: self._example(block, int(rows[at])).slices)
            cut = cut[kept]
        values = np.zeros((scanned.odd.size, _WIDTH + MOST_TOOLS))
        for path, (column, none) in _HOLES.items():
            kind = scanned.kinds(*path)
            values[:, column] = np.where((kind == INTEGER) | (kind == REAL), scanned.numbers(*path), none)
        calls = scanned.numbers("tool_details") * (scanned.kinds("tool_details") == ARRAY)
        numbers = _numbers(values, calls.astype(np.int64))
        numbers["tool_count"] = np.where(scanned.kinds("tool_usage") == ARRAY, scanned.numbers("tool_usage"), 0)
        ids = scanned.texts(*_ID, rows=np.flatnonzero(kept))
        return _Part(rows[kept], ids, numbers[kept], place, facts, cut, slices)

    def _ordinary(self, block: Block, rows: Rows) -> _Part:
        found: list[Row] = block.each_of(rows.tolist(), self._records.reader(block), EXPECTED)
        facts = {row.facts.text(): row.facts.setup for row in found}
        places = {text: place for place, text in enumerate(facts)}
        return _Part(
            rows,
            pa.array([row.id for row in found], pa.string()),
            np.array([row.numbers for row in found], dtype=NUMBERS),
            np.array([places[row.facts.text()] for row in found], dtype=np.int64),
            [Fact(text, code_of(text), setup) for text, setup in facts.items()],
            np.arange(rows.size, dtype=np.int32),
            [row.slices for row in found],
        )

    def _example(self, block: Block, row: int) -> Row:
        return block.each_of([row], self._records.reader(block), EXPECTED)[0]

    def _learn(self, block: Block, rows: Rows) -> None:
        chosen = self._forms.examples(rows)

        def base(place: int) -> Floats:
            row = self._example(block, int(chosen[place]))
            own = np.array([row.numbers], dtype=NUMBERS).view(np.float64)
            return np.concatenate([own, row.tools])

        texts = block.each_of(chosen.tolist(), lambda _, text: text, EXPECTED)
        self._forms.learn(texts, base)

    def _table(self, block: Block, part: _Part) -> pa.Table:
        n, place = len(block), part.place
        first = np.full(len(part.facts), -1, dtype=np.int64)
        first[place[::-1]] = np.arange(n - 1, -1, -1)
        codes = np.zeros(len(part.facts), dtype=np.uint64)
        beside = np.zeros(len(part.facts), dtype=np.bool_)
        told: dict[str, int] = {}
        for at in np.flatnonzero(first >= 0).tolist():
            fact = part.facts[at]
            codes[at], beside[at] = fact.code, not self._hold(fact.text)
            text = Facts(Setup(*fact.setup.group)).text() if beside[at] else fact.text
            told[text] = min(told.get(text, n), int(first[at]))
        part.numbers["facts"] = codes[place]
        part.numbers["file"] = block.file
        columns = {
            "key": part.ids,
            "line": pa.array(block.lines),
            "numbers": packed(part.numbers),
            "group": _sparse(n, {row: text for text, row in told.items()}),
            "facts": _sparse(n, {row: part.facts[place[row]].text for row in np.flatnonzero(beside[place]).tolist()}),
        }
        if self._slices.paths:
            columns["slices"] = pa.array(part.slices, pa.string()).take(pa.array(part.cut))
        return pa.table(columns)

    def _hold(self, text: str) -> bool:
        """Whether every partition is told what a code stands for; there is room for so many."""
        if text in self._held:
            return True
        if len(text) > self._room:
            return False
        self._held.add(text)
        self._room -= len(text)
        return True


def _stampings(facts: Facts) -> tuple[Fact, ...]:
    """The facts as they are, without a timestamp, and with one."""
    return Fact.of(facts), Fact.of(stamped(facts, given=False)), Fact.of(stamped(facts, given=True))


def _numbers(values: Floats, calls: NDArray[np.int64]) -> NDArray[np.void]:
    """The columns of NUMBERS; behind them stand the seconds of tool calls, which are added up exactly and rounded once."""
    seconds = values[:, _WIDTH:]
    found = np.ascontiguousarray(values[:, :_WIDTH]).view(NUMBERS).ravel()
    if seconds.shape[1]:
        total = seconds[:, :2].sum(axis=1) + 0.0  # no negative zero
        for row in np.flatnonzero(calls > 2).tolist():
            total[row] = math.fsum(seconds[row])
        found["tool_seconds"] = total
    return found


def _stamped(scanned: Scanned) -> NDArray[np.int64]:
    kind = scanned.kinds(*_STAMP)
    first, last = scanned.spans(*_STAMP)
    given = (kind == INTEGER) | (kind == REAL) | ((kind == TEXT) & (last > first))
    return np.asarray(given, dtype=np.int64)


def _kept(part: _Part, mask: NDArray[np.bool_]) -> _Part:
    rows = np.flatnonzero(mask)
    ids = part.ids.take(pa.array(rows))
    return _Part(rows, ids, part.numbers[rows], part.place[rows], part.facts, part.cut[rows], part.slices)


def _joined(parts: list[_Part]) -> _Part:
    """All rows of a block, in order."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([part.rows for part in parts]))
    facts = np.cumsum([0, *(len(part.facts) for part in parts)])
    slices = np.cumsum([0, *(len(part.slices) for part in parts)])
    return _Part(
        np.arange(order.size),
        pa.concat_arrays([part.ids for part in parts]).take(pa.array(order)),
        np.concatenate([part.numbers for part in parts])[order],
        np.concatenate([part.place + first for part, first in zip(parts, facts, strict=False)])[order],
        [fact for part in parts for fact in part.facts],
        np.concatenate([part.cut + np.int32(first) for part, first in zip(parts, slices, strict=False)])[order],
        [text for part in parts for text in part.slices],
    )


def _sparse(n: int, texts: dict[int, str]) -> pa.StringArray:
    """A column of n texts, almost all of them null."""
    rows = sorted(texts)
    encoded = [texts[row].encode() for row in rows]
    sizes, there = np.zeros(n + 1, dtype=np.int32), np.zeros(n, dtype=np.bool_)
    sizes[np.array(rows, dtype=np.int64) + 1] = [len(text) for text in encoded]
    there[rows] = True
    return pa.StringArray.from_buffers(
        n,
        pa.py_buffer(np.cumsum(sizes, dtype=np.int32)),
        pa.py_buffer(b"".join(encoded)),
        pa.py_buffer(np.packbits(there, bitorder="little")),
    )
