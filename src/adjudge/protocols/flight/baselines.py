"""Baselines that answer flight tasks without a model, so that every score has a floor to compare with.

`persistence` repeats the last shown state.

`linear` continues the step between the last two shown states (angles by the shortest arc). S1 shows only one state;
there it continues at the rates that the state itself carries: position from the E/N velocity, the three altitudes from
vertical speed / 60, heading and track from the turn rate, everything else as shown.

`kinematic` is dead reckoning, second by second: altitudes, heading and track as above, the E/N velocity turned by the
turn rate, position from the velocity in mid-turn, everything else as shown.

Position: 111,320 m a degree of latitude, and of longitude times cos(latitude). Speeds do not fall below 0, headings and
tracks stay in [0, 360). Computed values have 6 decimals; persistence repeats what it was shown, digit by digit.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import ConfigError, InputError
from adjudge.protocols.flight import fields as f
from adjudge.protocols.flight.fields import ANGLES, FIELDS, TASKS, Task
from adjudge.protocols.flight.make_tasks import State, write_whole

METRES_PER_DEGREE = 111_320.0
DECIMALS = 6


def persistence(shown: Sequence[State], steps: int) -> list[State]:
    """The last shown state, again and again."""
    last = {field: _wrapped(shown[-1][field]) if field in ANGLES else shown[-1][field] for field in FIELDS}
    return [dict(last) for _ in range(steps)]


def linear(shown: Sequence[State], steps: int) -> list[State]:
    """The step between the last two shown states, continued; from one state, the rates it carries, continued."""
    last = shown[-1]
    # A step across north or the date line is off by a whole turn here, which _tidy takes out again.
    rates = {field: last[field] - shown[-2][field] for field in FIELDS} if len(shown) > 1 else _rates(last)
    return [
        _tidy({field: last[field] + step * rates.get(field, 0.0) for field in FIELDS}) for step in range(1, steps + 1)
    ]


def kinematic(shown: Sequence[State], steps: int) -> list[State]:
    """Dead reckoning, one second at a time."""
    state = dict(shown[-1])
    states = []
    for _ in range(steps):
        turn = math.radians(state[f.TURN_RATE])
        middle = {**state, **_turned(state, turn / 2)}
        rates = _rates(middle)
        state = {**{field: state[field] + rates.get(field, 0.0) for field in FIELDS}, **_turned(state, turn)}
        state[f.LATITUDE], state[f.LONGITUDE] = _on_earth(state[f.LATITUDE], state[f.LONGITUDE])
        states.append(_tidy(state))
    return states


BASELINES = {"persistence": persistence, "linear": linear, "kinematic": kinematic}


def predict(tasks_path: str | Path, baseline: str, output_path: str | Path, *, force: bool = False) -> int:
    """Answer every task of a task file, write model outputs, and return how many.

    The same tasks give the same bytes: the outputs carry no clock time, `timestamp` is null. An existing file is
    refused unless `force`; on any error nothing is written.
    """
    if baseline not in BASELINES:
        raise ConfigError(f"unknown baseline {baseline!r}; expected one of {', '.join(BASELINES)}.")
    answer = BASELINES[baseline]
    outputs = [
        {
            "id": sample_id,
            "question": question,
            "response": json.dumps(as_answer(task, answer(shown, task.steps)), allow_nan=False),
            "model": f"baseline/{baseline}",
            "timestamp": None,
        }
        for sample_id, question, task, shown in _tasks(Path(tasks_path))
    ]
    if not outputs:
        raise InputError("no tasks; expected one JSON object a line.", file=str(tasks_path))
    write_whole({Path(output_path): outputs}, force=force)
    return len(outputs)


def as_answer(task: Task, states: Sequence[State]) -> dict[str, Any]:
    """Predicted states in the form that the task asks for: numbers, or arrays of numbers."""
    if task.arrays:
        return {field: [state[field] for state in states] for field in FIELDS}
    return dict(states[0])


def _rates(state: State) -> State:
    """What a state says about its own change in the next second."""
    climb = state[f.VERTICAL_SPEED] / 60.0
    # At the poles a degree of longitude has no length; a metre is the least that is divided by.
    per_longitude = max(METRES_PER_DEGREE * math.cos(math.radians(state[f.LATITUDE])), 1.0)
    return {
        f.LATITUDE: state[f.VELOCITY_N] / METRES_PER_DEGREE,
        f.LONGITUDE: state[f.VELOCITY_E] / per_longitude,
        f.GPS_ALTITUDE: climb,
        f.BARO_ALTITUDE: climb,
        f.PRESSURE_ALTITUDE: climb,
        f.HEADING: state[f.TURN_RATE],
        f.TRACK: state[f.TURN_RATE],
    }


def _turned(state: State, angle: float) -> State:
    """E/N velocity after a right turn by `angle` radians."""
    east, north = state[f.VELOCITY_E], state[f.VELOCITY_N]
    return {
        f.VELOCITY_E: east * math.cos(angle) + north * math.sin(angle),
        f.VELOCITY_N: north * math.cos(angle) - east * math.sin(angle),
    }


def _on_earth(latitude: float, longitude: float) -> tuple[float, float]:
    if not -180.0 <= longitude <= 180.0:
        longitude = (longitude + 180.0) % 360.0 - 180.0
    return min(90.0, max(-90.0, latitude)), longitude


def _tidy(state: State) -> State:
    """Rounded, angles in [0, 360), speeds not negative, position on Earth."""
    latitude, longitude = _on_earth(state[f.LATITUDE], state[f.LONGITUDE])
    tidy = {**state, f.LATITUDE: latitude, f.LONGITUDE: longitude}
    for field in (f.GROUND_SPEED, f.AIRSPEED):
        tidy[field] = max(0.0, tidy[field])
    for field in FIELDS:
        tidy[field] = round(tidy[field], DECIMALS) + 0.0
    for field in ANGLES:
        # Rounded once more, as 359.9999999 becomes 360.
        tidy[field] = _wrapped(round(_wrapped(tidy[field]), DECIMALS))
    return tidy


def _wrapped(angle: float) -> float:
    """In [0, 360); the remainder of a tiny negative number is 360 itself, hence twice."""
    return angle % 360.0 % 360.0


def _tasks(path: Path) -> Iterator[tuple[str, str, Task, list[State]]]:
    seen: dict[str, int] = {}
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.strip():
                    continue
                try:
                    record = msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise InputError(f"not JSON ({error}); expected a task.", file=str(path), line=number) from error
                sample_id, question, task, shown = _parse(record, str(path), number)
                if sample_id in seen:
                    what = f"id {sample_id!r} stands already in line {seen[sample_id]}; ids must be unique."
                    raise InputError(what, file=str(path), line=number)
                seen[sample_id] = number
                yield sample_id, question, task, shown
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}).", file=str(path)) from error


def _parse(record: Any, file: str, line: int) -> tuple[str, str, Task, list[State]]:
    def refuse(what: str) -> InputError:
        return InputError(what, file=file, line=line, hint="Task files are written by `adjudge flight make-tasks`.")

    if not isinstance(record, dict):
        raise refuse(f"found {type(record).__name__}, expected an object with id, task and current_state.")
    sample_id, name = record.get("id"), record.get("task")
    if not isinstance(sample_id, str) or not sample_id:
        raise refuse(f"'id' is {sample_id!r}, expected a text.")
    if not isinstance(name, str) or name not in TASKS:
        raise refuse(f"'task' is {name!r}, expected one of {', '.join(TASKS)}.")
    task = TASKS[name]
    states = record.get("current_state")
    if task.shown == 1:
        states = [states]
    if not isinstance(states, list) or len(states) != task.shown:
        shape = f"a list of {len(states)}" if isinstance(states, list) else type(states).__name__
        raise refuse(f"'current_state' is {shape}, expected a list of {task.shown} states for {name}.")
    shown = []
    for state in states:
        if not isinstance(state, dict):
            raise refuse(f"'current_state' holds {type(state).__name__}, expected an object with the 19 fields.")
        shown.append({field: _number(state, field, refuse) for field in FIELDS})
    return sample_id, str(record.get("question", "")), task, shown


def _number(state: dict[str, Any], field: str, refuse: Callable[[str], InputError]) -> float:
    if field not in state:
        raise refuse(f"'current_state' lacks {field!r}.")
    value = state[field]
    number = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            number = float(value)
    # The bound keeps extrapolations finite; no quantity of a flight state comes near it.
    if not abs(number) < 1e9:
        raise refuse(f"{field!r} is {value!r}, expected a finite number.")
    return number
