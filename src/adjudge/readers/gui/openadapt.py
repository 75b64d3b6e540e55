"""OpenAdapt-ML episodes, current shape (`episode_id`, `instruction`, pixels) and older shape (`id`, `goal`, x and y)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from adjudge.readers.gui.model import Action, Element, Episode, Screen, Shape, Step
from adjudge.readers.keys import merged, tree_of
from adjudge.readers.wording import in_words

T = TypeVar("T")

_OLDER_TYPES = {"key_press": "key", "failed": "fail"}
_WHAT = "expected an OpenAdapt-ML episode"


class _OlderAction(Action):
    bbox: list[float | list[float]] | None = None
    element_index: str | int | None = None
    scroll_direction: str | None = None


class _OlderStep(msgspec.Struct):
    action: _OlderAction
    step: int | None = None


class _Older(msgspec.Struct):
    id: str | int
    steps: list[msgspec.Raw]
    goal: str | None = None
    workflow_id: str | int | None = None


class _Point(msgspec.Struct):
    x: float
    y: float


class _Bounds(_Point):
    width: float
    height: float


class _Element(msgspec.Struct):
    element_id: str | int | None = None
    bounds: _Bounds | None = None


class _Action(msgspec.Struct):
    type: str
    text: str | None = None
    app_name: str | None = None
    url: str | None = None
    key: str | None = None
    modifiers: list[str] | None = None
    scroll_direction: str | None = None
    coordinates: _Point | None = None
    start_coordinates: _Point | None = None
    end_coordinates: _Point | None = None
    normalized_coordinates: list[float] | None = None
    normalized_start: list[float] | None = None
    normalized_end: list[float] | None = None
    element: _Element | None = None


class _Observation(msgspec.Struct):
    screen_size: list[float] | None = None


class _Step(msgspec.Struct):
    step_index: int
    action: _Action
    observation: _Observation | None = None


class _Current(msgspec.Struct):
    episode_id: str | int
    steps: list[msgspec.Raw]
    instruction: str | None = None
    goal: str | None = None
    task_id: str | int | None = None
    environment: str | int | None = None


_current, _step = msgspec.json.Decoder(_Current), msgspec.json.Decoder(_Step)
_older, _older_step = msgspec.json.Decoder(_Older), msgspec.json.Decoder(_OlderStep)
KEYS = {
    **dict.fromkeys((*_Current.__struct_fields__, *_Older.__struct_fields__)),
    "steps": merged(tree_of(_Step), tree_of(_OlderStep)),
}


def older(text: bytes) -> Episode:
    """The older shape: `id`, `goal`, `workflow_id`, steps by their order, coordinates as declared on the command line."""
    record = _older.decode(text)
    steps = []
    for index, step in _decoded(record.steps, _older_step):
        action = step.action
        kind = action.type.lower()
        element = action.element
        if action.bbox is not None or action.element_index is not None:
            element = Element(action.element_index, action.bbox)
        kept = Action(
            _OLDER_TYPES.get(kind, kind),
            *(action.x, action.y, action.end_x, action.end_y, action.text, action.key),
            action.scroll_direction if action.direction is None else action.direction,
            element,
        )
        steps.append(Step(index if step.step is None else step.step, kept))
    return Episode(record.id, steps, _text(record.workflow_id), record.goal)


def current(text: bytes, space: str, bbox: str) -> Episode:
    """The current shape. It says itself what is pixels and what is normalised; both become the declared space."""
    record = _current.decode(text)
    decoded = list(_decoded(record.steps, _step))
    screen: Screen | None = None
    for index, step in decoded:
        if step.observation is None or step.observation.screen_size is None:
            continue
        size = Screen(*_pair(step.observation.screen_size, "screen_size", index))
        if screen is not None and size != screen:
            raise Shape(f"step {index} has another screen_size than the steps before; one episode has one screen")
        screen = size
    place = _Place(space, bbox, screen)
    steps = [Step(step.step_index, _placed(step.action, index, place)) for index, step in decoded]
    goal = record.goal or record.instruction
    return Episode(record.episode_id, steps, _text(record.task_id), goal, screen, _text(record.environment))


class _Place:
    """Turns pixels and normalised values into the declared space."""

    def __init__(self, space: str, bbox: str, screen: Screen | None) -> None:
        self.space, self.bbox, self.screen = space, bbox, screen

    def point(
        self, normalised: list[float] | None, pixels: _Point | None, index: int
    ) -> tuple[float, float] | tuple[None, None]:
        x, y = (None, None) if normalised is None else _pair(normalised, "a normalised point", index)
        if self.space != "pixel" and x is not None and y is not None:
            scale = 1000.0 if self.space == "per_mille" else 1.0
            return x * scale, y * scale
        if pixels is not None:
            return self._of_pixels(pixels.x, pixels.y, index)
        if x is None or y is None or self.screen is None:
            return None, None
        return x * self.screen.width, y * self.screen.height

    def box(self, bounds: _Bounds, index: int) -> list[float | list[float]]:
        x1, y1 = self._of_pixels(bounds.x, bounds.y, index)
        x2, y2 = self._of_pixels(bounds.x + bounds.width, bounds.y + bounds.height, index)
        return [x1, y1, x2, y2] if self.bbox == "xyxy" else [x1, y1, x2 - x1, y2 - y1]

    def _of_pixels(self, x: float, y: float, index: int) -> tuple[float, float]:
        if self.space == "pixel":
            return x, y
        if self.screen is None:
            raise Shape(
                f"step {index} has pixels and no screen_size, so they cannot be put into the space {self.space}; "
                "use --space pixel"
            )
        if self.screen.width <= 0 or self.screen.height <= 0:
            raise Shape(f"step {index} has pixels on a screen of {self.screen.width:g} × {self.screen.height:g}")
        scale = 1000.0 if self.space == "per_mille" else 1.0
        return x / self.screen.width * scale, y / self.screen.height * scale


def _placed(action: _Action, index: int, place: _Place) -> Action:
    start, start_pixels = action.normalized_coordinates, action.coordinates
    if action.type == "drag":
        start, start_pixels = action.normalized_start or start, action.start_coordinates or start_pixels
    element = None
    if action.element is not None:
        bounds = action.element.bounds
        element = Element(action.element.element_id, None if bounds is None else place.box(bounds, index))
    x, y = place.point(start, start_pixels, index)
    end_x, end_y = place.point(action.normalized_end, action.end_coordinates, index)
    text = action.text or action.app_name or action.url
    key = None if action.key is None else "+".join([*(action.modifiers or ()), action.key])
    return Action(action.type, x, y, end_x, end_y, text, key, action.scroll_direction, element)


def _decoded(steps: Sequence[msgspec.Raw], decoder: msgspec.json.Decoder[T]) -> Iterator[tuple[int, T]]:
    """The steps with their places, which an error names."""
    for index, step in enumerate(steps):
        try:
            yield index, decoder.decode(step)
        except msgspec.ValidationError as error:
            raise Shape(f"step {index} is not readable: {in_words(error)}; {_WHAT}") from None


def _pair(values: list[float], what: str, index: int) -> tuple[float, float]:
    if len(values) != 2:
        raise Shape(f"step {index}: {what} has {len(values)} numbers, expected 2; {_WHAT}")
    return values[0], values[1]


def _text(value: str | int | None) -> str | None:
    return None if value is None else str(value)
