"""The rows of every role, read from any of their formats: a row a recorded step, a prediction or an outcome."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Role
from adjudge.protocols.gui.schemas import EVALUATION, OPTIONAL, REQUIRED
from adjudge.protocols.gui.spaces import Floats, as_boxes, to_corners, upside_down
from adjudge.readers.action_dsl import Action as SpokenAction
from adjudge.readers.action_dsl import Unparsed, parse, reported_success
from adjudge.readers.blocks import Block
from adjudge.readers.gui import formats, native
from adjudge.readers.gui.actions import DECLARED, OTHER_NAMES, PlacedAction, centre
from adjudge.readers.gui.model import (
    DRAG,
    POINTING,
    WITH_KEY,
    Action,
    Episode,
    Milestone,
    Outcome,
    Prediction,
    Shape,
    SingleStep,
)
from adjudge.readers.gui.screenspot import GroundingRecord

_NAME = ("episode_id", "id", "annotation_id")
_SPACE = "--space … --bbox …"

ROLES = {
    "episodes": Role(
        formats.EPISODE_KEYS,
        (_NAME, ("steps", "operation", "element_id")),
        f"adjudge gui --episodes FILE --predictions … {_SPACE}",
    ),
    "predictions": Role(
        formats.PREDICTION_KEYS,
        (_NAME, ("step", "step_index"), ("action", "raw", "type", "gpt_action", "predicted_operation", "pred_action")),
        f"adjudge gui --episodes … --predictions FILE {_SPACE}",
    ),
    "records": Role(
        {**dict.fromkeys(GroundingRecord.__struct_fields__), "platform": None, "ui_type": None},
        (("bbox",), ("point", "pred", "candidates")),
        f"adjudge gui grounding --records FILE {_SPACE}",
    ),
    "evaluation": Role(
        dict.fromkeys((*EVALUATION, *REQUIRED, *OPTIONAL)),
        (("metrics", "action_type_accuracy"),),
        "adjudge gui validate FILE",
    ),
    "outcomes": Role(
        Outcome, (("episode_id",), ("success",)), f"adjudge gui --episodes … --predictions … --outcomes FILE {_SPACE}"
    ),
}


POINTS = ("x", "y", "end_x", "end_y")
UNITS = ("unit", "end_unit")
MILESTONES = msgspec.json.Decoder(list[Milestone])
OUTCOMES = pa.schema([("key", pa.string()), ("file", pa.int32()), ("line", pa.int64()), ("success", pa.bool_())])

Columns = dict[str, Any]
Ints = NDArray[np.int64]

_EPISODE, _PREDICTION = "expected an episode or one step of it", "expected a prediction"
_NO_ACTION = SpokenAction("")
_ARGUMENTS = dict.fromkeys(WITH_KEY, 1) | {"scroll": 2}  # of text, key and direction; all other types have a text


@dataclass
class _Rows:
    """The rows of a block: the record of each, the names of the records' episodes, the step of each row."""

    block: Block
    names: list[str]
    record: Ints
    step: Ints

    @classmethod
    def of(cls, block: Block, names: list[str], record: Ints, steps: list[int], expected: str) -> _Rows:
        """Refuses a step that no column can hold."""
        try:
            return cls(block, names, record, np.array(steps, dtype=np.int64))
        except OverflowError:
            row = next(row for row, step in enumerate(steps) if not -(2**63) <= step < 2**63)
            text = f"`step` is {steps[row]}, which is no 64-bit number; {expected}"
            raise InputError(text, file=block.path, line=int(block.lines[record[row]])) from None

    def columns(self) -> Columns:
        """Whose rows they are, and where they stand."""
        return {**places(self.block, self.names, self.record), "step": pa.array(self.step)}

    def wrong(self, row: int, what: str) -> InputError:
        """An error about a row."""
        text = f"episode {self.names[self.record[row]]!r}, step {self.step[row]}: {what}"
        return InputError(text, file=self.block.path, line=int(self.block.lines[self.record[row]]))


