"""ScreenSpot-style grounding records: the box to find, and the point or box that a model gave, or ranked candidates."""

from __future__ import annotations

from typing import Any

import msgspec

from adjudge.readers.gui.model import Shape


class GroundingRecord(msgspec.Struct):
    """One record. `pred` is a point (2 numbers) or a box (4 numbers); `candidates` are such, best first."""

    bbox: list[float | list[float]]
    id: str | int | None = None
    point: list[float] | None = None
    pred: list[float] | None = None
    candidates: list[list[float]] | None = None
    img_size: list[float] | None = None


_decoder = msgspec.json.Decoder(GroundingRecord)


def grounding_record(text: bytes, keys: tuple[str, ...]) -> tuple[GroundingRecord, dict[str, str | None]]:
    """A record with at most one of `point` and `pred` and answers of 2 or 4 numbers; and its values of some keys."""
    record = _decoder.decode(text)
    if record.point is not None and record.pred is not None:
        raise Shape("has both `point` and `pred`; a record has one answer (and `candidates` beside it)")
    if record.point is not None and len(record.point) != 2:
        raise Shape(f"`point` has {len(record.point)} numbers, expected x and y")
    for answer in (*([record.pred] if record.pred is not None else ()), *(record.candidates or ())):
        if len(answer) not in {2, 4}:
            raise Shape(f"an answer has {len(answer)} numbers, expected a point (2) or a box (4)")
    if record.img_size is not None and len(record.img_size) != 2:
        raise Shape(f"`img_size` has {len(record.img_size)} numbers, expected width and height")
    values: dict[str, Any] = msgspec.json.decode(text)
    return record, {key: None if values.get(key) is None else str(values[key]) for key in keys}
