"""ScreenSpot-style grounding records: the box to find, and the point or box that a model gave, or ranked candidates."""

from __future__ import annotations

import msgspec

from adjudge.readers.gui.model import Shape


class GroundingRecord(msgspec.Struct):
    """One record. `pred` is a point (2 numbers) or a box (4 numbers); `candidates` are such, best first."""

    id: str | int
    bbox: list[float | list[float]]
    point: list[float] | None = None
    pred: list[float] | None = None
    candidates: list[list[float]] | None = None
    img_size: list[float] | None = None
    platform: str | None = None
    ui_type: str | None = None


_decoder = msgspec.json.Decoder(GroundingRecord)


def grounding_record(text: bytes) -> GroundingRecord:
    """A record, with at most one of `point` and `pred` and answers of 2 or 4 numbers."""
    found = _decoder.decode(text)
    if found.point is not None and found.pred is not None:
        raise Shape("has both `point` and `pred`; a record has one answer (and `candidates` beside it)")
    if found.point is not None and len(found.point) != 2:
        raise Shape(f"`point` has {len(found.point)} numbers, expected x and y")
    for answer in (*([found.pred] if found.pred is not None else ()), *(found.candidates or ())):
        if len(answer) not in {2, 4}:
            raise Shape(f"an answer has {len(answer)} numbers, expected a point (2) or a box (4)")
    if found.img_size is not None and len(found.img_size) != 2:
        raise Shape(f"`img_size` has {len(found.img_size)} numbers, expected width and height")
    return found
