"""Episodes and predictions as they are judged, whatever file they came from."""

from __future__ import annotations

from typing import Any

import msgspec

# What an action of a type is about: a point, a text, a key or direction, an element, or nothing at all.
POINTING = ("click", "double_click", "right_click", "hover")
DRAG = ("drag",)
WITH_TEXT = ("type", "select", "click_and_type")
WITH_OPTIONAL_TEXT = ("open", "answer", "open_app", "close_app", "goto")
WITH_KEY = ("key", "hotkey", "scroll")
ON_ELEMENT = (*POINTING, *DRAG, "type", "select")
NOTHING = ("wait", "done")  # what an agent that never acts gets right
_ALONE = ("back", "fail", "forward", "refresh", "screenshot", "select_monitor")
_WINDOW = ("window_focus", "window_move", "window_resize")
# The open list of action types; a configuration may add more.
TYPES = (*POINTING, *DRAG, *WITH_TEXT, *WITH_OPTIONAL_TEXT, *WITH_KEY, *NOTHING, *_ALONE, *_WINDOW)
SPACES = ("normalized", "pixel", "per_mille")
BOXES = ("xyxy", "xywh")


class Screen(msgspec.Struct, gc=False):
    """The size of the screen in pixels."""

    width: float
    height: float


class Element(msgspec.Struct, gc=False):
    """A screen element: its mark or id, and its box or boxes."""

    id: str | int | None = None
    bbox: list[float | list[float]] | None = None


class Action(msgspec.Struct, gc=False):
    """One action, recorded or predicted."""

    type: str
    x: float | None = None
    y: float | None = None
    end_x: float | None = None
    end_y: float | None = None
    text: str | None = None
    key: str | None = None
    direction: str | None = None
    element: Element | None = None


class Step(msgspec.Struct, gc=False):
    """One step of an episode."""

    step: int
    action: Action
    screenshot: str | None = None


class Milestone(msgspec.Struct, omit_defaults=True, gc=False):
    """Something an episode must reach: the right type at a step, near enough or on an element where that is asked."""

    name: str
    step: int
    type: str
    max_distance: float | None = None
    element: str | int | None = None


class Episode(msgspec.Struct, gc=False):
    """A recorded episode."""

    episode_id: str | int
    steps: list[Step]
    scenario: str | None = None
    goal: str | None = None
    screen: Screen | None = None
    platform: str | None = None
    milestones: list[Milestone] | None = None


class SingleStep(Episode, gc=False):
    """One step of an episode whose other steps stand in other records."""


class State(msgspec.Struct, gc=False):
    """What the model says of its own state."""

    success: bool | None = None


class Prediction(msgspec.Struct, gc=False):
    """What the agent did at a step: an action, or the model's text."""

    episode_id: str | int
    step: int
    action: Action | None = None
    raw: str | None = None
    state: State | None = None


class Outcome(msgspec.Struct, gc=False):
    """The end state of the agent's own run of an episode."""

    episode_id: str | int
    success: bool
    checker: str | None = None


class Shape(msgspec.ValidationError):
    """A record that is JSON but not of its format: what was found and what was expected."""


def need(record: dict[str, Any], name: str, kind: type | tuple[type, ...], what: str) -> Any:
    """A key of a foreign record, of the right type."""
    value = record.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        state = "is missing" if name not in record else f"is {value!r:.60}"
        raise Shape(f"`{name}` {state}; {what}")
    return value
