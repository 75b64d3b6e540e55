"""Mind2Web-style samples: a step a record with its operation, value and boxes, and a model's predicted operation."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from adjudge.readers.blocks import tree_of
from adjudge.readers.gui.actions import Boxes, centre
from adjudge.readers.gui.model import Action, Element, Prediction, Shape, SingleStep, Step, need

_OPERATIONS = ("click", "type", "select", "hover", "key", "wait", "done")
_DIRECTIONS = ("up", "down", "left", "right")
_WHAT = "expected a Mind2Web-style sample"
_PREDICTED = (
    ("gpt_action", "gpt_value", "gpt_bbox"),
    ("predicted_operation", "predicted_value", "predicted_bbox"),
    ("pred_action", "pred_value", "pred_bbox"),
)


class _Sample(msgspec.Struct):
    annotation_id: str
    step: int
    operation: str
    value: str | None = None
    bbox: list[float | list[float]] | None = None
    task: str | None = None
    domain: str | None = None


EPISODE_KEYS = tree_of(_Sample)
PREDICTION_KEYS = dict.fromkeys(["annotation_id", "step", *itertools.chain(*_PREDICTED)])


def episode(text: bytes, space: str, bbox: str) -> SingleStep:
    """One sample as an episode of one step. Its boxes are pixels, xywh, and no screen size is recorded."""
    if (space, bbox) != ("pixel", "xywh"):
        raise Shape(
            f"is a Mind2Web-style sample, whose boxes are pixels in xywh; --space {space} --bbox {bbox} is wrong"
        )
    sample = msgspec.json.decode(text, type=_Sample)
    action = operation(sample.operation, sample.value)
    if action is None:
        raise Shape(f"operation {sample.operation!r} is not one of {', '.join(_OPERATIONS)}, scroll <direction>")
    action.element = Element(None, sample.bbox) if sample.bbox else None
    return SingleStep(sample.annotation_id, [Step(sample.step, action)], sample.domain, sample.task, None, "web")


def prediction(text: bytes) -> Prediction:
    """The predicted operation of a sample; what is no operation is kept as text, for the parser to refuse."""
    record: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    episode_id = need(record, "annotation_id", str, _WHAT)
    step = need(record, "step", int, _WHAT)
    for name, value, box in _PREDICTED:
        if name in record:
            operation_text = str(record[name])
            action = operation(operation_text, record.get(value))
            if action is not None and record.get(box):
                action.x, action.y = centre(msgspec.convert(record[box], Boxes), "xywh")
            return Prediction(episode_id, step, action, operation_text if action is None else None)
    raise Shape(
        f"has none of {', '.join(name for name, *_ in _PREDICTED)}; expected a sample with a predicted operation"
    )


def operation(name: str, value: Any) -> Action | None:
    """An operation such as CLICK, TYPE with a value, or SCROLL DOWN; None when it is none."""
    word = name.strip().lower()
    kind, _, rest = word.partition(" ")
    if kind == "scroll" and rest.strip() in _DIRECTIONS:
        return Action("scroll", direction=rest.strip())
    if word not in _OPERATIONS:
        return None
    text = None if value is None else str(value)
    return Action(word, text=text if word in {"type", "select"} else None, key=text if word == "key" else None)
