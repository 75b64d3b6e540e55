"""Reference lines of the flight protocol as columns: the true next states and the last shown one, packed."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.flight.facts import fixed
from adjudge.protocols.flight.fields import FIELDS, Task
from adjudge.protocols.flight.outputs import shown_type
from adjudge.protocols.flight.values import State, StateList, StateTriple, gold_values, state_values
from adjudge.readers.blocks import Block
from adjudge.readers.scan import ABSENT, ARRAY, ESCAPED, INTEGER, NULL, OBJECT, REAL, TEXT, WRITTEN, Wanted, scan

EXPECTED = "a reference line is a JSON object with `id` and `next_second` (or `sample_id` and `T+1`)"
_NUMBERS = (INTEGER, REAL)


def schema(task: Task) -> pa.Schema:
    """The columns of the table; gold by step, then field."""
    return pa.schema(
        [
            ("key", pa.string()),
            ("line", pa.int64()),
            ("flight", pa.string()),
            ("gold", pa.binary(8 * task.steps * len(FIELDS))),
            ("shown", pa.binary(8 * len(FIELDS))),
            ("file", pa.int32()),
        ]
    )


class ReferenceReader:
    """Reads blocks of reference lines; everything that does not change from block to block is made once."""

    def __init__(self, task: Task, *, by_line: bool) -> None:
        self.task, self.by_line = task, by_line
        self.schema = schema(task)
        self._decode = msgspec.json.Decoder(_reference_type(task), strict=False).decode
        self._pack_state = struct.Struct(f"{len(FIELDS)}d").pack
        self._pack_cells = struct.Struct(f"{len(FIELDS) * task.steps}d").pack
        self._gold = "next_second" if task.name == "S1" else "T+1"
        self._in_lists = task.name != "S1"
        self._state: tuple[str | int, ...] = ("current_state",)
        if task.shown > 1:
            self._state = ("current_state", task.shown - 1)
        gold = [
            (self._gold, name, step) if self._in_lists else (self._gold, name)
            for step in range(task.steps)
            for name in FIELDS
        ]
        state = [(*self._state, name) for name in FIELDS]
        self._wanted = Wanted([("id",), ("sample_id",), ("flight_id",), *gold, *state])
        self._gold_cells, self._state_cells = self._wanted.cells(gold), self._wanted.cells(state)
        self._allowed = self._wanted.allowed(dict.fromkeys([*gold, *state], _NUMBERS))

    def read(self, block: Block) -> pa.Table:
        """A row a reference line: plain ones at once, the others one by one."""
        rows: NDArray[Any] = np.arange(len(block))
        tables = []
        if block.fast and not self.by_line:
            plain, odd = self._at_once(block)
            tables.append(plain)
            rows = np.flatnonzero(odd)
        if rows.size or not tables:
            found = block.each_of(rows.tolist(), lambda line, text: self._one(line, text, block.path), EXPECTED)
            tables.append(_table(self.schema, found, block.file))
        return pa.concat_tables(tables)

    def _at_once(self, block: Block) -> tuple[pa.Table, NDArray[np.bool_]]:
        """A row a line, without a key where it is not plain; and which are not."""
        found = scan(self._wanted, block.data, block.starts, block.ends, fast=True)
        found.expect("id", kinds=WRITTEN)
        found.expect("sample_id", kinds=(TEXT, ESCAPED, INTEGER, ABSENT, NULL))
        found.expect("flight_id", kinds=(TEXT, ESCAPED, ABSENT, NULL))
        found.expect(self._gold, kinds=(OBJECT,))
        found.odd |= (found.kinds("id") == INTEGER) & (found.numbers("id") == 0)
        if self._in_lists:
            for name in FIELDS:
                found.odd |= (found.kinds(self._gold, name) != ARRAY) | (
                    found.numbers(self._gold, name) != self.task.steps
                )
        if self.task.shown > 1:
            found.odd |= (found.kinds("current_state") != ARRAY) | (found.numbers("current_state") != self.task.shown)
        found.expect_all(self._allowed)
        arrays = [
            found.texts("id", kinds=WRITTEN),
            pa.array(block.lines),
            found.texts("flight_id"),
            fixed(found.records(self._gold_cells), 8 * self.task.steps * len(FIELDS)),
            fixed(found.records(self._state_cells), 8 * len(FIELDS)),
            pa.array(np.full(len(block), block.file, dtype=np.int32)),
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema), found.odd

    def _one(self, line: int, text: bytes, path: str) -> tuple[str, int, str | None, bytes | None, bytes | None]:
        """The columns of one line, but the file."""
        gold: bytes | None
        state: bytes | None
        try:
            typed = self._decode(text)
            gold = self._packed(msgspec.structs.astuple(typed.gold))
            last = typed.current_state
            if isinstance(last, tuple):
                last = last[-1]
            state = None if last is None else self._pack_state(*msgspec.structs.astuple(last))
            key, flight = (typed.sample_id if typed.id is None else typed.id), typed.flight_id
        except (msgspec.ValidationError, IndexError):
            key, flight, gold, state = self._loose(msgspec.json.decode(text, type=dict[str, Any]))
        if self.by_line:
            key = line
        elif key is None:
            raise InputError("has neither `id` nor `sample_id`", file=path, line=line)
        elif isinstance(key, bool) or not isinstance(key, str | int):
            raise InputError(f"its id is {key!r}, expected a text or a whole number; {EXPECTED}", file=path, line=line)
        return str(key), line, None if flight is None else str(flight), gold, state

    def _packed(self, values: tuple[Any, ...]) -> bytes:
        """The typed values of a gold answer, by step, then field."""
        if self.task.name == "S1":
            return self._pack_cells(*values)
        if self.task.name == "M1":
            return self._pack_cells(*[value[0] for value in values])
        return self._pack_cells(*itertools.chain.from_iterable(zip(*values, strict=True)))

    def _loose(self, data: dict[str, Any]) -> tuple[Any, Any, bytes | None, bytes | None]:
        key = data.get("sample_id") if data.get("id") is None else data.get("id")
        gold = None
        if data.get("T+1") is not None or data.get("next_second") is not None:
            gold = self._pack_cells(*itertools.chain.from_iterable(gold_values(data, self.task)))
        state = data.get("current_state")
        last = state[-1] if isinstance(state, list) and state else state
        return key, data.get("flight_id"), gold, None if last is None else self._pack_state(*state_values(last))


def _table(schema: pa.Schema, rows: Sequence[tuple[Any, ...]], file: int) -> pa.Table:
    """A table of rows that lack only the last column, the file."""
    columns = zip(*rows, strict=True) if rows else itertools.repeat(())
    arrays = [pa.array(column, field.type) for column, field in zip(columns, list(schema)[:-1], strict=False)]
    return pa.Table.from_arrays([*arrays, pa.array(np.full(len(rows), file, dtype=np.int32))], schema=schema)


def _reference_type(task: Task) -> Any:
    kind = {"S1": State, "M1": StateList, "M3": StateTriple}[task.name]
    return msgspec.defstruct(
        f"Reference{task.name}",
        [
            ("gold", kind),
            ("id", str | int | None, None),
            ("sample_id", str | int | None, None),
            ("flight_id", str | int | None, None),
            ("current_state", shown_type(task) | None, None),
        ],
        rename={"gold": "next_second" if task.name == "S1" else "T+1"},
        gc=False,
    )
