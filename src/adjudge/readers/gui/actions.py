"""Actions as any of the formats spells them, told by their keys: ours, and OpenAdapt-ML's current and older shape."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from adjudge.readers.gui.model import DRAG, POINTING, Action, Element, Screen, Shape

DECLARED, PIXELS, NORMALISED = range(3)
"""The unit of a point: the declared space, or one that becomes it when the size of the screen is known."""
OTHER_NAMES = {"key_press": "key", "failed": "fail"}
"""Types as the older shape calls them."""

Boxes = list[float | list[float]]


class _Point(msgspec.Struct):
    x: float
    y: float


class _Bounds(_Point):
    width: float
    height: float


class AnyElement(Element):
    """An element by our keys or OpenAdapt-ML's; `bounds` are pixels."""

    element_id: str | int | None = None
    bounds: _Bounds | None = None


class AnyAction(Action):
    """An action with the keys of every shape; `coordinates` are pixels, `normalized_…` shares of the screen."""

    element: AnyElement | None = None
    bbox: Boxes | None = None
    element_index: str | int | None = None
    app_name: str | None = None
    url: str | None = None
    modifiers: list[str] | None = None
    scroll_direction: str | None = None
    coordinates: _Point | list[float] | None = None
    start_coordinates: _Point | list[float] | None = None
    end_coordinates: _Point | list[float] | None = None
    normalized_coordinates: list[float] | None = None
    normalized_start: list[float] | None = None
    normalized_end: list[float] | None = None


class PlacedAction(Action):
    """An action whose point and end may still be in units of their own."""

    unit: int = DECLARED
    end_unit: int = DECLARED


class Frame(NamedTuple):
    """The declared space and box order, and the screen of the episode; a prediction does not know it (`later`)."""

    space: str
    bbox: str
    screen: Screen | None = None
    later: bool = False


def placed(action: AnyAction, frame: Frame, what: str) -> PlacedAction:
    """The action in the declared space; `what` names it in errors.

    A predicted action without a point is at the centre of the box it names; a recorded one keeps its box as the target.
    """
    is_drag = action.type.lower() in DRAG
    start, start_pixels = action.normalized_coordinates, action.coordinates
    if is_drag:
        start, start_pixels = action.normalized_start or start, action.start_coordinates or start_pixels
    x, y, unit = action.x, action.y, DECLARED
    if x is None and y is None:
        x, y, unit = _point(start, start_pixels, frame, what)
    end_x, end_y, end_unit = action.end_x, action.end_y, DECLARED
    if end_x is None and end_y is None:
        end_x, end_y, end_unit = _point(action.normalized_end, action.end_coordinates, frame, what)
    element, bounds = _element(action), None if action.element is None else action.element.bounds
    if bounds is not None and not element.bbox and not frame.later:
        element.bbox = _box(bounds, frame, what)
    points = is_drag or action.type.lower() in POINTING
    if bounds is not None and not element.bbox and frame.later and points and x is None and y is None:
        x, y, unit = _of_pixels(bounds.x + bounds.width / 2, bounds.y + bounds.height / 2, frame, what)
    key = None if action.key is None else "+".join([*(action.modifiers or ()), action.key])
    named = element.id is not None or element.bbox
    return PlacedAction(
        OTHER_NAMES.get(action.type.lower(), action.type),
        *(x, y, end_x, end_y),
        action.text or action.app_name or action.url,
        key,
        action.scroll_direction if action.direction is None else action.direction,
        element if named else None,
        unit,
        end_unit,
    )


def centre(bbox: Boxes, order: str) -> tuple[float | None, float | None]:
    """The centre of a box, or of the first of several; nothing where it is no box."""
    box = bbox[0] if isinstance(bbox[0], list) else bbox
    numbers = [value for value in box if not isinstance(value, list)]
    if len(numbers) != 4:
        return None, None
    left, top, third, fourth = numbers
    return (left + third / 2, top + fourth / 2) if order == "xywh" else ((left + third) / 2, (top + fourth) / 2)


def pair(values: list[float], what: str) -> tuple[float, float]:
    """Two numbers."""
    if len(values) != 2:
        raise Shape(f"{what} has {len(values)} numbers, expected 2")
    return values[0], values[1]


def _element(action: AnyAction) -> Element:
    element = action.element or AnyElement()
    names = (action.element_index, element.id, element.element_id)
    return Element(next((name for name in names if name is not None), None), action.bbox or element.bbox)


def _point(
    normalised: list[float] | None, pixels: _Point | list[float] | None, frame: Frame, what: str
) -> tuple[float | None, float | None, int]:
    """A point in the declared space, or with the unit it is in while the screen is not known."""
    x, y = (None, None) if normalised is None else pair(normalised, f"{what}: a normalised point")
    if frame.space != "pixel" and x is not None and y is not None:
        scale = 1000.0 if frame.space == "per_mille" else 1.0
        return x * scale, y * scale, DECLARED
    if pixels is not None:
        across, down = pair(pixels, f"{what}: a point") if isinstance(pixels, list) else (pixels.x, pixels.y)
        return _of_pixels(across, down, frame, what)
    if x is None or y is None:
        return None, None, DECLARED
    if frame.later:
        return x, y, NORMALISED
    if frame.screen is None:
        raise Shape(
            f"{what} has normalised coordinates and no screen_size, so they have no pixels; use --space normalized"
        )
    return x * frame.screen.width, y * frame.screen.height, DECLARED


def _of_pixels(x: float, y: float, frame: Frame, what: str) -> tuple[float, float, int]:
    if frame.space == "pixel":
        return x, y, DECLARED
    if frame.later:
        return x, y, PIXELS
    if frame.screen is None:
        raise Shape(
            f"{what} has pixels and no screen_size, so they cannot be put into the space {frame.space}; use --space pixel"
        )
    if frame.screen.width <= 0 or frame.screen.height <= 0:
        raise Shape(f"{what} has pixels on a screen of {frame.screen.width:g} × {frame.screen.height:g}")
    scale = 1000.0 if frame.space == "per_mille" else 1.0
    return x / frame.screen.width * scale, y / frame.screen.height * scale, DECLARED


def _box(bounds: _Bounds, frame: Frame, what: str) -> Boxes:
    x1, y1, _ = _of_pixels(bounds.x, bounds.y, frame, what)
    x2, y2, _ = _of_pixels(bounds.x + bounds.width, bounds.y + bounds.height, frame, what)
    return [x1, y1, x2, y2] if frame.bbox == "xyxy" else [x1, y1, x2 - x1, y2 - y1]
