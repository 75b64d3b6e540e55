"""OpenAdapt-ML episodes, current shape (`episode_id`, `instruction`, pixels) and older shape (`id`, `goal`, x and y)."""

from __future__ import annotations

from typing import Any

import msgspec

from adjudge.readers.gui.model import Action, Episode, Screen, Shape, Step, need

_OLDER_TYPES = {"key_press": "key", "failed": "fail"}
_WHAT = "expected an OpenAdapt-ML episode"


def older(text: bytes) -> Episode:
    """The older shape: `id`, `goal`, `workflow_id`, steps by their order, coordinates as declared on the command line."""
    record = msgspec.json.decode(text, type=dict[str, Any])
    steps = []
    for index, step in enumerate(need(record, "steps", list, _WHAT)):
        if not isinstance(step, dict):
            raise Shape(f"step {index} is {step!r:.60}, expected an object; {_WHAT}")
        action = dict(need(step, "action", dict, f"{_WHAT}, step {index}"))
        kind = str(need(action, "type", str, f"{_WHAT}, step {index}")).lower()
        box, mark = action.pop("bbox", None), action.pop("element_index", None)
        if box is not None or mark is not None:
            action["element"] = {"id": mark, "bbox": box}
        action["type"] = _OLDER_TYPES.get(kind, kind)
        action.setdefault("direction", action.pop("scroll_direction", None))
        steps.append(Step(int(step.get("step", index)), _action(action, index)))
    scenario = record.get("workflow_id")
    return Episode(
        need(record, "id", (str, int), _WHAT),
        steps,
        None if scenario is None else str(scenario),
        None if record.get("goal") is None else str(record["goal"]),
    )


def current(text: bytes, space: str, bbox: str) -> Episode:
    """The current shape. It says itself what is pixels and what is normalised; both become the declared space."""
    record = msgspec.json.decode(text, type=dict[str, Any])
    screen: Screen | None = None
    steps = []
    for index, step in enumerate(need(record, "steps", list, _WHAT)):
        if not isinstance(step, dict):
            raise Shape(f"step {index} is {step!r:.60}, expected an object; {_WHAT}")
        size = (step.get("observation") or {}).get("screen_size")
        own = None if size is None else Screen(float(size[0]), float(size[1]))
        if own is not None and screen is not None and own != screen:
            raise Shape(f"step {index} has another screen_size than the steps before; one episode has one screen")
        screen = screen or own
    place = _Place(space, bbox, screen)
    for index, step in enumerate(record["steps"]):
        number = need(step, "step_index", int, f"{_WHAT}, step {index}")
        steps.append(Step(number, _current_action(need(step, "action", dict, f"{_WHAT}, step {index}"), index, place)))
    environment = record.get("environment")
    task = record.get("task_id")
    return Episode(
        need(record, "episode_id", (str, int), _WHAT),
        steps,
        None if task is None else str(task),
        str(record.get("goal") or record.get("instruction")),
        screen,
        None if environment is None else str(environment),
    )


class _Place:
    """Turns pixels and normalised values into the declared space."""

    def __init__(self, space: str, bbox: str, screen: Screen | None) -> None:
        self.space, self.bbox, self.screen = space, bbox, screen

    def point(self, normalised: Any, pixels: Any, index: int) -> tuple[float, float] | tuple[None, None]:
        if self.space != "pixel" and normalised is not None:
            scale = 1000.0 if self.space == "per_mille" else 1.0
            return float(normalised[0]) * scale, float(normalised[1]) * scale
        if pixels is None:
            if normalised is None or self.screen is None:
                return None, None
            return float(normalised[0]) * self.screen.width, float(normalised[1]) * self.screen.height
        return self._of_pixels(float(pixels["x"]), float(pixels["y"]), index)

    def box(self, bounds: Any, index: int) -> list[float | list[float]]:
        left, top = float(bounds["x"]), float(bounds["y"])
        x1, y1 = self._of_pixels(left, top, index)
        x2, y2 = self._of_pixels(left + float(bounds["width"]), top + float(bounds["height"]), index)
        return [x1, y1, x2, y2] if self.bbox == "xyxy" else [x1, y1, x2 - x1, y2 - y1]

    def _of_pixels(self, x: float, y: float, index: int) -> tuple[float, float]:
        if self.space == "pixel":
            return x, y
        if self.screen is None:
            raise Shape(
                f"step {index} has pixels and no screen_size, so they cannot be put into the space {self.space}; "
                "use --space pixel"
            )
        scale = 1000.0 if self.space == "per_mille" else 1.0
        return x / self.screen.width * scale, y / self.screen.height * scale


def _current_action(action: dict[str, Any], index: int, place: _Place) -> Action:
    try:
        found: dict[str, Any] = {
            "type": need(action, "type", str, f"{_WHAT}, step {index}"),
            "text": action.get("text") or action.get("app_name") or action.get("url"),
            "direction": action.get("scroll_direction"),
        }
        start, start_pixels = action.get("normalized_coordinates"), action.get("coordinates")
        if found["type"] == "drag":
            start = action.get("normalized_start") or start
            start_pixels = action.get("start_coordinates") or start_pixels
        found["x"], found["y"] = place.point(start, start_pixels, index)
        found["end_x"], found["end_y"] = place.point(action.get("normalized_end"), action.get("end_coordinates"), index)
        if action.get("key") is not None:
            found["key"] = "+".join([*(action.get("modifiers") or ()), action["key"]])
        element = action.get("element")
        if element is not None:
            box = element.get("bounds")
            found["element"] = {
                "id": element.get("element_id"),
                "bbox": None if box is None else place.box(box, index),
            }
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise Shape(f"step {index} is not readable ({type(error).__name__}: {error}); {_WHAT}") from None
    return _action(found, index)


def _action(found: dict[str, Any], index: int) -> Action:
    try:
        return msgspec.convert(found, Action)
    except msgspec.ValidationError as error:
        raise Shape(f"step {index}: {error}; {_WHAT}") from None
