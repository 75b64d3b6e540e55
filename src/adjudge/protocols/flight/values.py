"""Values of a flight state: what counts as a number, and typed decoders for the common case that all of them are."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

import msgspec

from adjudge.protocols.flight.batch import ARRAY_SHAPE, INVALID_VALUE, MISSING_FIELD, VALID
from adjudge.protocols.flight.fields import FIELDS, Task
from adjudge.readers.wording import shown

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
