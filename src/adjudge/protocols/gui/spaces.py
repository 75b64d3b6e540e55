"""Coordinate spaces and boxes: what lies inside the declared space, and boxes as left, top, right, bottom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from adjudge.readers.gui.model import SPACES, Shape

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# 0.55 − 0.5 is not 0.05 in binary: edges and radii are inclusive up to this much.
EDGE = 1e-9
FEWEST_OUTSIDE = 2


def divisors(space: str, screen: Floats) -> Floats:
    """What a coordinate is divided by to be normalised, shaped (2, n); NaN for pixels without a screen size."""
    if space == "pixel":
        return screen
    return np.full_like(screen, 1.0 if space == "normalized" else 1000.0)


def inside(space: str, points: Floats, screen: Floats) -> Mask:
    """Which rows of points (2k, n) lie in a space; a coordinate that is not there (NaN) does not matter."""
    high = divisors(space, screen)
    limit = np.where(np.isnan(high), np.inf, high)
    fits = np.ones(points.shape[1], dtype=bool)
    for row, values in enumerate(points):
        fits &= np.isnan(values) | ((values >= -EDGE) & (values <= limit[row % 2] + EDGE))
    return fits


def others(space: str, points: Floats, screen: Floats) -> tuple[str, ...]:
    """The spaces other than the declared one that one row of coordinates would fit."""
    columns, size = points.reshape(-1, 1), screen.reshape(2, 1)
    return tuple(name for name in SPACES if name != space and bool(inside(name, columns, size)[0]))


def outside_words(space: str, points: Floats, screen: Floats) -> str:
    """The sentence about coordinates outside the declared space, naming the one they would fit."""
    shown = ", ".join(f"{value:g}" for value in points if not np.isnan(value))
    top = {"normalized": "0 to 1", "per_mille": "0 to 1000"}.get(space, "0 to the screen's width and height")
    if space == "pixel" and not np.isnan(screen).any():
        top = f"0 to {screen[0]:g} and {screen[1]:g}"
    other_spaces = others(space, points, screen)
    fit = f"they would fit {' or '.join(other_spaces)}" if other_spaces else "they fit no space"
    return f"coordinates {shown} lie outside the space {space} ({top}); {fit}"


def likely_spaces(fits: Mapping[str, int], among: int) -> str:
    """The other spaces that most of so many steps or records fit, in words; empty where they are few."""
    most = max(fits.values(), default=0)
    if most < FEWEST_OUTSIDE or 2 * most <= among:
        return ""
    return " or ".join(space for space, count in fits.items() if count == most)


def as_boxes(bbox: Sequence[float | list[float]]) -> list[list[float]]:
    """One box or a list of boxes, as a list of boxes; refused where it is neither."""
    if not bbox:
        return []
    if len(bbox) == 4 and list not in map(type, bbox):
        return [bbox]  # type: ignore[list-item]  # four numbers
    boxes: list[list[float]] = [list(box) for box in bbox if isinstance(box, list)]
    if not boxes:
        boxes = [[value for value in bbox if not isinstance(value, list)]]
    elif len(boxes) < len(bbox):
        raise Shape(f"bbox {list(bbox)!r} mixes numbers and boxes")
    for box in boxes:
        if len(box) != 4:
            raise Shape(f"bbox {box!r} has {len(box)} numbers, expected 4")
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
