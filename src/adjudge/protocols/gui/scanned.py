"""Steps and predictions of a block by column, without an object a row; what is not plainly written is left out."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.gui.kinds import WITH_KEY
from adjudge.protocols.gui.tables import EPISODES, MILESTONES, POINTS, PREDICTIONS, in_lower_case, spoken
from adjudge.readers.action_columns import NAMES, plain_actions
from adjudge.readers.blocks import Block
from adjudge.readers.scan import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    INTEGER,
    NULL,
    OBJECT,
    REAL,
    TEXT,
    TRUE,
    WRITTEN,
    Scanned,
    Wanted,
    copied,
    scan,
)

Mask = NDArray[np.bool_]
Column = tuple[str | int, ...]

_ACTION: list[Column] = [
    *((name,) for name in ("type", *POINTS, "text", "key", "direction")),
    ("element", "id"),
    *(("element", "bbox", k) for k in range(4)),
]
_NAMES: list[Column] = [("episode_id",), ("id",), ("annotation_id",)]
_EPISODE = Wanted(
    [
        *_NAMES,
        *((name,) for name in ("instruction", "scenario", "goal", "platform")),
        *(("screen", "width"), ("screen", "height"), ("milestones",), ("steps",)),
    ]
)
_STEP = Wanted([("step",), *(("action", *path) for path in _ACTION)])
_PREDICTION = Wanted([*_NAMES, ("step",), ("raw",), ("state", "success"), *(("action", *path) for path in _ACTION)])

_NUMBER, _STRING, _NOTHING = (INTEGER, REAL), (TEXT, ESCAPED), (ABSENT, NULL)
_EXACT = float(2**53)


def episodes(block: Block) -> tuple[pa.Table, NDArray[np.int32], Mask]:
    """The steps of the records that are plainly written, the record of each, and which records are not."""
    found = scan(_EPISODE, block.data, block.starts, block.ends, fast=block.fast)
    if found.odd.all():
        return EPISODES.empty_table(), np.zeros(0, dtype=np.int32), found.odd
    _expect_name(found)
    found.expect("annotation_id", kinds=_NOTHING)
    found.expect("instruction", kinds=(ABSENT,))
    for name in ("scenario", "goal", "platform"):
        found.expect(name, kinds=(*_STRING, *_NOTHING))
    found.expect("screen", kinds=(OBJECT, *_NOTHING))
    sized = found.kinds("screen") == OBJECT
    for name in ("width", "height"):
        found.odd |= sized & ~_is(found, _NUMBER, "screen", name)
    found.expect("milestones", kinds=(ARRAY, *_NOTHING))
    found.odd |= (found.kinds("steps") != ARRAY) | (found.numbers("steps") == 0)
    milestones = _milestones(found)
    starts, ends, owner = found.elements("steps")
    steps = scan(_STEP, block.data, starts, ends, fast=block.fast)
    _expect_number(steps)
    steps.expect("action", kinds=(OBJECT,))
    _expect_action(steps, np.ones(len(owner), dtype=np.bool_))
    # A record is read whole in one way.
    found.odd[owner[steps.odd]] = True
    kept = np.flatnonzero(~found.odd[owner])
    first = np.concatenate([[True], owner[1:] != owner[:-1]]) if owner.size else np.zeros(0, dtype=np.bool_)
    once = pa.array(owner, mask=~first)
    columns = {
        "key": found.texts("episode_id", kinds=WRITTEN).take(pa.array(owner)),
        "file": pa.array(np.full(len(owner), block.file, dtype=np.int32)),
        "line": pa.array(block.lines[owner]),
        "whole": pa.repeat(pa.scalar(True), len(owner)),
        "step": pa.array(steps.numbers("step").astype(np.int64)),
        **_action(steps, np.ones(len(owner), dtype=np.bool_)),
        "boxes": _boxes(steps),
        "scenario": _spread(found.texts("scenario"), once),
        "goal": pa.nulls(len(owner), pa.string()),
        "platform": _spread(found.texts("platform"), once),
        **{
            name: pa.array(np.where(first & sized[owner], found.numbers("screen", name)[owner], np.nan))
            for name in ("width", "height")
        },
        "milestones": _spread(pa.array(milestones, pa.string()), once),
    }
    table = pa.Table.from_arrays([columns[name] for name in EPISODES.names], schema=EPISODES)
    return (table if kept.size == owner.size else table.take(kept)), owner[kept], found.odd


def predictions(block: Block, types: tuple[str, ...]) -> tuple[pa.Table, Mask]:
    """The predictions that are plainly written, and which are not."""
    found = scan(_PREDICTION, block.data, block.starts, block.ends, fast=block.fast)
    if found.odd.all():
        return PREDICTIONS.empty_table(), found.odd
    _expect_name(found)
    found.expect("annotation_id", kinds=(*_STRING, *_NOTHING))
    _expect_number(found)
    found.expect("raw", kinds=(*_STRING, *_NOTHING))
    found.expect("action", kinds=(OBJECT, *_NOTHING))
    found.expect("state", kinds=(OBJECT, *_NOTHING))
    found.expect("state", "success", kinds=(TRUE, FALSE, *_NOTHING))
    structured = found.kinds("action") == OBJECT
    found.odd |= structured == _is(found, _STRING, "raw")
    _expect_action(found, structured)
    n = len(block)
    success = found.kinds("state", "success")
    columns = {
        "key": found.texts("episode_id", kinds=WRITTEN),
        "file": pa.array(np.full(n, block.file, dtype=np.int32)),
        "line": pa.array(block.lines),
        "structured": pa.array(structured),
        "step": pa.array(found.numbers("step").astype(np.int64)),
        "raw": found.texts("raw"),
        "self_report": pa.array(success == TRUE, mask=(success != TRUE) & (success != FALSE)),
        **_said(found, structured, types, fast=block.fast),
    }
    table = pa.Table.from_arrays([columns[name] for name in PREDICTIONS.names], schema=PREDICTIONS)
    return (table.filter(pa.array(~found.odd)) if found.odd.any() else table), found.odd


def _said(found: Scanned, structured: Mask, types: tuple[str, ...], *, fast: bool) -> dict[str, pa.Array]:
    """Type, coordinates, argument, element and note of predictions, from actions or from texts."""
    n = structured.size
    spoken_rows = np.flatnonzero(~structured & ~found.odd)
    if not spoken_rows.size:
        return {**_action(found, structured), "note": pa.nulls(n, pa.string())}
    raw = found.texts("raw")
    plain = plain_actions(raw, fast=fast)
    taken = plain.name >= 0
    absent = np.full(n, np.nan)
    columns: dict[str, Any] = {
        "type": pa.array(NAMES, pa.string()).take(pa.array(plain.name, mask=~taken)),
        **dict(zip(POINTS, (plain.x, plain.y, absent, absent.copy()), strict=True)),
        "argument": plain.argument,
        "element": plain.element,
        "note": pa.nulls(n, pa.string()),
    }
    left = spoken_rows[~taken[spoken_rows]]
    if left.size:
        rest = [spoken(text, types) for text in raw.take(pa.array(left)).to_pylist()]
        columns = _replaced(columns, left, dict(zip(columns, zip(*rest, strict=True), strict=True)))
    if structured.any():
        rows = np.flatnonzero(structured)
        own = {name: column.take(pa.array(rows)) for name, column in _action(found, structured).items()}
        columns = _replaced(columns, rows, own)
    return {name: pa.array(column) if name in POINTS else column for name, column in columns.items()}


def _replaced(columns: dict[str, Any], rows: NDArray[np.intp], values: dict[str, Any]) -> dict[str, Any]:
    """Some rows of the columns with other values."""
    found = dict(columns)
    mask = np.zeros(len(columns["x"]), dtype=np.bool_)
    mask[rows] = True
    for name, own in values.items():
        if name in POINTS:
            found[name] = columns[name].copy()
            found[name][rows] = np.array(own, dtype=float)
        else:
            own_array = own if isinstance(own, pa.Array) else pa.array(own, pa.string())
            found[name] = pc.replace_with_mask(columns[name], pa.array(mask), own_array)
    return found


def _expect_name(found: Scanned) -> None:
    found.expect("episode_id", kinds=(*_STRING, INTEGER))
    found.expect("id", kinds=(*_STRING, INTEGER, *_NOTHING))
    found.odd |= _minus_zero(found, "episode_id")


def _expect_number(found: Scanned) -> None:
    found.expect("step", kinds=(INTEGER,))
    found.odd |= np.abs(found.numbers("step")) >= _EXACT


def _expect_action(found: Scanned, there: Mask) -> None:
    """Rows whose action is not plainly written are odd: another kind of value, or boxes that are not four numbers."""
    found.odd |= there & ~_is(found, _STRING, "action", "type")
    for name in POINTS:
        found.expect("action", name, kinds=(*_NUMBER, *_NOTHING))
    for name in ("text", "key", "direction"):
        found.expect("action", name, kinds=(*_STRING, *_NOTHING))
    found.expect("action", "element", kinds=(OBJECT, *_NOTHING))
    found.expect("action", "element", "id", kinds=(*_STRING, INTEGER, *_NOTHING))
    found.expect("action", "element", "bbox", kinds=(ARRAY, *_NOTHING))
    found.odd |= _minus_zero(found, "action", "element", "id")
    boxed = found.kinds("action", "element", "bbox") == ARRAY
    if boxed.any():
        found.odd |= boxed & (found.numbers("action", "element", "bbox") != 4)
        for k in range(4):
            found.odd |= boxed & ~_is(found, _NUMBER, "action", "element", "bbox", k)


def _action(found: Scanned, there: Mask) -> dict[str, pa.Array]:
    """Type, coordinates, argument and element of the actions."""
    kinds = found.texts("action", "type").dictionary_encode()
    words = [word.lower() for word in kinds.dictionary.to_pylist()]
    sorts = np.array([*(_ARGUMENT.get(word, 0) for word in words), 0], dtype=np.int64)
    codes = kinds.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
    columns: dict[str, pa.Array] = {"type": pa.array(words, pa.string()).take(kinds.indices)}
    for name in POINTS:
        known = there & _is(found, _NUMBER, "action", name)
        columns[name] = pa.array(np.where(known, found.numbers("action", name), np.nan))
    columns["argument"] = _chosen(found, sorts[codes])
    columns["element"] = found.texts("action", "element", "id", kinds=WRITTEN)
    return columns


_ARGUMENT = dict.fromkeys(WITH_KEY, 1) | {"scroll": 2}


def _chosen(found: Scanned, sort: NDArray[np.int64]) -> pa.StringArray:
    """The text, key or direction of an action, by the sort of its type."""
    paths = [("action", name) for name in ("text", "key", "direction")]
    spans = [found.spans(*path) for path in paths]
    kind = np.choose(sort, [found.kinds(*path) for path in paths])
    there = ((kind == TEXT) | (kind == ESCAPED)) & ~found.odd
    first, last = (np.where(there, np.choose(sort, [span[k] for span in spans]), 0).astype(np.int32) for k in (0, 1))
    return copied(found.data, first, last, kind == ESCAPED)


def _boxes(found: Scanned) -> pa.ListArray:
    there = (found.kinds("action", "element", "bbox") == ARRAY) & ~found.odd
    corners = np.stack([found.numbers("action", "element", "bbox", k)[there] for k in range(4)], axis=1)
    offsets = np.concatenate([[0], np.cumsum(there)]).astype(np.int32) * 4
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(corners.ravel()), mask=pa.array(~there))


def _milestones(found: Scanned) -> list[str | None]:
    """The milestones of each record; a record whose milestones are none is odd."""
    texts: list[str | None] = [None] * found.odd.size
    first, last = found.spans("milestones")
    for row in np.flatnonzero((found.kinds("milestones") == ARRAY) & ~found.odd).tolist():
        try:
            texts[row] = in_lower_case(MILESTONES.decode(found.data[first[row] : last[row]].tobytes()))
        except msgspec.MsgspecError:
            found.odd[row] = True
    return texts


def _spread(values: pa.Array, once: pa.Array) -> pa.Array:
    """A value a record, in the row of its first step."""
    return pa.nulls(len(once), values.type) if values.null_count == len(values) else values.take(once)


def _is(found: Scanned, kinds: tuple[int, ...], *path: str | int) -> Mask:
    own = found.kinds(*path)
    found_there: Mask = np.logical_or.reduce([own == kind for kind in kinds])
    return found_there


def _minus_zero(found: Scanned, *path: str | int) -> Mask:
    """Where a whole number is −0, whose digits are not those that are kept."""
    number = found.numbers(*path)
    negative: Mask = (found.kinds(*path) == INTEGER) & (number == 0) & np.signbit(number)
    return negative
