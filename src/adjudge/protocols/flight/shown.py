"""The state that a model was shown last: where it stands in a record, or in the question it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.flight.cells import Floats, as_lists, finite, state_rows
from adjudge.protocols.flight.fields import FIELDS, Task
from adjudge.protocols.flight.values import NO_STATE, State, any_values, last_state, shown_type, state_of

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
