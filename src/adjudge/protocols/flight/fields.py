"""The fields of a flight state, what counts as a number in them, and numbers by sample as rows and Arrow lists."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.readers.settings import shown

# How an output was received; the order is that of STATUSES.
ANSWERED, UNPARSED, ERRORED, ABSTAINED, MISSING = range(5)
STATUSES = ("answered", "unparsed", "errored", "abstained", "missing")

# Whether one value of the answer is usable.
VALID, MISSING_FIELD, ARRAY_SHAPE, INVALID_VALUE = range(4)

FIELDS = (
    LATITUDE := "Latitude (WGS84 deg)",
    LONGITUDE := "Longitude (WGS84 deg)",
    GPS_ALTITUDE := "GPS Altitude (WGS84 ft)",
    TRACK := "GPS Ground Track (deg true)",
    HEADING := "Magnetic Heading (deg)",
    VELOCITY_E := "GPS Velocity E (m/s)",
    VELOCITY_N := "GPS Velocity N (m/s)",
    VELOCITY_U := "GPS Velocity U (m/s)",
    GROUND_SPEED := "GPS Ground Speed (kt)",
    ROLL := "Roll (deg)",
    PITCH := "Pitch (deg)",
    TURN_RATE := "Turn Rate (deg/sec)",
    SLIP := "Slip/Skid",
    NORMAL_ACCELERATION := "Normal Acceleration (G)",
    LATERAL_ACCELERATION := "Lateral Acceleration (G)",
    VERTICAL_SPEED := "Vertical Speed (fpm)",
    AIRSPEED := "Indicated Airspeed (kt)",
    BARO_ALTITUDE := "Baro Altitude (ft)",
    PRESSURE_ALTITUDE := "Pressure Altitude (ft)",
)
INDEX = {name: position for position, name in enumerate(FIELDS)}
ANGLES = frozenset({TRACK, HEADING})


@dataclass(frozen=True)
class Task:
    """What is shown and what is asked: `shown` states in, `steps` states out."""

    name: str
    shown: int
    steps: int
    arrays: bool


TASKS = {task.name: task for task in (Task("S1", 1, 1, False), Task("M1", 3, 1, False), Task("M3", 3, 3, True))}

_TASK_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(S1|M1|M3)(?![A-Za-z0-9])")
_RESULTS_FILE = re.compile(r"(.+)_(?:S1|M1|M3)_test_results.*")


def task_named_in(path: str) -> str | None:
    """The task that a file's name, or else a folder above it, holds as a word of its own: `a_M3_results`, `S1_2025/a/x`."""
    for part in reversed(Path(path).parts):
        match = _TASK_IN_NAME.search(part)
        if match:
            return match[1]
    return None


def model_named_in(path: str) -> str:
    """The model of a file of outputs that does not say it: `<model>_<task>_test_results…`, `<task>…/<model>/x`, or its name."""
    file = Path(path)
    match = _RESULTS_FILE.fullmatch(file.stem)
    if match:
        return match[1]
    above = file.parent.name
    if above and not _TASK_IN_NAME.search(file.stem + " " + above) and _TASK_IN_NAME.search(file.parent.parent.name):
        return above
    return file.stem


_NUMERIC = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAMES = {f"f{index}": name for index, name in enumerate(FIELDS)}
NAN = math.nan


def _struct(name: str, kind: Any, *, strict: bool) -> Any:
    return msgspec.defstruct(
        name, [(key, kind) for key in _NAMES], rename=_NAMES, forbid_unknown_fields=strict, gc=False
    )


State = _struct("State", float, strict=False)
StateTriple = _struct("StateTriple", tuple[float, float, float], strict=False)
StateList = _struct("StateList", Annotated[list[float], msgspec.Meta(min_length=1)], strict=False)
_Answer = _struct("Answer", float, strict=True)
_AnswerTriple = _struct("AnswerTriple", tuple[float, float, float], strict=True)
NO_STATE = State(*[NAN] * len(FIELDS))
NO_TRIPLE = StateTriple(*[(NAN, NAN, NAN)] * len(FIELDS))


def _float(text: str) -> float | str:
    """A number, or the text where it is too large to be one."""
    value = float(text)
    return value if math.isfinite(value) else text


any_values = msgspec.json.Decoder(float_hook=_float)
"""Decodes records of any shape; a number beyond all numbers costs itself and not the record."""


def answer_decoder(task: Task) -> msgspec.json.Decoder[Any]:
    """A decoder for the common answer: exactly the 19 fields, all of them JSON numbers, as many as there are steps."""
    return msgspec.json.Decoder(_AnswerTriple if task.arrays else _Answer)


def shown_type(task: Task) -> Any:
    """How the states that a model was shown are decoded: only the last one counts."""
    return State if task.shown == 1 else tuple[(msgspec.Raw,) * (task.shown - 1) + (State,)]  # type: ignore[misc]