class RowReader:
    """Reads the records of every role, and refuses those that are wrong in themselves."""

    def __init__(self, types: tuple[str, ...], *, space: str, bbox: str) -> None:
        self.types, self.space, self.bbox = types, space, bbox

    def episodes(self, block: Block) -> pa.Table:
        """A row a step, its type as a place in `types` (`kind`), its boxes as left, top, right, bottom.

        What is said of the whole episode stands in the row of its first step; `goal` only where a record is a single
        step, because it matters only in that all must agree. Coordinates that are not there are NaN.
        """
        episodes = block.decode(native.EPISODE, _EPISODE, lambda _, text: formats.episode(text, self.space, self.bbox))
        names = [str(episode.episode_id) for episode in episodes]
        counts = np.array([len(episode.steps) for episode in episodes], dtype=np.int64)
        if not counts.all():
            record = int(np.flatnonzero(counts == 0)[0])
            raise _wrong(block, record, f"episode {names[record]!r} has no steps; there is nothing to judge")
        steps = [step for episode in episodes for step in episode.steps]
        numbers = [step.step for step in steps]
        rows = _Rows.of(block, names, np.repeat(np.arange(counts.size), counts), numbers, _EPISODE)
        actions = [step.action for step in steps]
        columns = _action_columns(actions)
        boxes = _boxes(actions, rows)
        about = _about(episodes, names, block, counts)
        kind = self._kinds(columns.pop("type"), rows)
        whole = np.array([type(episode) is not SingleStep for episode in episodes])
        return pa.table(
            {
                **rows.columns(),
                "whole": pa.array(whole[rows.record]),
                "kind": kind,
                **columns,
                "boxes": self._in_corners(boxes, rows),
                "screenshot": pa.array([step.screenshot for step in steps], pa.string()),
                **about,
            }
        )

    def predictions(self, block: Block) -> pa.Table:
        """A row a prediction. A text that is no action has no `type`, and `note` says why."""
        several: list[Any] = block.decode(  # a Prediction a record, or the list of those that a record holds
            native.PREDICTION, _PREDICTION, lambda _, text: formats.predictions(text, self.space, self.bbox)
        )
        spoken: list[Prediction] = several
        record, names = np.arange(len(several)), []
        if list in set(map(type, several)):
            groups = [one if isinstance(one, list) else [one] for one in several]
            spoken = [one for group in groups for one in group]
            record = np.repeat(record, [len(group) for group in groups])
            names = [str(group[0].episode_id) if group else "" for group in groups]
        names = names or [str(one.episode_id) for one in spoken]
        rows = _Rows.of(block, names, record, [one.step for one in spoken], _PREDICTION)
        actions = [one.action for one in spoken if one.action is not None]
        texts = [one.raw for one in spoken]
        structured = np.array([one.action is not None for one in spoken], dtype=np.bool_)
        tables = []
        if actions:
            for action in actions:
                if action.element is not None:
                    self._point(action, action.element.bbox)
            columns = _action_columns(actions)
            columns["type"] = columns["type"].cast(pa.string())
            tables.append(pa.table({**columns, **_units(actions), "note": pa.nulls(len(actions), pa.string())}))
        if len(actions) < len(spoken) or not spoken:
            tables.append(self.spoken([text for text in texts if text is not None]))
        answers = tables[0]
        if len(tables) == 2:
            order = np.argsort(~structured, kind="stable")
            answers = pa.concat_tables(tables).take(np.argsort(order))
        return pa.table(
            {
                **rows.columns(),
                "structured": pa.array(structured),
                **dict(zip(answers.column_names, answers.columns, strict=True)),
                "raw": pa.array(texts, pa.string()),
                "self_report": pa.array([_self_report(one) for one in spoken], pa.bool_()),
            }
        )

    def _point(self, action: Action, box: Any) -> None:
        """An action that names a box and no point is at the centre of the box."""
        if box and action.x is None and action.y is None and action.type.lower() in (*POINTING, *DRAG):
            action.x, action.y = centre(box, self.bbox)

    def outcomes(self, block: Block) -> pa.Table:
        """A row an outcome."""
        expected = "expected an outcome {episode_id, success}"
        outcomes = block.decode(native.OUTCOME, expected, lambda _, text: formats.outcome(text))
        names = [str(outcome.episode_id) for outcome in outcomes]
        success = pa.array([outcome.success for outcome in outcomes], pa.bool_())
        return pa.table({**places(block, names, np.arange(len(outcomes))), "success": success})

    def spoken(self, texts: Sequence[str]) -> pa.Table:
        """The actions that texts spell."""
        known = (*self.types, *OTHER_NAMES)
        parsed = [parse(text, known) for text in texts]
        actions = [_NO_ACTION if isinstance(answer, Unparsed) else answer for answer in parsed]
        notes = [
            f"{answer.why} (characters {answer.start} to {answer.end})" if isinstance(answer, Unparsed) else None
            for answer in parsed
        ]
        return pa.table(
            {
                "type": pa.array(
                    [OTHER_NAMES.get(action.type, action.type) or None for action in actions], pa.string()
                ),
                **_points(actions),
                "argument": pa.array([action.argument for action in actions], pa.string()),
                "element": pa.array([action.element for action in actions], pa.string()),
                **_units(actions),
                "note": pa.array(notes, pa.string()),
            }
        )

    def _kinds(self, types: pa.DictionaryArray, rows: _Rows) -> pa.Array:
        known = pc.index_in(types.dictionary, value_set=pa.array(self.types, pa.string()))
        kinds = known.take(types.indices)
        if kinds.null_count:
            row = pc.index(kinds.is_null(), True).as_py()
            path, line = rows.block.path, int(rows.block.lines[rows.record[row]])
            what = f"episode {rows.names[rows.record[row]]!r}, step {rows.step[row]}: action type"
            raise unknown_type(types[row].as_py(), what, self.types, path, line)
        return kinds.cast(pa.int16())

    def _in_corners(self, boxes: tuple[Floats, Ints], rows: _Rows) -> pa.ListArray:
        """The boxes of each row end to end, null for none."""
        values, counts = boxes
        corners, bad = to_corners(values, self.bbox)
        if bad.any():
            box = int(np.flatnonzero(bad)[0])
            raise rows.wrong(int(np.repeat(np.arange(counts.size), counts)[box]), upside_down(values[box], self.bbox))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32) * 4
        return pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), pa.array(corners.ravel()), mask=pa.array(counts == 0)
        )


