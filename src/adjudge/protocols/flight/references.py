"""Reference lines of the flight protocol as columns: the true next states, the last shown one, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.errors import InputError
from adjudge.protocols.flight.cells import Floats, array_rows, as_lists, finite, state_rows
from adjudge.protocols.flight.fields import FIELDS, TASKS, Task, task_named_in
from adjudge.protocols.flight.lines import Lines
from adjudge.protocols.flight.shown import ABSENT, STATE_KEYS, raw_state, shown_decoder, state_lists
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
_GOLD = dict.fromkeys(("next_second", "T+1"), dict.fromkeys(FIELDS))
KEYS: dict[str, Any] = {
    **dict.fromkeys(("id", "sample_id", "flight_id", "task_id", "question", "record_idx")),
    **_GOLD,
    "gold": {**_GOLD, "available": None},
    **STATE_KEYS,
}
NO_GOLD = "has no gold answer"
OTHER_TASK = "another task than"
SHARED = ("next_second_pairs.jsonl", "flight_3window_samples.jsonl")
"""References of the original method: their names, not their folders, say which tasks they are of."""
_KEY_OF_TASK = {"S1": "next_second", "M1": "T+1", "M3": "T+1"}
_GOLD_TYPE = {"S1": State, "M1": StateList, "M3": StateTriple}


def schema(tasks: Sequence[Task]) -> pa.Schema:
    """The columns of the table; gold by step, then field."""
    return pa.schema(
        [
            ("key", pa.string()),
            ("file", pa.int32()),
            ("line", pa.int64()),
            ("flight", pa.string()),
            ("fault", pa.string()),
            ("gold", pa.list_(pa.float64(), max(task.steps for task in tasks) * len(FIELDS))),
            ("shown", pa.list_(pa.float64(), len(FIELDS))),
            ("question", pa.string()),
        ]
    )


class ReferenceReader(Lines):
    """Reads blocks of reference lines. A line with `T+1` is a row of M1 and of M3, where a run judges both."""

    def __init__(self, tasks: Sequence[Task], *, by_line: bool = False) -> None:
        super().__init__(tasks, dict.fromkeys(TASKS, 0) if by_line else None)
        self.schema = schema(tasks)
        self._readers = {task.name: _TaskReader(task) for task in tasks}

    def read(self, block: Block) -> pa.Table:
        """A row a reference line and task."""
        numbers = list(self.numbers(block)) if self.by_line else None
        tables = [self._table(block, task, numbers) for task in self._tasks(block)]
        return pa.concat_tables(tables) if len(tables) > 1 else tables[0]

    def _tasks(self, block: Block) -> Sequence[Task]:
        """The tasks that a file's gold is of: as its name says, as its first line does, or all."""
        if not self.several:
            return self.tasks
        named = None if Path(block.path).name in SHARED else task_named_in(block.path)
        data = any_values.decode(block.some_records([0])[0]) if len(block) else {}
        told = data.get("task_id") if isinstance(data, dict) else None
        if told in TASKS or named:
            return [task for task in self.tasks if task.name == (told if told in TASKS else named)] or self.tasks
        gold = data.get("gold") if isinstance(data, dict) and isinstance(data.get("gold"), dict) else data
        arrays = isinstance(gold, dict) and "T+1" in gold
        return [task for task in self.tasks if (_KEY_OF_TASK[task.name] == "T+1") == arrays] or self.tasks

    def _table(self, block: Block, task: Task, numbers: Sequence[int] | None) -> pa.Table:
        reader = self._readers[task.name]
        records = reader.decode(block, by_line=self.by_line)
        told = [record.task_id for record in records]
        if self.several:
            wanted = np.array([name is None or name == task.name for name in told])
        else:
            self.tasks_of(block, told)
            wanted = np.ones(len(records), dtype=bool)
        ids: Sequence[Any] = numbers or [record.sample_id if record.id is None else record.id for record in records]
        if None in ids:
            line = int(block.lines[ids.index(None)])
            raise InputError("has neither `id` nor `sample_id`", file=block.path, line=line)
        gold, faults = reader.gold(records, block)
        spare = self.schema.field("gold").type.list_size - gold.shape[1]
        gold = np.pad(gold, ((0, 0), (0, spare)), constant_values=np.nan) if spare else gold
        flights = [None if record.flight_id is None else str(record.flight_id) for record in records]
        states = reader.states(records)
        questions = [record.question if state is None else None for record, state in zip(records, states, strict=True)]
        columns = [
            self.keys(task, ids),
            pa.array(np.full(len(records), block.file, dtype=np.int32)),
            pa.array(block.lines),
            pa.array(flights, pa.string()),
            pa.array(faults, pa.string()),
            as_lists(gold, np.array([fault is not None for fault in faults], dtype=bool)),
            state_lists(states),
            pa.array(questions, pa.string()),
        ]
        table = pa.Table.from_arrays(columns, schema=self.schema)
        return table if wanted.all() else table.filter(pa.array(wanted))


