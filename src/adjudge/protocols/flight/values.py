"""Values of a flight state: what counts as a number, and typed decoders for the common case that all of them are."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from adjudge.protocols.flight.batch import ARRAY_SHAPE, INVALID_VALUE, MISSING_FIELD, VALID
from adjudge.protocols.flight.fields import FIELDS, Task

_NUMERIC = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAMES = {f"f{index}": name for index, name in enumerate(FIELDS)}
NAN = math.nan


def _struct(name: str, kind: Any, *, strict: bool) -> Any:
    return msgspec.defstruct(
        name, [(key, kind) for key in _NAMES], rename=_NAMES, forbid_unknown_fields=strict, gc=False
    )


State = _struct("State", float, strict=False)
StateTriple = _struct("StateTriple", tuple[float, float, float], strict=False)
StateList = _struct("StateList", list[float], strict=False)
_Answer = _struct("Answer", float, strict=True)
_AnswerList = _struct("AnswerList", list[float], strict=True)


def answer_decoder(task: Task) -> msgspec.json.Decoder[Any]:
    """A decoder for the common answer: exactly the 19 fields, all of them JSON numbers."""
    return msgspec.json.Decoder(_AnswerList if task.arrays else _Answer)


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


def state_values(state: object) -> list[float]:
    """The 19 numbers of a state, NaN where there is none."""
    if not isinstance(state, dict):
        return [NAN] * len(FIELDS)
    return [NAN if (found := number(state.get(name))) is None else found for name in FIELDS]


def gold_values(reference: dict[str, Any], task: Task) -> list[list[float]]:
    """The 19 numbers of every gold step, NaN where there is none."""
    arrays = reference.get("T+1")
    if not isinstance(arrays, dict):
        state = state_values(reference.get("next_second"))
        return [state if step == 0 else [NAN] * len(FIELDS) for step in range(task.steps)]
    steps: list[list[float]] = []
    for step in range(task.steps):
        row = []
        for name in FIELDS:
            values = arrays.get(name)
            given = values[step] if isinstance(values, list) and step < len(values) else values if step == 0 else None
            found = number(given)
            row.append(NAN if found is None else found)
        steps.append(row)
    return steps


def judge_values(
    answer: dict[str, Any], task: Task
) -> tuple[list[list[float]], list[list[int]], dict[tuple[int, int], str]]:
    """(numbers, validity codes, details) of an answer, each by step and field."""
    numbers = [[NAN] * len(FIELDS) for _ in range(task.steps)]
    codes = [[VALID] * len(FIELDS) for _ in range(task.steps)]
    details: dict[tuple[int, int], str] = {}
    for position, name in enumerate(FIELDS):
        given = answer.get(name)
        if type(given) is float and not task.arrays and math.isfinite(given):
            numbers[0][position] = given  # nearly all of them
            continue
        shaped = (isinstance(given, list) and len(given) == task.steps) if task.arrays else not isinstance(given, list)
        for step in range(task.steps):
            if name not in answer:
                codes[step][position] = MISSING_FIELD
            elif not shaped:
                codes[step][position] = ARRAY_SHAPE
                details[step, position] = f"an array of {len(given)}" if isinstance(given, list) else shown(given)
            else:
                value = given[step] if isinstance(given, list) else given
                found = number(value)
                if found is None:
                    codes[step][position] = INVALID_VALUE
                    details[step, position] = shown(value)
                else:
                    numbers[step][position] = found
    return numbers, codes, details


def shown(value: object, limit: int = 60) -> str:
    """A JSON value as a reader may see it in a message."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
