"""Our own format: an episode a record with its steps, or a step a record (Parquet, CSV); predictions by step."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

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
    Step,
)
from adjudge.readers.keys import tree_of

_FLAT = ("type", "x", "y", "end_x", "end_y", "text", "key", "direction")


class _Episode(Episode, gc=False):
    """An episode, and no record that has the marks of another format."""

    id: str | int | None = None
    annotation_id: None = None
    instruction: UnsetType = UNSET


class _Prediction(Prediction, gc=False):
    """A prediction: an action or the model's text, never both."""

    id: str | int | None = None
    annotation_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse two answers, and none."""
        if (self.action is None) == (self.raw is None):
            raise ValueError


class _Outcome(Outcome, gc=False):
    """An outcome; its other names, if it has any, must be names too."""

    id: str | int | None = None
    annotation_id: str | None = None


EPISODE: msgspec.json.Decoder[Episode] = msgspec.json.Decoder(_Episode)
PREDICTION: msgspec.json.Decoder[Prediction] = msgspec.json.Decoder(_Prediction)
OUTCOME: msgspec.json.Decoder[Outcome] = msgspec.json.Decoder(_Outcome)


class _Row(msgspec.Struct):
    """A step as one row: the action as an object, or spread over columns."""

    episode_id: str | int
    step: int
    action: Action | None = None
    scenario: str | None = None
    goal: str | None = None
    platform: str | None = None
    screen: Screen | None = None
    screen_width: float | None = None
    screen_height: float | None = None
    milestones: list[Milestone] | None = None
    type: str | None = None
    x: float | None = None
    y: float | None = None
    end_x: float | None = None
    end_y: float | None = None
    text: str | None = None
    key: str | None = None
    direction: str | None = None
    element_id: str | int | None = None
    bbox: list[float | list[float]] | None = None


STEP_KEYS = tree_of(_Row)
_row = msgspec.json.Decoder(_Row, strict=False)


def step_row(text: bytes) -> SingleStep:
    """A row with one step, as an episode of that step."""
    row = _row.decode(text)
    action = row.action
    if action is None:
        if row.type is None:
            raise Shape("has neither `steps` nor `action` nor `type`; expected an episode, or one step of an episode")
        flat: dict[str, Any] = {name: getattr(row, name) for name in _FLAT}
        element = None if row.element_id is None and row.bbox is None else Element(row.element_id, row.bbox)
        action = Action(**flat, element=element)
    screen = row.screen
    if screen is None and row.screen_width is not None and row.screen_height is not None:
        screen = Screen(row.screen_width, row.screen_height)
    return SingleStep(
        row.episode_id, [Step(row.step, action)], row.scenario, row.goal, screen, row.platform, row.milestones
    )


def prediction(text: bytes) -> Prediction:
    """A prediction, or what is wrong with it in words."""
    found = msgspec.json.decode(text, type=Prediction)
    if found.action is not None and found.raw is not None:
        raise Shape("has both `action` and `raw`; a prediction has one of them")
    if found.action is None and found.raw is None:
        raise Shape("has neither `action` nor `raw`; leave the line out where the agent said nothing")
    return found
