"""Flight logs to tasks: windows of true consecutive seconds with every needed column, and a count of what was left out.

A window is as many consecutive rows as a task shows and asks for. It becomes a task if each step is exactly 1 s forward
and all 19 fields have a value. Otherwise it counts once, under the first of these reasons that holds:

1. `no time stamp`
2. the first step that is not 1 s: `gap of 2 s`, `step of 0.5 s`, `repeated stamp`, `backward stamp`
3. the first recorded field, in the order of the 19, with a cell that is blank or no number: `blank …`, `unreadable …`
4. the first derived field without a value: `derived … missing`

So tasks and left-out windows add up to all windows of the log. The records of one window stand here too, the question
asked, and how files are written whole.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adjudge.errors import ConfigError, InputError, OutputError
from adjudge.protocols.flight.fields import FIELDS, TASKS, Task
from adjudge.protocols.flight.garmin import Bools, FlightLog, read_log
from adjudge.runs.tables import whole_file

State = dict[str, float]
_KEYS = "\n".join(f"- {field}" for field in FIELDS)
TASKS_FILE, REFERENCE_FILE = "tasks.jsonl", "reference.jsonl"


@dataclass(frozen=True)
class LogCounts:
    """What became of the windows of one log; `recorded` are those complete in all that the log itself records."""

    log: str
    system: str
    windows: int
    recorded: int
    tasks: int
    left_out: dict[str, int]
    nul_tail: int = 0


@dataclass(frozen=True)
class TaskCounts:
    """What became of the windows of all logs: `tasks` and `left_out` add up to `windows`."""

    task: str
    logs: tuple[LogCounts, ...]
    tasks_path: Path
    reference_path: Path

    @property
    def windows(self) -> int:
        """All windows of the logs."""
        return sum(log.windows for log in self.logs)

    @property
    def tasks(self) -> int:
        """Windows that became tasks."""
        return sum(log.tasks for log in self.logs)

    @property
    def left_out(self) -> dict[str, int]:
        """Windows left out, by reason, over all logs."""
        return dict(sum((Counter(log.left_out) for log in self.logs), Counter()))


@dataclass(frozen=True)
class Windows:
    """The windows of one log: first rows of those that became tasks, and the reason of each other one."""

    starts: list[int]
    reasons: list[str]
    recorded: int


def make_tasks(
    log_paths: Sequence[str | Path],
    task: str,
    out_dir: str | Path,
    *,
    flight_id: str | None = None,
    force: bool = False,
) -> TaskCounts:
    """Write tasks.jsonl and reference.jsonl from logs, in the order given.

    Without `flight_id` each log is a flight of its own, named by its file; with it all logs are recordings of that one
    flight. Existing files are refused unless `force`; on any error nothing is written.
    """
    asked = task_named(task)
    paths = [Path(path) for path in log_paths]
    if not paths:
        raise ConfigError("make-tasks needs at least one log.")
    repeated = [stem for stem, count in Counter(path.stem for path in paths).items() if count > 1]
    if repeated:
        raise ConfigError(f"two logs are called {repeated[0]!r}, so their ids would clash; rename one of them.")

    task_lines: list[dict[str, Any]] = []
    reference_lines: list[dict[str, Any]] = []
    counts: list[LogCounts] = []
    for path in paths:
        log = read_log(path)
        windows = find_windows(log, asked)
        flight = path.stem if flight_id is None else flight_id
        states = _states(log)
        for start, sample_id in zip(windows.starts, _ids(log, asked, windows.starts), strict=True):
            shown = states[start : start + asked.shown]
            gold = states[start + asked.shown : start + asked.shown + asked.steps]
            task_lines.append(task_record(asked, sample_id, flight, shown, log.derived))
            reference_lines.append(reference_record(asked, sample_id, flight, shown, gold))
        tasks, left_out = len(windows.starts), dict(Counter(windows.reasons))
        in_all = tasks + len(windows.reasons)
        counts.append(LogCounts(str(path), log.system, in_all, windows.recorded, tasks, left_out, log.nul_tail))
    out = Path(out_dir)
    result = TaskCounts(asked.name, tuple(counts), out / TASKS_FILE, out / REFERENCE_FILE)
    if not task_lines:
        why = ", ".join(f"{count} {reason}" for reason, count in result.left_out.items()) or "too few rows"
        length = asked.shown + asked.steps
        what = f"no {length} consecutive seconds with all needed columns, so no {task} task; left out: {why}."
        raise InputError(what, file=", ".join(map(str, paths)))
    write_whole({result.tasks_path: task_lines, result.reference_path: reference_lines}, force=force)
    return result


def find_windows(log: FlightLog, task: Task) -> Windows:
    """Sort every window of a log into tasks and reasons."""
    length = task.shown + task.steps
    total = max(0, len(log.time) - length + 1)
    reasons = np.full(total, "", dtype=object)

    def give(where: Bools, name: str) -> None:
        reasons[where & (reasons == "")] = name

    def touched(rows: Bools) -> Bools:
        """Windows in which any row is marked."""
        marks = np.zeros(total, dtype=np.bool_)
        for step in range(length):
            marks |= rows[step : step + total]
        return marks

    give(touched(np.isnan(log.time)), "no time stamp")
    steps = np.diff(log.time)
    for position in range(length - 1):
        for start in np.flatnonzero((steps[position : position + total] != 1.0) & (reasons == "")):
            reasons[start] = _step_reason(float(steps[start + position]))
    for field in [field for field in FIELDS if field not in log.derived]:
        give(touched(log.unreadable[field]), f"unreadable {field}")
        give(touched(np.isnan(log.columns[field])), f"blank {field}")
    recorded = int((reasons == "").sum())
    for field in log.derived:
        give(touched(np.isnan(log.columns[field])), f"derived {field} missing")
    return Windows(np.flatnonzero(reasons == "").tolist(), reasons[reasons != ""].tolist(), recorded)


def _step_reason(step: float) -> str:
    if step == 0:
        return "repeated stamp"
    if step < 0:
        return "backward stamp"
    return f"gap of {step:g} s" if step > 1 else f"step of {step:g} s"


def _states(log: FlightLog) -> list[State]:
    columns: list[list[float]] = [[float(value) for value in log.columns[field] + 0.0] for field in FIELDS]
    return [dict(zip(FIELDS, values, strict=True)) for values in zip(*columns, strict=True)]


def _ids(log: FlightLog, task: Task, starts: list[int]) -> list[str]:
    """`<log>-<UTC stamp of the last shown second>`; where stamps recur the later ones also name their line."""
    seen: set[str] = set()
    ids = []
    for start in starts:
        row = start + task.shown - 1
        moment = datetime.fromtimestamp(float(log.time[row]), UTC)
        stamp = moment.strftime("%Y%m%dT%H%M%S") + (f".{moment.microsecond:06d}" if moment.microsecond else "") + "Z"
        sample_id = f"{log.path.stem}-{stamp}"
        if sample_id in seen:
            sample_id = f"{sample_id}-L{log.lines[row]}"
        seen.add(sample_id)
        ids.append(sample_id)
    return ids


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
