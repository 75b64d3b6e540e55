"""Reference lines of the flight protocol as columns: the true next states, the last shown one, and what is wrong with them.

The line says which task it is of and the key of its sample; the state shown last stands in a record or in the question asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.flight.fields import (
    FIELDS,
    NO_STATE,
    NO_TRIPLE,
    TASKS,
    Floats,
    State,
    StateList,
    StateTriple,
    Task,
    any_values,
    array_rows,
    as_lists,
    finite,
    gold_of,
    last_state,
    shown_type,
    state_of,
    state_rows,
    task_named_in,
)
from adjudge.readers.blocks import Block


class Lines:
    """What both roles do alike: which task a line is of, and its key.

    With several tasks keys begin with the task. Matched by line, a record's key is its number among the records of its
    file, blank lines not counted, plus the offset of its task.
    """

    def __init__(self, tasks: Sequence[Task], offsets: dict[str, int] | None) -> None:
        self.tasks, self.offsets = tasks, offsets
        self.several = len(tasks) > 1
        self._seen: dict[int, int] = {}

    @property
    def by_line(self) -> bool:
        """Whether records are matched by their place in the file."""
        return self.offsets is not None

    def numbers(self, block: Block) -> range:
        """The places of a block's records among those of its file, from 1."""
        first = self._seen.get(block.file, 0) + 1
        self._seen[block.file] = first - 1 + len(block)
        return range(first, first + len(block))

    def tasks_of(self, block: Block, told: Sequence[str | None]) -> list[Task]:
        """The task of every record: as it says itself, as its file is named, or the only one there is."""
        if not self.several and told.count(None) == len(told):
            return [self.tasks[0]] * len(told)
        named = task_named_in(block.path) if self.several else self.tasks[0].name
        asked = {task.name: task for task in self.tasks}
        names = [name or named for name in told]
        others = [row for row, name in enumerate(names) if name not in asked]
        if others:
            self._refuse_task(block, names, others)
        return [asked[str(name)] for name in names]

    def _refuse_task(self, block: Block, names: Sequence[str | None], others: Sequence[int]) -> NoReturn:
        first = names[others[0]]
        run = ",".join(task.name for task in self.tasks)
        what = f"are of task {first!r}" if first else "do not say their task (`task_id`), nor does the file's name"
        among = f"{len(others):,} of the {len(block):,} records here" if len(others) > 1 else "the record"
        known = sorted({name for name in names if name in TASKS} | {task.name for task in self.tasks})
        hint = (
            f"--task {','.join(known)} judges each as its own."
            if first in TASKS
            else f"The tasks are {', '.join(TASKS)}."
        )
        line = int(block.lines[others[0]])
        raise InputError(f"{among} {what}, the run is of {run}.", file=block.path, line=line, hint=hint)

    def keys(self, task: Task, names: Iterable[str | int]) -> pa.StringArray:
        """The keys of samples, or of models, with these names."""
        words = map(str, names)
        return pa.array([f"{task.name}/{word}" for word in words] if self.several else list(words), pa.string())


ABSENT = msgspec.Raw()
"""What a key that a record does not have is decoded to."""

SOURCES = ("output", "reference", "question")
"""Where a state was found: in the record of the output, in that of the reference, or in the question."""

STATE_KEYS: dict[str, Any] = {
    **dict.fromkeys(("current_state", "current"), dict.fromkeys(FIELDS)),
    "context": {"question": None, "record_idx": None, "current_state": dict.fromkeys(FIELDS)},
}
"""The keys of a record that may hold it."""

_MOST_OBJECTS = 64
_STATE = msgspec.json.Decoder(State, strict=False)
_CONTEXT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def shown_decoder(task: Task) -> Callable[[msgspec.Raw], Any]:
    """How the JSON of what a model was shown becomes a state; None where it is none."""
    typed: msgspec.json.Decoder[Any] = msgspec.json.Decoder(shown_type(task) | None, strict=False)

    def decode(raw: msgspec.Raw) -> Any:
        try:
            return last_state(typed.decode(raw))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            last = last_state(any_values.decode(raw))
            return state_of(last) if isinstance(last, dict) else None

    return decode


def raw_state(row: Any) -> msgspec.Raw:
    """The JSON of what a record says was shown, under `current_state`, `current` or `context.current_state`."""
    raw: msgspec.Raw = row.current_state if row.current_state is not ABSENT else row.current
    if raw is ABSENT and row.context is not ABSENT:
        try:
            raw = _CONTEXT.decode(row.context).get("current_state", ABSENT)
        except msgspec.DecodeError:
            raw = ABSENT
    return raw


def state_lists(states: Sequence[Any]) -> pa.Array:
    """A column of states, null where there is none."""
    if states.count(None) == len(states):
        return pa.nulls(len(states), pa.list_(pa.float64(), len(FIELDS)))
    rows = finite(state_rows([NO_STATE if state is None else state for state in states]))
    return as_lists(rows, np.asarray(np.isnan(rows).all(axis=1)))


def fill_from_questions(shown: Floats, source: NDArray[np.int8], questions: Sequence[pa.ChunkedArray]) -> Floats:
    """States from the questions, for samples that have no other; `source` is told so."""
    missing = np.flatnonzero(source < 0)
    if not missing.size or all(column.null_count == len(column) for column in questions):
        return shown
    texts = [column.take(pa.array(missing)).to_pylist() for column in questions]
    states = [
        next((state for text in asked if text and (state := state_in_question(text)) is not None), None)
        for asked in zip(*texts, strict=True)
    ]
    readable = np.array([state is not None for state in states], dtype=bool)
    if readable.any():
        shown = shown.copy()
        shown[missing[readable]] = finite(state_rows([state for state in states if state is not None]))
        source[missing[readable]] = SOURCES.index("question")
        source[np.isnan(shown).all(axis=1)] = -1
    return shown


def state_in_question(text: str) -> Any:
    """The state in the last JSON object of a question that has flight fields, or None."""
    try:
        return _STATE.decode(text[text.rindex("{") : text.rindex("}") + 1])  # nearly all of them
    except (ValueError, UnicodeError):
        pass
    decoder, start = json.JSONDecoder(), len(text)
    for _ in range(_MOST_OBJECTS):
        start = text.rfind("{", 0, start)
        if start < 0:
            return None
        try:
            data, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict) and any(name in data for name in FIELDS):
            return state_of({name: _last(data.get(name)) for name in FIELDS})
    return None


def _last(value: Any) -> Any:
    """The last second of an array of seconds."""
    return value[-1] if isinstance(value, list) and value else value


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
