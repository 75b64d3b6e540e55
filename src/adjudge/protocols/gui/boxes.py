"""Boxes of recorded elements: one or several a step, xyxy or xywh, as columns of left, top, right, bottom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.gui.spaces import Floats


def as_boxes(bbox: Sequence[float | list[float]]) -> list[list[float]]:
    """One box or a list of boxes, as a list of boxes; ValueError where it is neither."""
    if not bbox:
        return []
    if len(bbox) == 4 and list not in map(type, bbox):
        return [bbox]  # type: ignore[list-item]  # four numbers
    boxes: list[list[float]] = [list(box) for box in bbox if isinstance(box, list)]
    if not boxes:
        boxes = [[value for value in bbox if not isinstance(value, list)]]
    elif len(boxes) < len(bbox):
        raise ValueError(f"bbox {list(bbox)!r} mixes numbers and boxes")
    for box in boxes:
        if len(box) != 4:
            raise ValueError(f"bbox {box!r} has {len(box)} numbers, expected 4")
    return boxes


def to_corners(boxes: Floats, order: str) -> tuple[Floats, NDArray[np.bool_]]:
    """Boxes as left, top, right, bottom, and which of them end before they begin."""
    corners = boxes.copy()
    if order == "xywh":
        corners[:, 2:] += corners[:, :2]
    return corners, (corners[:, 2] < corners[:, 0]) | (corners[:, 3] < corners[:, 1])


def upside_down(box: Floats, order: str) -> str:
    """The sentence about a box that ends before it begins."""
    shown = ", ".join(f"{value:g}" for value in box)
    what = "x2 < x1 or y2 < y1" if order == "xyxy" else "a negative width or height"
    hint = " Are the boxes xywh (--bbox xywh)?" if order == "xyxy" else ""
    return f"bbox [{shown}] has {what}.{hint}"
