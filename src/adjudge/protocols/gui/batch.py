"""A batch of GUI steps as columns: made from the matched rows of a partition, and what is measured on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.base import Partition
from adjudge.protocols.gui.match import Matched, match
from adjudge.protocols.gui.rows import POINTS, UNITS, Ints, box_counts
from adjudge.protocols.gui.spaces import EDGE, Floats, Mask, divisors, inside, outside_words
from adjudge.readers.gui.actions import DECLARED, PIXELS
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


@dataclass
class ReadBatch:
    """A batch as columns, with what stands beside them: whose steps they are, self-reports, outcomes and raw texts.

    `episodes`, `scenarios`, `platforms` and `outcomes` have a value an episode, `row` is the episode of each step.
    """

    batch: GuiBatch
    episodes: pa.StringArray
    scenarios: pa.StringArray
    platforms: pa.StringArray
    outcomes: pa.BooleanArray
    row: NDArray[np.int32]
    steps: Ints
    self_reports: pa.BooleanArray
    texts: pa.StringArray
    screenshots: pa.StringArray


class GuiReader:
    """Turns one partition into batches of whole episodes, in the order of (episode, step)."""

    def __init__(self, types: tuple[str, ...], *, space: str, unmatched: str, batch_rows: int) -> None:
        self.types, self.space, self.unmatched, self.batch_rows = types, space, unmatched, batch_rows

    def read(self, partition: Partition) -> Iterator[ReadBatch]:
        """Batches of whole episodes, about equal in rows."""
        matched = match(partition, self.types, unmatched=self.unmatched)
        n = matched.episode.size
        if not n:
            return
        ends = np.append(np.flatnonzero(matched.episode[1:] != matched.episode[:-1]) + 1, n)
        wanted = np.arange(1, -(-n // self.batch_rows) + 1) * n // -(-n // self.batch_rows)
        low = 0
        for high in np.unique(ends[np.searchsorted(ends, wanted)]).tolist():
            yield self._batch(matched, low, high)
            low = high

    def _batch(self, matched: Matched, low: int, high: int) -> ReadBatch:
        rows, answers = matched.recorded_row[low:high], matched.predicted_row[low:high]
        episode = matched.episode[low:high]
        recorded, predicted = matched.recorded.table, matched.predicted.table
        first, last = int(episode[0]), int(episode[-1]) + 1
        words = _taken(predicted, "type", answers)
        status = np.full(high - low, ANSWERED, dtype=np.uint8)
        status[words.is_null().to_numpy(zero_copy_only=False)] = UNPARSED
        status[answers < 0] = MISSING
        status[rows < 0] = UNMATCHED
        boxes = _taken(recorded, "boxes", rows)
        screen = matched.about["screen"][episode]
        sizes = np.stack([_values(recorded, name, screen, np.nan) for name in ("width", "height")])
        batch = GuiBatch(
            types=self.types,
            space=self.space,
            status=status,
            kind=_values(recorded, "kind", rows, -1).astype(np.int16),
            said=places_in(self.types, words),
            words=words,
            target=np.stack([_values(recorded, name, rows, np.nan) for name in POINTS]),
            point=self._points(matched, answers, sizes),
            screen=sizes,
            boxes=boxes.flatten().to_numpy().reshape(-1, 4),
            box_row=np.repeat(np.arange(high - low), box_counts(boxes)),
            element=_taken(recorded, "element", rows),
            said_element=_taken(predicted, "element", answers),
            argument=_taken(recorded, "argument", rows),
            said_argument=_taken(predicted, "argument", answers),
            milestones={row - low: wanted for row, wanted in matched.milestones.items() if low <= row < high},
            notes=_noted(_taken(predicted, "note", answers)),
        )
        read = ReadBatch(
            batch=batch,
            episodes=matched.recorded.names[first:last],
            scenarios=_taken(recorded, "scenario", matched.about["scenario"][first:last]),
            platforms=_taken(recorded, "platform", matched.about["platform"][first:last]),
            outcomes=_taken(matched.outcomes.table, "success", matched.outcome_row[first:last]),
            row=(episode - first).astype(np.int32),
            steps=np.where(rows >= 0, _values(recorded, "step", rows, 0), _values(predicted, "step", answers, 0)),
            self_reports=_taken(predicted, "self_report", answers),
            texts=_taken(predicted, "raw", answers),
            screenshots=_taken(recorded, "screenshot", rows),
        )
        self._refuse_outside(read, matched, low)
        return read

    def _points(self, matched: Matched, answers: Ints, screen: Floats) -> Floats:
        """The predicted points and ends in the declared space; those in another unit need the screen of the episode."""
        table = matched.predicted.table
        points = np.stack([_values(table, name, answers, np.nan) for name in POINTS])
        for end, name in enumerate(UNITS):
            unit = _values(table, name, answers, DECLARED)
            rows = np.flatnonzero(unit != DECLARED)
            if not rows.size:
                continue
            unknown = rows[np.isnan(screen[:, rows]).any(axis=0)]
            if unknown.size:
                what = "pixels" if unit[unknown[0]] == PIXELS else "shares of the screen"
                text = (
                    f": the prediction is in {what} and the recording has no screen size to put them into {self.space}"
                )
                raise matched.predicted.wrong(int(answers[unknown[0]]), text)
            whole = 1000.0 if self.space == "per_mille" else 1.0
            factor = np.where(unit[rows] == PIXELS, whole / screen[:, rows], screen[:, rows])
            points[2 * end : 2 * end + 2, rows] *= factor
        return points

    def _refuse_outside(self, read: ReadBatch, matched: Matched, low: int) -> None:
        """Half a point, or a value outside the declared space, in an episode or a structured action."""
        batch = read.batch
        answers = matched.predicted_row[low : low + batch.n]
        structured = _values(matched.predicted.table, "structured", answers, fill=False)
        every, rows = np.ones(batch.n, dtype=np.bool_), np.arange(batch.n)
        recorded, predicted = (matched.recorded, matched.recorded_row), (matched.predicted, matched.predicted_row)
        for points, place, choose, (side, row_of) in (
            (batch.target, rows, every, recorded),
            (batch.boxes.T, batch.box_row, every, recorded),
            (batch.point, rows, structured, predicted),
        ):
            screen = batch.screen[:, place]
            gap = np.isnan(points)
            half = (gap[0] != gap[1]) | (gap[2] != gap[3])
            bad = np.flatnonzero((half | ~inside(self.space, points, screen)) & choose[place])
            if bad.size:
                first = int(bad[0])
                row = int(place[first])
                text = (
                    "has one coordinate of a point without the other"
                    if half[first]
                    else outside_words(self.space, points[:, first], screen[:, first]) + " (--space)"
                )
                raise side.wrong(int(row_of[low + row]), f", step {read.steps[row]}: {text}")


def places_in(types: tuple[str, ...], words: pa.StringArray) -> NDArray[np.int16]:
    """The places of some words in `types`, −1 for none of them."""
    places: NDArray[np.int16] = (
        pc.index_in(words, value_set=pa.array(types, pa.string()), skip_nulls=True)
        .fill_null(-1)
        .to_numpy(zero_copy_only=False)
        .astype(np.int16)
    )
    return places


def _taken(table: pa.Table, name: str, rows: Ints) -> Any:
    """Some rows of a column, null for −1."""
    column = table.column(name).combine_chunks()
    if column.null_count == len(column):
        return pa.nulls(len(rows), column.type)
    absent = rows < 0
    return column.take(pa.array(rows, mask=absent if absent.any() else None))


def _values(table: pa.Table, name: str, rows: Ints, fill: float) -> Any:
    """Some rows of a column of numbers, `fill` for −1."""
    if not table.num_rows:
        return np.full(len(rows), fill)
    numbers: Floats = table.column(name).to_numpy()[rows]
    absent = rows < 0
    return np.where(absent, fill, numbers) if absent.any() else numbers


def _noted(notes: pa.StringArray) -> dict[int, str]:
    rows = np.flatnonzero(notes.is_valid().to_numpy(zero_copy_only=False))
    return dict(zip(rows.tolist(), notes.take(pa.array(rows)).to_pylist(), strict=True))
