"""A batch of GUI steps as columns, and what is measured on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.gui.rows import Ints
from adjudge.protocols.gui.spaces import EDGE, Floats, Mask, divisors, inside
from adjudge.readers.gui.model import Milestone

STATUSES = ("answered", "unparsed", "missing", "unmatched")
ANSWERED, UNPARSED, MISSING, UNMATCHED = range(4)
X, Y, END_X, END_Y = range(4)


@dataclass
class GuiBatch:
    """Recorded and predicted actions, a column a step. `kind` and `said` are places in `types`, −1 for none of them.

    `target` and `point` are x, y, end_x, end_y in the declared space (NaN where there is none); `boxes` are left, top,
    right, bottom, each belonging to the step in `box_row`. `notes` says why a text did not parse.
    """

    types: tuple[str, ...]
    space: str
    status: NDArray[np.uint8]
    kind: NDArray[np.int16]
    said: NDArray[np.int16]
    words: pa.StringArray
    target: Floats
    point: Floats
    screen: Floats
    boxes: Floats
    box_row: NDArray[np.int64]
    element: pa.StringArray
    said_element: pa.StringArray
    argument: pa.StringArray
    said_argument: pa.StringArray
    milestones: dict[int, list[Milestone]]
    notes: dict[int, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Steps in the batch."""
        return int(self.status.size)

    def is_kind(self, names: tuple[str, ...]) -> Mask:
        """Which steps were recorded with one of these types."""
        return self._one_of(names, self.kind)

    def says(self, names: tuple[str, ...]) -> Mask:
        """Which predictions are of one of these types."""
        return self._one_of(names, self.said)

    def _one_of(self, names: tuple[str, ...], kinds: NDArray[np.int16]) -> Mask:
        wanted = np.zeros(len(self.types) + 1, dtype=bool)
        wanted[[self.types.index(name) for name in names if name in self.types]] = True
        return wanted[kinds]

    def places(self, rows: Ints) -> Iterator[tuple[str, str, str]]:
        """The target, the boxes and the predicted point of some steps, for people; empty where there is none."""
        boxes, edges = self.boxes.tolist(), self._box_edges
        targets, points = self.target[:2, rows].T.tolist(), self.point[:2, rows].T.tolist()
        for row, target, point in zip(rows.tolist(), targets, points, strict=True):
            of_step = boxes[edges[row] : edges[row + 1]]
            shown_boxes = "; ".join([shown_numbers(box, "[]") for box in of_step])
            yield shown_numbers(target, "()"), shown_boxes, shown_numbers(point, "()")

    @cached_property
    def _box_edges(self) -> list[int]:
        """Where the boxes of each step begin; they stand in the order of the steps."""
        edges: list[int] = np.searchsorted(self.box_row, np.arange(self.n + 1)).tolist()
        return edges

    @cached_property
    def has_coordinates(self) -> Mask:
        """Which predictions carry any coordinate."""
        any_coordinate: Mask = np.logical_or.reduce(~np.isnan(self.point), axis=0)
        return any_coordinate

    @cached_property
    def in_space(self) -> Mask:
        """Which predictions have no coordinate outside the declared space."""
        return inside(self.space, self.point, self.screen)

    @cached_property
    def has_point(self) -> Mask:
        """(2, n): which predictions have a usable point, and a usable end."""
        known: Mask = np.stack([~np.isnan(self.point[X]), ~np.isnan(self.point[END_X])])
        return known & self.in_space

    @cached_property
    def has_box(self) -> Mask:
        """Which steps have a recorded box."""
        boxed = np.zeros(self.n, dtype=bool)
        boxed[self.box_row] = True
        return boxed

    @cached_property
    def has_target(self) -> Mask:
        """(2, n): which steps have a recorded point or box, and a recorded end."""
        return np.stack([~np.isnan(self.target[X]) | self.has_box, ~np.isnan(self.target[END_X])])

    @cached_property
    def can_normalise(self) -> Mask:
        """Which steps have distances in normalised units: all but those in pixels without a screen size."""
        known: Mask = np.logical_and.reduce(~np.isnan(divisors(self.space, self.screen)), axis=0)
        return known

    @cached_property
    def distance(self) -> Floats:
        """(2, n): normalised L2 distance to the target (the recorded point, else the nearest box centre), and of the ends."""
        unit = divisors(self.space, self.screen)
        usable = np.where(np.repeat(self.has_point, 2, axis=0), self.point, np.nan)
        distances = np.stack([_distance(usable[k : k + 2] - self.target[k : k + 2], unit) for k in (0, 2)])
        rows = self.box_row
        if rows.size:
            centre = (self.boxes[:, :2] + self.boxes[:, 2:]).T / 2.0
            to_centre = _distance(usable[:2, rows] - centre, unit[:, rows])
            nearest = np.full(self.n, np.inf)
            with np.errstate(invalid="ignore"):  # no point: the distance stays NaN
                np.minimum.at(nearest, rows, to_centre)
            use = np.isnan(self.target[X]) & self.has_box
            distances[0, use] = nearest[use]
        return distances

    @cached_property
    def in_box(self) -> Mask:
        """Which predictions point into a recorded box, edges inclusive."""
        rows = self.box_row
        x, y = self.point[X, rows], self.point[Y, rows]
        left, top, right, bottom = self.boxes.T
        hit = (x >= left - EDGE) & (x <= right + EDGE) & (y >= top - EDGE) & (y <= bottom + EDGE)
        inside = np.zeros(self.n, dtype=bool)
        inside[rows[hit]] = True
        hits: Mask = inside & self.has_point[0]
        return hits

    @cached_property
    def same_element(self) -> Mask:
        """Which predictions name the recorded element."""
        return same(self.element, self.said_element)

    @cached_property
    def has_element(self) -> Mask:
        """Which steps have a recorded element id."""
        return present(self.element)


def shown_numbers(values: Iterable[float], brackets: str) -> str:
    """Coordinates as people write them; nothing where one is missing."""
    known = tuple([value for value in values if not math.isnan(value)])
    return _form(len(known), brackets) % known if known else ""


@cache
def _form(count: int, brackets: str) -> str:
    """So many numbers between brackets, with holes for the numbers."""
    return f"{brackets[0]}{', '.join(['%.4g'] * count)}{brackets[1]}"


def present(values: pa.StringArray) -> Mask:
    """Which of the values are there."""
    valid: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def same(a: pa.StringArray, b: pa.StringArray) -> Mask:
    """Where both values are there and equal."""
    equal: Mask = pc.equal(a, b).fill_null(False).to_numpy(zero_copy_only=False)
    return equal


def _distance(difference: Floats, unit: Floats) -> Floats:
    across, down = difference / unit
    distance: Floats = np.sqrt(across * across + down * down)
    return distance