def unknown_type(kind: str, what: str, types: Sequence[str], path: str, line: int) -> InputError:
    """An action type of a recording that is not in the list."""
    close = difflib.get_close_matches(kind, types, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known are {', '.join(types)}."
    return InputError(f"{what} {kind!r} is unknown (--types {kind} accepts it).", file=path, line=line, hint=hint)


def box_counts(boxes: pa.ListArray) -> Ints:
    """How many boxes each row has."""
    counts: Ints = boxes.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64) // 4
    return counts


def places(block: Block, names: list[str], record: Ints) -> Columns:
    """The episode of each row, and its file and line."""
    return {
        "key": pa.array(names, pa.string()).take(pa.array(record)),
        "file": pa.array(np.full(record.size, block.file, dtype=np.int32)),
        "line": pa.array(block.lines[record]),
    }


def _wrong(block: Block, record: int, text: str) -> InputError:
    return InputError(text, file=block.path, line=int(block.lines[record]))


def _action_columns(actions: Sequence[Action]) -> Columns:
    """Type, coordinates, argument and element of structured actions."""
    types = pa.array([action.type for action in actions], pa.string()).dictionary_encode()
    words = [_type_name(word) for word in types.dictionary.to_pylist()]
    which = pa.array([_ARGUMENTS.get(word, 0) for word in words], pa.int64()).take(types.indices)
    elements = [action.element for action in actions]
    arguments = [pa.array(list(map(attrgetter(name), actions)), pa.string()) for name in ("text", "key", "direction")]
    ids = [None if element is None or element.id is None else str(element.id) for element in elements]
    return {
        "type": pa.DictionaryArray.from_arrays(types.indices, pa.array(words, pa.string())),
        **_points(actions),
        "argument": pc.choose(which, *arguments),
        "element": pa.array(ids, pa.string()),
    }


