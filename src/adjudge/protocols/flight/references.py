"""Reference lines of the flight protocol as columns: the true next states and the last shown one."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.errors import InputError
from adjudge.protocols.flight.cells import Floats, array_rows, as_lists, finite, state_rows
from adjudge.protocols.flight.fields import FIELDS, Task
from adjudge.protocols.flight.values import (
    NO_STATE,
    NO_TRIPLE,
    State,
    StateList,
    StateTriple,
    any_values,
    gold_of,
    last_state,
    shown_type,
    state_of,
)
from adjudge.readers.blocks import Block

EXPECTED = "a reference line is a JSON object with `id` and `next_second` (or `sample_id` and `T+1`)"
KEYS = {
    **dict.fromkeys(("id", "sample_id", "flight_id")),
    **dict.fromkeys(("next_second", "T+1", "current_state"), dict.fromkeys(FIELDS)),
}


def schema(task: Task) -> pa.Schema:
    """The columns of the table; gold by step, then field."""
    return pa.schema(
        [
            ("key", pa.string()),
            ("file", pa.int32()),
            ("line", pa.int64()),
            ("flight", pa.string()),
            ("fault", pa.string()),
            ("gold", pa.list_(pa.float64(), task.steps * len(FIELDS))),
            ("shown", pa.list_(pa.float64(), len(FIELDS))),
        ]
    )


class ReferenceReader:
    """Reads blocks of reference lines."""

    def __init__(self, task: Task, *, by_line: bool) -> None:
        self.task, self.by_line = task, by_line
        self.schema = schema(task)
        self._type = _reference_type(task)
        self._decoder = msgspec.json.Decoder(self._type, strict=False)

    def read(self, block: Block) -> pa.Table:
        """A row a reference line."""

        def loose(line: int, record: bytes) -> Any:
            return self._loose(record, block.path, line)

        records = block.decode(self._decoder, EXPECTED, loose)
        if self.by_line:
            keys = [str(line) for line in block.lines.tolist()]
        else:
            ids = [record.sample_id if record.id is None else record.id for record in records]
            if None in ids:
                line = int(block.lines[ids.index(None)])
                raise InputError("has neither `id` nor `sample_id`", file=block.path, line=line)
            keys = [str(key) for key in ids]
        flights = [record.flight_id for record in records]
        shown = [NO_STATE if (last := last_state(record.current_state)) is None else last for record in records]
        columns = [
            pa.array(keys, pa.string()),
            pa.array(np.full(len(records), block.file, dtype=np.int32)),
            pa.array(block.lines),
            pa.array([None if flight is None else str(flight) for flight in flights], pa.string()),
            pa.nulls(len(records), pa.string()),
            as_lists(self._gold(records), np.array([record.gold is None for record in records], dtype=bool)),
            as_lists(finite(state_rows(shown))),
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _gold(self, records: list[Any]) -> Floats:
        """The numbers of every gold answer, by step, then field; NaN where there is none."""
        if self.task.arrays:
            triples = [NO_TRIPLE if record.gold is None else record.gold for record in records]
            return finite(array_rows(triples, self.task.steps))
        states = [NO_STATE if record.gold is None else record.gold for record in records]
        return finite(state_rows([_first(state) if isinstance(state, StateList) else state for state in states]))

    def _loose(self, record: bytes, path: str, line: int) -> Any:
        """A reference line with values that are no numbers, without gold, or with that of another task."""
        data = any_values.decode(record)
        if not isinstance(data, dict):
            return self._decoder.decode(record)  # which says what is wrong
        key = data.get("sample_id") if data.get("id") is None else data["id"]
        if not self.by_line and (isinstance(key, bool) or not isinstance(key, str | int | None)):
            what = f"its id is {key!r}, expected a text or a whole number; {EXPECTED}"
            raise InputError(what, file=path, line=line)
        last = last_state(data.get("current_state"))
        flight = data.get("flight_id")
        return self._type(
            gold=gold_of(data, self.task),
            id=key,
            flight_id=None if flight is None else str(flight),
            current_state=None if last is None else state_of(last),
        )


def _first(state: Any) -> Any:
    return State(*[values[0] for values in msgspec.structs.astuple(state)])


def _reference_type(task: Task) -> Any:
    return msgspec.defstruct(
        f"Reference{task.name}",
        [
            ("gold", {"S1": State, "M1": StateList, "M3": StateTriple}[task.name]),
            ("id", str | int | None, None),
            ("sample_id", str | int | None, None),
            ("flight_id", str | int | None, None),
            ("current_state", shown_type(task) | None, None),
        ],
        rename={"gold": "next_second" if task.name == "S1" else "T+1"},
        gc=False,
    )
