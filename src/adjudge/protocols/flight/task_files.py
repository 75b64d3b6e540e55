"""Task and reference files: the records of one window of seconds, the question asked, and writing files whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import ConfigError, OutputError
from adjudge.protocols.flight.fields import FIELDS, TASKS, Task
from adjudge.runs.tables import whole_file

State = dict[str, float]

_KEYS = "\n".join(f"- {field}" for field in FIELDS)


def task_named(name: str) -> Task:
    """The task of that name; ConfigError for an unknown one."""
    task = TASKS.get(name)
    if task is None:
        raise ConfigError(f"unknown task {name!r}; expected one of {', '.join(TASKS)}.")
    return task


def question(task: Task, shown: Sequence[State]) -> str:
    """The prompt: the shown states, oldest first, and what the answer must look like."""
    if task.shown == 1:
        states_text = f"The state of a light aircraft at second t:\n{_json(shown[0])}"
    else:
        seconds = [f"t-{back}" if back else "t" for back in range(task.shown - 1, -1, -1)]
        states = "\n".join(f"{second}: {_json(state)}" for second, state in zip(seconds, shown, strict=True))
        states_text = f"The states of a light aircraft at {task.shown} consecutive seconds:\n{states}"
    if task.arrays:
        asked = (
            f"Predict the states at t+1 to t+{task.steps}. Each value is an array of exactly {task.steps} numbers, "
            f"one a second"
        )
    else:
        asked = "Predict the state at t+1. Each value is one number"
    form = f"Answer with one JSON object with exactly these {len(FIELDS)} keys:"
    return f"{states_text}\n\n{asked}, in the units of its key. {form}\n{_KEYS}"


def task_record(
    task: Task, sample_id: str, flight_id: str, shown: Sequence[State], derived: Sequence[str]
) -> dict[str, Any]:
    """A line of tasks.jsonl."""
    return {
        "id": sample_id,
        "task": task.name,
        "flight_id": flight_id,
        "question": question(task, shown),
        "current_state": current_state(task, shown),
        "derived": list(derived),
    }


def reference_record(
    task: Task, sample_id: str, flight_id: str, shown: Sequence[State], gold: Sequence[State]
) -> dict[str, Any]:
    """A line of reference.jsonl: `next_second` for S1, arrays under `T+1` for M1 and M3."""
    record: dict[str, Any] = {"id": sample_id, "flight_id": flight_id}
    if task.shown == 1:
        record["next_second"] = gold[0]
    else:
        record["T+1"] = {field: [state[field] for state in gold] for field in FIELDS}
    record["current_state"] = current_state(task, shown)
    return record


def current_state(task: Task, shown: Sequence[State]) -> State | list[State]:
    """What stands under `current_state`: the one shown state, or the list of three."""
    return shown[0] if task.shown == 1 else list(shown)


def write_whole(files: Mapping[Path, Iterable[Any]], *, force: bool) -> None:
    """Write JSONL (`.jsonl`), JSON (`.json`) and, from bytes, other files: all of them whole, or none.

    A file that exists is refused unless `force`.
    """
    existing = [str(path) for path in files if path.exists()]
    if existing and not force:
        raise OutputError(f"{', '.join(existing)} exists already; choose another place, or replace it with --force.")
    with contextlib.ExitStack() as waiting:
        for path, records in files.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(f"cannot write {path} ({error.strerror}).") from error
            stream = waiting.enter_context(whole_file(path))
            for record in records:
                stream.write(record if isinstance(record, bytes) else msgspec.json.encode(record) + b"\n")


def _json(state: State) -> str:
    return msgspec.json.encode(state).decode()