class _TaskReader:
    """Decodes reference lines as those of one task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.type = msgspec.defstruct(
            f"Reference{task.name}",
            [
                ("answer", _GOLD_TYPE[task.name]),
                ("id", str | int | None, None),
                ("sample_id", str | int | None, None),
                ("flight_id", str | int | None, None),
                ("task_id", str | None, None),
                ("question", str | None, None),
                ("current_state", shown_type(task) | None, None),
                ("current", msgspec.Raw, ABSENT),
                ("context", msgspec.Raw, ABSENT),
                ("other_task", bool, False),
            ],
            rename={"answer": _KEY_OF_TASK[task.name], "other_task": " other task "},  # no key of a file
            gc=False,
        )
        self.decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(self.type, strict=False)
        self.shown = shown_decoder(task)

    def decode(self, block: Block, *, by_line: bool) -> list[Any]:
        """Every line; one of another shape is read value by value."""

        def loose(line: int, record: bytes) -> Any:
            return self._loose(record, block.path, line, by_line=by_line)

        return block.decode(self.decoder, EXPECTED, loose)

    def states(self, records: Sequence[Any]) -> list[Any]:
        """The last state that each record says was shown, or None."""
        states = [last_state(record.current_state) for record in records]
        for row in [row for row, state in enumerate(states) if state is None]:
            raw = raw_state(msgspec.structs.replace(records[row], current_state=ABSENT))
            states[row] = None if raw is ABSENT else self.shown(raw)
        return states

    def gold(self, records: Sequence[Any], block: Block) -> tuple[Floats, list[str | None]]:
        """The numbers of every gold answer, by step, then field; and what is wrong with one that cannot be used."""
        if self.task.arrays:
            triples = [NO_TRIPLE if record.answer is None else record.answer for record in records]
            rows = finite(array_rows(triples, self.task.steps))
        else:
            states = [NO_STATE if record.answer is None else record.answer for record in records]
            rows = finite(state_rows([_first(state) if isinstance(state, StateList) else state for state in states]))
        faults: list[str | None] = [None] * len(records)
        for row in np.flatnonzero(np.isnan(rows).any(axis=1)).tolist():
            place = f"{Path(block.path).name}:{block.lines[row]}"
            faults[row] = f"{place}: {self._fault(records[row], rows[row])}"
        return rows, faults

    def _fault(self, record: Any, row: Floats) -> str:
        if record.other_task:
            other = "T+1" if self.task.name == "S1" else "next_second"
            return f"has `{other}`, which is the gold of {OTHER_TASK} {self.task.name}"
        if record.answer is None:
            return NO_GOLD
        missing = np.flatnonzero(np.isnan(row))
        step, field = divmod(int(missing[0]), len(FIELDS))
        at = f" at t+{step + 1}" if self.task.arrays else ""
        more = f" and {missing.size - 1} more" if missing.size > 1 else ""
        return f"its gold has no finite number for `{FIELDS[field]}`{at}{more}"

    def _loose(self, record: bytes, path: str, line: int, *, by_line: bool) -> Any:
        """A reference line with values that are no numbers, without gold, with that of another task, or a published Sample."""
        data = any_values.decode(record)
        if not isinstance(data, dict):
            return self.decoder.decode(record)  # which says what is wrong
        wrapped = data.get("gold")
        if isinstance(wrapped, dict):
            gold = {} if wrapped.get("available") is False else {key: wrapped[key] for key in _GOLD if key in wrapped}
            data = {**data, **gold}
        name = data.get("sample_id") if data.get("id") is None else data["id"]
        if not by_line and (isinstance(name, bool) or not isinstance(name, str | int | None)):
            what = f"its id is {name!r}, expected a text or a whole number; {EXPECTED}"
            raise InputError(what, file=path, line=line)
        if not any(key in data for key in (*_GOLD, "gold", *STATE_KEYS)) and "response" in data:
            hint = "Were --outputs and --reference swapped?"
            what = "holds a `response` and no gold: this looks like an output, not like a reference."
            raise InputError(what, file=path, line=line, hint=hint)
        flight, context = data.get("flight_id"), data.get("context")
        question = data.get("question", context.get("question") if isinstance(context, dict) else None)
        key = _KEY_OF_TASK[self.task.name]
        other = data.get(key) is None and any(data.get(other) is not None for other in _GOLD)
        last = last_state(data.get("current_state"))
        others = {name: _raw(data[name]) for name in ("current", "context") if name in data}
        return self.type(
            answer=gold_of({key: data.get(key)}, self.task),
            id=name,
            flight_id=None if flight is None else str(flight),
            task_id=data["task_id"] if isinstance(data.get("task_id"), str) else None,
            question=question if isinstance(question, str) else None,
            other_task=other,
            current_state=state_of(last) if isinstance(last, dict) else None,
            **others,
        )


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _first(state: Any) -> Any:
    return State(*[values[0] for values in msgspec.structs.astuple(state)])