def last_state(states: Any) -> Any:
    """The last of the states that a model was shown, of one or of several."""
    return states[-1] if states and type(states) in (list, tuple) else states


def number(value: object) -> float | None:
    """The number a JSON value stands for, or None: a finite number or a numeric string, never a boolean."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        text = value.strip()
        if not _NUMERIC.fullmatch(text):
            return None
        value = float(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def _or_nan(value: object) -> float:
    return NAN if (real := number(value)) is None else real


def state_of(value: object) -> Any:
    """A state as it may stand in a file: NaN where it has no number."""
    return State(*[_or_nan(value.get(name)) for name in FIELDS]) if isinstance(value, dict) else NO_STATE


def gold_of(reference: dict[str, Any], task: Task) -> Any:
    """The gold answer of a reference record of any shape: a State for one step, a StateTriple for three.

    It has NaN where there is no number, and is None where the record has no gold answer.
    """
    arrays, state = reference.get("T+1"), reference.get("next_second")
    if arrays is None and state is None:
        return None
    if not isinstance(arrays, dict):
        first = state_of(state)
        if not task.arrays:
            return first
        return StateTriple(*[(value, NAN, NAN) for value in msgspec.structs.astuple(first)])
    steps = [[_or_nan(_step(arrays.get(name), step)) for name in FIELDS] for step in range(task.steps)]
    return StateTriple(*zip(*steps, strict=True)) if task.arrays else State(*steps[0])


def _step(values: object, step: int) -> object:
    """One step of an array; a value that is no array is that of the first step."""
    if isinstance(values, list) and step < len(values):
        return values[step]
    return values if step == 0 else None


def judge_values(answer: dict[str, Any], task: Task) -> tuple[list[float], list[int], list[str]]:
    """The numbers of an answer and whether each is usable, by step, then field; and what stands where none is."""
    numbers = [NAN] * (task.steps * len(FIELDS))
    codes = [VALID] * len(numbers)
    details: dict[int, str] = {}
    for position, name in enumerate(FIELDS):
        value = answer.get(name)
        if type(value) is float and not task.arrays and math.isfinite(value):
            numbers[position] = value  # nearly all of them
            continue
        shaped = (isinstance(value, list) and len(value) == task.steps) if task.arrays else not isinstance(value, list)
        for step in range(task.steps):
            cell = step * len(FIELDS) + position
            if name not in answer:
                codes[cell] = MISSING_FIELD
            elif not shaped:
                codes[cell] = ARRAY_SHAPE
                details[cell] = f"an array of {len(value)}" if isinstance(value, list) else shown(value)
            else:
                one = value[step] if isinstance(value, list) else value
                usable = number(one)
                if usable is None:
                    codes[cell] = INVALID_VALUE
                    details[cell] = shown(one)
                else:
                    numbers[cell] = usable
    return numbers, codes, [details[cell] for cell in sorted(details)]


Floats = NDArray[np.float64]


def state_rows(states: Sequence[msgspec.Struct]) -> Floats:
    """A row a state."""
    return _rows(map(msgspec.structs.astuple, states), len(FIELDS))


def array_rows(arrays: Sequence[msgspec.Struct], steps: int) -> Floats:
    """A row an object whose fields are arrays of so many steps; its numbers by step, then field."""
    by_field = _rows(map(chain.from_iterable, map(msgspec.structs.astuple, arrays)), len(FIELDS) * steps)
    return by_field.reshape(-1, len(FIELDS), steps).transpose(0, 2, 1).reshape(-1, steps * len(FIELDS))


def _rows(numbers: Iterable[Iterable[float]], width: int) -> Floats:
    """Rows of so many numbers each, to be written to."""
    pack = struct.Struct(f"{width}d").pack
    return np.frombuffer(bytearray().join([pack(*row) for row in numbers])).reshape(-1, width)


def finite(rows: Floats) -> Floats:
    """The rows with NaN for infinity: the decoder of numeric strings takes "inf" for a number."""
    rows[np.isinf(rows)] = np.nan
    return rows


def as_lists(rows: NDArray[Any], absent: NDArray[np.bool_] | None = None) -> pa.FixedSizeListArray:
    """A list a row; null where it is absent."""
    mask = None if absent is None or not absent.any() else pa.array(absent)
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1], mask=mask)


def from_lists(column: pa.ChunkedArray) -> Floats:
    """A row a list, not to be written to; NaN where the list is null."""
    lists = column.combine_chunks()
    size = lists.type.list_size
    first = lists.offset * size
    rows = lists.values.to_numpy()[first : first + len(lists) * size].reshape(-1, size)
    return np.where(valid(lists)[:, None], rows, np.nan) if lists.null_count else rows


def valid(column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """Where a column is not null."""
    mask: NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return mask
