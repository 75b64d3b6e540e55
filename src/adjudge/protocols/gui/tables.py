"""Records of a file as rows of columns: a row a recorded step, a prediction, an outcome; read one by one, in any format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.errors import InputError
from adjudge.protocols.gui.boxes import as_boxes
from adjudge.protocols.gui.kinds import argument
from adjudge.readers.action_dsl import Unparsed, parse
from adjudge.readers.blocks import Block
from adjudge.readers.gui import formats, native
from adjudge.readers.gui.model import Action, Milestone, Outcome, Prediction, Shape

POINTS = ("x", "y", "end_x", "end_y")
_PLACE = [("key", pa.string()), ("file", pa.int32()), ("line", pa.int64())]
_POINTS = [(name, pa.float64()) for name in POINTS]

# What is said of the whole episode stands in the first row of a record; `goal` only where a record is a single step,
# because it matters only in that all must agree. Coordinates that are not there are NaN.
EPISODES = pa.schema(
    [
        *_PLACE,
        ("whole", pa.bool_()),
        ("step", pa.int64()),
        ("type", pa.string()),
        *_POINTS,
        ("argument", pa.string()),
        ("element", pa.string()),
        ("boxes", pa.list_(pa.float64())),
        ("scenario", pa.string()),
        ("goal", pa.string()),
        ("platform", pa.string()),
        ("width", pa.float64()),
        ("height", pa.float64()),
        ("milestones", pa.string()),
    ]
)
# A text that is no action has no `type`, and `note` says why.
PREDICTIONS = pa.schema(
    [
        *_PLACE,
        ("structured", pa.bool_()),
        ("step", pa.int64()),
        ("type", pa.string()),
        *_POINTS,
        ("argument", pa.string()),
        ("element", pa.string()),
        ("raw", pa.string()),
        ("note", pa.string()),
        ("self_report", pa.bool_()),
    ]
)
OUTCOMES = pa.schema([*_PLACE, ("success", pa.bool_())])

MILESTONES = msgspec.json.Decoder(list[Milestone])
_outcome = msgspec.json.Decoder(Outcome)
_STEPS = 2**63


def episodes(block: Block, rows: Sequence[int], space: str, bbox: str) -> tuple[pa.Table, list[int]]:
    """The steps of some records of a block, and the record of each."""
    found: list[tuple[Any, ...]] = []
    owner: list[int] = []

    def read(line: int, text: bytes) -> None:
        formats.key(text)
        episode, whole = formats.episode(text, space, bbox)
        name = storable(str(episode.episode_id))
        if not episode.steps:
            raise InputError(f"episode {name!r} has no steps; there is nothing to judge", file=block.path, line=line)
        screen = episode.screen
        about: tuple[Any, ...] = (
            episode.scenario,
            None if whole else episode.goal,
            episode.platform,
            None if screen is None else screen.width,
            None if screen is None else screen.height,
            None if episode.milestones is None else in_lower_case(episode.milestones),
        )
        for step in episode.steps:
            kind = step.action.type.lower()
            try:
                boxes = _boxes(step.action)
            except ValueError as error:
                text_of = f"episode {name!r}, step {step.step}: {error}"
                raise InputError(text_of, file=block.path, line=line) from None
            found.append(
                (name, block.file, line, whole, _number(step.step), *_action(step.action, kind), boxes, *about)
            )
            about = (None,) * len(about)

    for row in rows:
        before = len(found)
        block.each_of([row], read, "expected an episode or one step of it")
        owner += [row] * (len(found) - before)
    return _table(found, EPISODES), owner


def predictions(block: Block, rows: Sequence[int], types: Sequence[str]) -> pa.Table:
    """Some predictions of a block."""

    def read(line: int, text: bytes) -> tuple[Any, ...]:
        formats.key(text)
        said = _prediction(text)
        report = None if said.state is None else said.state.success
        place = (storable(str(said.episode_id)), block.file, line, said.action is not None, _number(said.step))
        if said.action is not None:
            return (*place, *_action(said.action, said.action.type.lower()), None, None, report)
        raw = said.raw or ""
        *action, note = spoken(raw, types)
        return (*place, *action, storable(raw), note, report)

    return _table(block.each_of(rows, read, "expected a prediction"), PREDICTIONS)


def outcomes(block: Block) -> pa.Table:
    """All outcomes of a block."""

    def read(line: int, text: bytes) -> tuple[Any, ...]:
        formats.key(text)
        outcome = _outcome.decode(text)
        return storable(str(outcome.episode_id)), block.file, line, outcome.success

    found = block.each_of(range(len(block)), read, "expected an outcome {episode_id, success}")
    return _table(found, OUTCOMES)


def spoken(raw: str, types: Sequence[str]) -> tuple[Any, ...]:
    """(type, x, y, end_x, end_y, argument, element, note) of an action text."""
    parsed = parse(raw, types)
    if isinstance(parsed, Unparsed):
        return (*(None,) * 7, storable(f"{parsed.why} (characters {parsed.start} to {parsed.end})"))
    return (*parsed[:5], *(None if word is None else storable(word) for word in parsed[5:]), None)


def in_lower_case(milestones: list[Milestone]) -> str:
    """Milestones as they are kept, their types in lower case."""
    for milestone in milestones:
        milestone.type = milestone.type.lower()
    return msgspec.json.encode(milestones).decode()


def storable(text: str) -> str:
    """Text that UTF-8 can carry: a lone surrogate, which an action text can spell, becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _prediction(text: bytes) -> Prediction:
    try:
        found = native.PREDICTION.decode(text)
        if (found.action is None) == (found.raw is None):
            found = formats.prediction(text)
    except msgspec.ValidationError:
        # Another format, or one that says what is wrong with it.
        found = formats.prediction(text)
    return found


def _action(action: Action, kind: str) -> tuple[Any, ...]:
    element = action.element
    name = None if element is None or element.id is None else str(element.id)
    return (kind, action.x, action.y, action.end_x, action.end_y, argument(action, kind), name)


def _boxes(action: Action) -> list[float] | None:
    """The boxes end to end."""
    element = action.element
    if element is None or not element.bbox:
        return None
    return [value for box in as_boxes(element.bbox) for value in box]


def _number(step: int) -> int:
    if not -_STEPS <= step < _STEPS:
        raise Shape(f"`step` is {step}, which is no 64-bit number")
    return step


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.Table.from_arrays(
        [
            pa.array(np.array(column, dtype=float))
            if pa.types.is_floating(field.type)
            else pa.array(column, field.type)
            for column, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )
