"""Our own format: an episode a record with its steps, or a step a record (Parquet, CSV); predictions by step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from adjudge.readers.blocks import tree_of
from adjudge.readers.gui.actions import AnyAction, AnyElement, Boxes, Frame, placed
from adjudge.readers.gui.model import (
    Action,
    Element,
    Episode,
    Milestone,
    Outcome,
    Prediction,
    Screen,
    Shape,
    SingleStep,
    State,
    Step,
)

_FLAT = ("type", "x", "y", "end_x", "end_y", "text", "key", "direction")


def _alone(kind: type[msgspec.Struct], other_keys: Iterable[str], **fields: Any) -> Any:
    """The struct `kind` that refuses the keys of other formats, so that a record with one of them is read as such."""
    refused = [(name, UnsetType, UNSET) for name in other_keys if name not in kind.__struct_fields__]
    typed = [(name, type_, None) for name, type_ in fields.items()]
    return msgspec.defstruct(f"Plain{kind.__name__}", [*typed, *refused], bases=(kind,), gc=False)


_PlainElement = _alone(Element, AnyElement.__struct_fields__)
_PlainAction = _alone(Action, AnyAction.__struct_fields__, element=_PlainElement | None)


class _PlainStep(Step, gc=False):
    action: _PlainAction  # type: ignore[valid-type]


class _PlainEpisode(Episode, gc=False):
    """An episode, and no record that has the marks of another format."""

    steps: list[_PlainStep]  # type: ignore[assignment]
    id: str | int | None = None
    annotation_id: None = None
    instruction: UnsetType = UNSET


class _AnyStep(Step, gc=False):
    action: AnyAction


class _AnyEpisode(Episode, gc=False):
    """An episode whose actions may have the keys of any format."""

    steps: list[_AnyStep]  # type: ignore[assignment]


class _PlainPrediction(Prediction, gc=False):
    """A prediction: an action or the model's text, never both."""

    action: _PlainAction | None = None  # type: ignore[valid-type]
    id: str | int | None = None
    annotation_id: None = None
    steps: UnsetType = UNSET
    step_index: UnsetType = UNSET

    def __post_init__(self) -> None:
        """Refuse two answers, and none."""
        if (self.action is None) == (self.raw is None):
            raise ValueError


class _Outcome(Outcome, gc=False):
    """An outcome; its other names, if it has any, must be names too."""

    id: str | int | None = None
    annotation_id: str | None = None


EPISODE: msgspec.json.Decoder[Episode] = msgspec.json.Decoder(_PlainEpisode)
PREDICTION: msgspec.json.Decoder[Prediction] = msgspec.json.Decoder(_PlainPrediction)
OUTCOME: msgspec.json.Decoder[Outcome] = msgspec.json.Decoder(_Outcome)


class _Row(msgspec.Struct):
    """A step or a prediction as one row: the action as an object, or spread over columns."""

    step: int | None = None
    step_index: int | None = None
    episode_id: str | int | None = None
    id: str | int | None = None
    action: AnyAction | None = None
    type: str | None = None
    x: float | None = None
    y: float | None = None
    end_x: float | None = None
    end_y: float | None = None
    text: str | None = None
    key: str | None = None
    direction: str | None = None
    element_id: str | int | None = None
    bbox: Boxes | str | None = None

    def name(self) -> str | int:
        """The episode it belongs to."""
        name = self.id if self.episode_id is None else self.episode_id
        if name is None:
            raise Shape("has neither `episode_id` nor `id`")
        return name

    def number(self) -> int:
        """The step."""
        number = self.step if self.step_index is None else self.step_index
        if number is None:
            raise Shape("has no `step`")
        return number

    def placed(self, frame: Frame) -> Action | None:
        """The action in the declared space; None where the row has none."""
        action = self.action
        if action is None and self.type is not None:
            element = AnyElement(self.element_id, _boxes(self.bbox))
            action = AnyAction(**{name: getattr(self, name) for name in _FLAT}, element=element)
        return None if action is None else placed(action, frame, f"step {self.number()}")


class _StepRow(_Row):
    scenario: str | None = None
    goal: str | None = None
    platform: str | None = None
    screen: Screen | None = None
    screen_width: float | None = None
    screen_height: float | None = None
    milestones: list[Milestone] | None = None


class _PredictionRow(_Row):
    raw: str | None = None
    state: State | None = None


STEP_KEYS, PREDICTION_KEYS = tree_of(_StepRow), tree_of(_PredictionRow)
_any_episode = msgspec.json.Decoder(_AnyEpisode)
_step_row = msgspec.json.Decoder(_StepRow, strict=False)
_prediction_row = msgspec.json.Decoder(_PredictionRow, strict=False)


def episode(text: bytes, space: str, bbox: str) -> Episode:
    """An episode of ours with actions of any shape."""
    wide = _any_episode.decode(text)
    frame = Frame(space, bbox, wide.screen)
    steps = [Step(step.step, placed(step.action, frame, f"step {step.step}")) for step in wide.steps]
    about = (wide.scenario, wide.goal, wide.screen, wide.platform, wide.milestones)
    return Episode(wide.episode_id, steps, *about)


def step_row(text: bytes, space: str, bbox: str) -> SingleStep:
    """A row with one step, as an episode of that step."""
    row = _step_row.decode(text)
    screen = row.screen
    if screen is None and row.screen_width is not None and row.screen_height is not None:
        screen = Screen(row.screen_width, row.screen_height)
    action = row.placed(Frame(space, bbox, screen))
    if action is None:
        raise Shape("has neither `steps` nor `action` nor `type`; expected an episode, or one step of an episode")
    step = Step(row.number(), action)
    return SingleStep(row.name(), [step], row.scenario, row.goal, screen, row.platform, row.milestones)


def prediction(text: bytes, space: str, bbox: str) -> Prediction:
    """A prediction of any shape, its action as an object or as columns; or what is wrong with it in words."""
    row = _prediction_row.decode(text)
    action = row.placed(Frame(space, bbox, later=True))
    if action is not None and row.raw is not None:
        raise Shape("has both `action` and `raw`; a prediction has one of them")
    if action is None and row.raw is None:
        raise Shape("has neither `action` nor `raw`; leave the line out where the agent said nothing")
    return Prediction(row.name(), row.number(), action, row.raw, row.state)


def _boxes(cell: Boxes | str | None) -> Boxes | None:
    """Boxes, which a CSV has as the text of a JSON list."""
    if not isinstance(cell, str):
        return cell
    try:
        return msgspec.json.decode(cell, type=Boxes)
    except msgspec.DecodeError:
        raise Shape(f"`bbox` is {cell!r:.60}, expected a JSON list of four numbers") from None