def _type_name(word: str) -> str:
    """A type in lower case, by the name we call it."""
    return OTHER_NAMES.get(word.lower(), word.lower())


def _units(actions: Sequence[Action] | Sequence[SpokenAction]) -> Columns:
    """The units of points and ends; they are the declared space unless the action says otherwise."""
    n = len(actions)
    if PlacedAction not in set(map(type, actions)):
        return {name: pa.array(np.full(n, DECLARED, dtype=np.int8)) for name in UNITS}
    return {name: pa.array([getattr(action, name, DECLARED) for action in actions], pa.int8()) for name in UNITS}


def _self_report(prediction: Prediction) -> bool | None:
    """What the model says of its own success: its `state`, or the `State:` of its text."""
    if prediction.state is not None:
        return prediction.state.success
    return None if prediction.raw is None else reported_success(prediction.raw)


def _points(actions: Sequence[Action] | Sequence[SpokenAction]) -> Columns:
    """The coordinates, NaN for None."""
    columns = {name: list(map(attrgetter(name), actions)) for name in POINTS}
    return {name: pa.array(np.array(column, dtype=np.float64)) for name, column in columns.items()}


def _boxes(actions: Sequence[Action], rows: _Rows) -> tuple[Floats, Ints]:
    """All boxes as they are written, and how many each action has."""
    lists = [None if action.element is None else action.element.bbox for action in actions]
    counts = np.array([len(box) if box else 0 for box in lists], dtype=np.int64)
    flat = [value for box in lists if box for value in box]
    if not (counts % 4).any() and list not in set(map(type, flat)) and counts.max(initial=0) <= 4:
        return np.array(flat, dtype=np.float64).reshape(-1, 4), counts // 4
    boxes = []
    for row, box in enumerate(lists):
        try:
            boxes.append(as_boxes(box or ()))
        except Shape as error:
            raise rows.wrong(row, str(error)) from None
    values = [value for several in boxes for box in several for value in box]
    return np.array(values, dtype=np.float64).reshape(-1, 4), np.array([len(several) for several in boxes])


def _about(episodes: Sequence[Episode], names: list[str], block: Block, counts: Ints) -> Columns:
    """What is said of whole episodes, in the rows of their first steps."""
    screens = [episode.screen for episode in episodes]
    width = np.array([None if screen is None else screen.width for screen in screens], dtype=np.float64)
    height = np.array([None if screen is None else screen.height for screen in screens], dtype=np.float64)
    bad = (width <= 0) | (height <= 0)
    if bad.any():
        record = int(np.flatnonzero(bad)[0])
        text = f"episode {names[record]!r} has a screen of {width[record]:g} × {height[record]:g}"
        raise _wrong(block, record, text)
    first = np.cumsum(counts) - counts
    later = np.ones(int(counts.sum()), dtype=np.bool_)
    later[first] = False
    once = pa.array(np.cumsum(~later) - 1, mask=later)
    words = {
        "scenario": [episode.scenario for episode in episodes],
        "goal": [episode.goal if type(episode) is SingleStep else None for episode in episodes],
        "platform": [episode.platform for episode in episodes],
        "milestones": [_in_lower_case(episode.milestones) for episode in episodes],
    }
    sizes = {"width": width, "height": height}
    return {
        **{name: pa.array(values, pa.string()).take(once) for name, values in words.items()},
        **{name: pa.array(values, from_pandas=True).take(once) for name, values in sizes.items()},
    }


def _in_lower_case(milestones: list[Milestone] | None) -> str | None:
    """Milestones as they are kept, their types in lower case."""
    if milestones is None:
        return None
    for milestone in milestones:
        milestone.type = _type_name(milestone.type)
    return msgspec.json.encode(milestones).decode()
