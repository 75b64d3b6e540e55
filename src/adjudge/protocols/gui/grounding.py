"""Grounding: records of a box to find and a model's answer, as rows, as a batch, and the rules on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.evidence.rule import Finding, Rule
from adjudge.protocols.gui.batch import shown_numbers
from adjudge.protocols.gui.spaces import (
    EDGE,
    Floats,
    Mask,
    as_boxes,
    divisors,
    inside,
    likely_spaces,
    others,
    outside_words,
    to_corners,
    upside_down,
)
from adjudge.readers.blocks import Block
from adjudge.readers.gui.model import Shape
from adjudge.readers.gui.screenspot import GroundingRecord, grounding_record

EXPECTED = "expected a grounding record: `bbox`, and `point`, `pred` or `candidates`"
_LISTS = pa.list_(pa.float64())
FLAGS = ("by_position", "clipped", "ranked")
"""Named by its position, a box clipped, candidates given."""
COLUMNS = ("boxes", "point", "answer_box", "candidates", "screen")


class GroundingReader:
    """Reads records: boxes clipped to the screen, answers as points and boxes; without an id the position is the name."""

    def __init__(self, space: str, bbox: str, keys: tuple[str, ...]) -> None:
        self.space, self.bbox, self.keys = space, bbox, keys
        self._at_line: Counter[tuple[int, int]] = Counter()
        self.schema = pa.schema(
            [
                *(("key", pa.string()), ("file", pa.int32()), ("line", pa.int64())),
                *((name, pa.bool_()) for name in FLAGS),
                *((name, _LISTS) for name in COLUMNS),
                *((f"slice:{key}", pa.string()) for key in keys),
            ]
        )

    def read(self, block: Block) -> pa.Table:
        """A row a record."""
        rows = block.each(lambda line, text: self._row(block, line, text), EXPECTED)
        clipped = sum(row["clipped"] for row in rows)
        fits = Counter(space for row in rows for space in row["fits"])
        likely = likely_spaces(fits, len(rows))
        if likely and max(fits.values()) == clipped:
            what = f"{clipped} of {len(rows)} boxes reach beyond --space {self.space}; they fit {likely}"
            raise InputError(f"{what}. Nothing was judged; give the space they are in.", file=block.path)
        return pa.Table.from_pylist(rows, schema=self.schema)

    def _row(self, block: Block, line: int, text: bytes) -> dict[str, Any]:
        record, values = grounding_record(text, self.keys)
        position = line + self._at_line[block.file, line]  # records of one document share its line
        self._at_line[block.file, line] += 1
        screen = np.full(2, np.nan) if record.img_size is None else np.array(record.img_size, dtype=float)
        boxes, corners = self._recorded(record, screen)
        answer = record.point if record.point is not None else record.pred
        ranked = record.candidates or ([] if answer is None else [answer])
        best = answer if answer is not None else (ranked[0] if ranked else None)
        clipped = not np.array_equal(boxes, corners)
        return {
            "key": f"record {position}" if record.id is None else str(record.id),
            "file": block.file,
            "line": line,
            "by_position": record.id is None,
            "clipped": clipped,
            "ranked": bool(record.candidates),
            "fits": others(self.space, boxes.reshape(-1), screen) if clipped else (),
            "boxes": corners.ravel().tolist(),
            "point": None if best is None else self._centre(best),
            "answer_box": None if best is None or len(best) != 4 else self._corners([best]).ravel().tolist(),
            "candidates": [value for candidate in ranked for value in self._centre(candidate)],
            "screen": None if record.img_size is None else screen.tolist(),
            **{f"slice:{key}": value for key, value in values.items()},
        }

    def _recorded(self, record: GroundingRecord, screen: Floats) -> tuple[Floats, Floats]:
        """The recorded boxes as they are, and as much of them as lies on the screen."""
        boxes = as_boxes(record.bbox)
        if not boxes:
            raise Shape("bbox is empty, so there is nothing to find")
        as_recorded = self._corners(boxes)
        high = np.tile(divisors(self.space, screen.reshape(2, 1))[:, 0], 2)
        corners = np.clip(as_recorded, 0.0, np.where(np.isnan(high), np.inf, high))
        gone = (corners[:, 0] >= corners[:, 2]) & (as_recorded[:, 0] < as_recorded[:, 2])
        gone |= (corners[:, 1] >= corners[:, 3]) & (as_recorded[:, 1] < as_recorded[:, 3])
        if gone.any():
            raise Shape(outside_words(self.space, as_recorded[int(np.flatnonzero(gone)[0])], screen) + " (--space)")
        return as_recorded, corners

    def _corners(self, boxes: list[list[float]]) -> Floats:
        numbers = np.array(boxes, dtype=float).reshape(-1, 4)
        corners, bad = to_corners(numbers, self.bbox)
        if bad.any():
            raise Shape(upside_down(numbers[int(np.flatnonzero(bad)[0])], self.bbox))
        return corners

    def _centre(self, answer: list[float]) -> list[float]:
        """A point, or the centre of a box."""
        if len(answer) == 2:
            return list(answer)
        left, top, right, bottom = self._corners([answer])[0].tolist()
        return [(left + right) / 2, (top + bottom) / 2]


@dataclass
class GroundingBatch:
    """Records as columns; lists of numbers stay lists, a record has any number of boxes and candidates."""

    space: str
    columns: dict[str, pa.Array]

    @property
    def n(self) -> int:
        """Records in the batch."""
        return len(self.columns["boxes"])

    def _wide(self, name: str, width: int) -> Floats:
        """A column of lists of one length, shaped (length, records), NaN for null."""
        values = np.full((self.n, width), np.nan)
        column = self.columns[name]
        values[column.is_valid().to_numpy(zero_copy_only=False)] = column.flatten().to_numpy().reshape(-1, width)
        return values.T

    @cached_property
    def point(self) -> Floats:
        """The model's first answer."""
        return self._wide("point", 2)

    @cached_property
    def answered(self) -> Mask:
        """Which records have an answer."""
        known: Mask = ~np.isnan(self.point[0])
        return known

    @cached_property
    def screen(self) -> Floats:
        """The size of each record's picture."""
        return self._wide("screen", 2)

    @cached_property
    def in_space(self) -> Mask:
        """Which answers lie in the declared space."""
        return inside(self.space, self.point, self.screen)

    @cached_property
    def _edges(self) -> NDArray[np.int64]:
        """Where the boxes of each record begin among all boxes."""
        return np.concatenate([[0], np.cumsum(self.columns["boxes"].value_lengths().to_numpy() // 4)])

    @cached_property
    def _boxes(self) -> Floats:
        boxes: Floats = self.columns["boxes"].flatten().to_numpy().reshape(-1, 4)
        return boxes

    def _corners(self, row: int) -> Floats:
        """The boxes of a record."""
        return self._boxes[self._edges[row] : self._edges[row + 1]]

    def boxes_of(self, row: int) -> str:
        """The boxes of a record, for people."""
        return "; ".join(shown_numbers(box, "[]") for box in self._corners(row).tolist())

    def point_of(self, row: int) -> str:
        """The answer to a record, for people."""
        return shown_numbers(self.point[:, row], "()")

    @cached_property
    def hit(self) -> Mask:
        """Which answers lie in a recorded box, edges included."""
        return self._hits(self.point, np.arange(self.n)) & self.in_space

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """The place of the first candidate that hits, 0 being the best; −1 for none."""
        candidates = self.columns["candidates"]
        counts = candidates.value_lengths().to_numpy() // 2
        rows = np.repeat(np.arange(self.n), counts)
        place = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
        hit = self._hits(candidates.flatten().to_numpy().reshape(-1, 2).T, rows)
        ranks = np.full(self.n, -1, dtype=np.int64)
        first, where = np.unique(rows[hit], return_index=True)
        ranks[first] = place[hit][where]
        return ranks

    def _hits(self, points: Floats, rows: NDArray[np.int64]) -> Mask:
        """Whether each point lies in a box of its record."""
        hits = np.zeros(rows.size, dtype=bool)
        for place, row in enumerate(rows.tolist()):
            boxes = self._corners(row)
            low, high = boxes[:, :2] - EDGE, boxes[:, 2:] + EDGE
            hits[place] = bool(((points[:, place] >= low) & (points[:, place] <= high)).all(axis=1).any())
        return hits

    @cached_property
    def iou(self) -> Floats:
        """The best intersection over union of the answer's box, NaN where the answer is no box."""
        answers = self._wide("answer_box", 4)
        values = np.full(self.n, np.nan)
        for row in np.flatnonzero(~np.isnan(answers[0])).tolist():
            values[row] = max(iou(answers[:, row], box) for box in self._corners(row))
        return values


def iou(first: Any, second: Any) -> float:
    """Intersection over union of two boxes; 0 for two boxes without area."""
    across = min(first[2], second[2]) - max(first[0], second[0])
    down = min(first[3], second[3]) - max(first[1], second[1])
    overlap = max(across, 0.0) * max(down, 0.0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second))
    return float(overlap / (areas - overlap)) if areas > overlap else 0.0


@dataclass(frozen=True)
class GroundingContext:
    """What the rules depend on: nothing but that they are these."""


def grounding_rules() -> list[Rule]:
    """The rules on one record: there is an answer, in the space, in the box."""
    return [
        Rule(
            code="grounding.answer",
            title="there is an answer",
            passed="there is an answer",
            failed="there is no answer",
            check=lambda batch: Finding(~batch.answered[None], ~batch.answered[None]),
        ),
        Rule(
            code="grounding.space",
            title="the answer lies in the declared space",
            needs=("grounding.answer",),
            passed="the answer lies in the declared space",
            failed="{why}",
            check=lambda batch: _wrong(
                batch,
                ~batch.in_space,
                lambda row: outside_words(batch.space, batch.point[:, row], batch.screen[:, row]),
            ),
        ),
        Rule(
            code="grounding.hit",
            title="the point lies in the recorded box, edges included",
            needs=("grounding.answer",),
            passed="the point lies in the recorded box",
            failed="the point does not lie in the recorded box. {why}",
            check=lambda batch: _wrong(
                batch, ~batch.hit, lambda row: f"the point is {batch.point_of(row)}, the box {batch.boxes_of(row)}"
            ),
        ),
    ]


def _wrong(batch: GroundingBatch, fails: Mask, why: Callable[[int], str]) -> Finding:
    """The answers that fail, each with the reason."""
    failed = (batch.answered & fails)[None]
    return Finding(failed, failed, details={(0, row): why(row) for row in np.flatnonzero(failed[0]).tolist()})
