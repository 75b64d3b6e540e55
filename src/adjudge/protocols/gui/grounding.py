"""Grounding: whether a model's point, box or candidates find the recorded element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjudge.errors import ConfigError, InputError
from adjudge.protocols.gui.spaces import EDGE, Floats, as_boxes, inside, outside_words, to_corners, upside_down
from adjudge.readers.blocks import blocks
from adjudge.readers.gui.model import BOXES, SPACES
from adjudge.readers.gui.screenspot import GroundingRecord, grounding_record
from adjudge.readers.shape import AS_IT_IS
from adjudge.readers.sources import open_source
from adjudge.stats import bootstrap
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import wilson


@dataclass(frozen=True)
class _Found:
    """One record, judged: the rank of the first candidate that hits (0 is the best), and the IoU of the answer."""

    answered: bool
    hit: bool
    rank: int | None
    candidates: int
    iou: float | None
    groups: dict[str, str | None]


def grounding(
    paths: Sequence[str], space: str, bbox: str, ks: Iterable[int] = (1, 3, 5), *, seed: int = 0
) -> dict[str, Any]:
    """Top-1 hit, oracle@k and mean IoU over records, with intervals and by platform and kind of element."""
    if space not in SPACES or bbox not in BOXES:
        raise ConfigError(f"space is one of {', '.join(SPACES)} and bbox one of {', '.join(BOXES)}")
    wanted = sorted(set(ks))
    if not wanted or wanted[0] < 1:
        raise ConfigError("k is 1 or more")
    found = [item for path in paths for item in _read(path, space, bbox)]
    groups = {
        f"by_{name}": {
            value: _numbers([item for item in found if item.groups[name] == value], wanted, seed, f"{name}={value}")
            for value in sorted({str(item.groups[name]) for item in found if item.groups[name] is not None})
        }
        for name in ("platform", "ui_type")
    }
    return {"schema_version": "1.0", "space": space, "bbox": bbox, **_numbers(found, wanted, seed, "all"), **groups}


def _numbers(found: Sequence[_Found], ks: Sequence[int], seed: int, stream: str) -> dict[str, Any]:
    n = len(found)
    with_candidates = [item for item in found if item.candidates]
    ious = [item.iou for item in found if item.iou is not None]
    estimates: dict[str, Estimate] = {"top1_hit_rate": wilson(sum(item.hit for item in found), n)}
    for k in ks:
        hits = sum(item.rank is not None and item.rank < k for item in found)
        estimates[f"oracle_at_{k}"] = (
            wilson(hits, n) if with_candidates else Estimate.null("no record has candidates", method="wilson")
        )
    estimates["mean_iou"] = (
        bootstrap.mean(ious, seed=seed, stream=f"gui/iou/{stream}")
        if ious
        else Estimate.null("no answer is a box", method="bootstrap")
    )
    return {
        "num_records": n,
        "missing_answers": sum(not item.answered for item in found),
        "metrics": {name: estimate.value for name, estimate in estimates.items()},
        "estimates": {name: estimate.to_dict() for name, estimate in estimates.items()},
    }


def _read(path: str, space: str, bbox: str) -> list[_Found]:
    lines: dict[str, int] = {}

    def read(line: int, text: bytes) -> _Found:
        record = grounding_record(text)
        name = str(record.id)
        if name in lines:
            raise InputError(
                f"id {name!r} stands here a second time; first at line {lines[name]}", file=path, line=line
            )
        lines[name] = line
        try:
            return _judge(record, space, bbox)
        except ValueError as error:
            raise InputError(f"{error}; expected a grounding record", file=path, line=line) from None

    with open_source(path) as source:
        pieces = blocks(source, 0, AS_IT_IS)
        return [judged for block in pieces for judged in block.each(read, "expected a grounding record")]


def _judge(record: GroundingRecord, space: str, order: str) -> _Found:
    screen = (
        np.full((2, 1), np.nan) if record.img_size is None else np.array(record.img_size, dtype=float).reshape(2, 1)
    )
    boxes = _corners(as_boxes(record.bbox), order, space, screen)
    if not boxes.size:
        raise ValueError("bbox is empty, so there is nothing to find")
    answer = record.point if record.point is not None else record.pred
    ranked = record.candidates or ([] if answer is None else [answer])
    best = answer if answer is not None else (ranked[0] if ranked else None)
    hits = [_hits(candidate, boxes, order, space, screen) for candidate in ranked]
    shape = None if best is None or len(best) != 4 else _corners([best], order, space, screen)
    return _Found(
        answered=best is not None,
        hit=best is not None and _hits(best, boxes, order, space, screen),
        rank=hits.index(True) if True in hits else None,
        candidates=len(record.candidates or ()),
        iou=None if shape is None else max(iou(shape[0], box) for box in boxes),
        groups={"platform": record.platform, "ui_type": record.ui_type},
    )


def _corners(boxes: list[list[float]], order: str, space: str, screen: Floats) -> Floats:
    given = np.array(boxes, dtype=float).reshape(-1, 4)
    corners, bad = to_corners(given, order)
    if bad.any():
        raise ValueError(upside_down(given[int(np.flatnonzero(bad)[0])], order))
    for corner in corners:
        _refuse_outside(corner, space, screen)
    return corners


def _hits(answer: list[float], boxes: Floats, order: str, space: str, screen: Floats) -> bool:
    """Whether a point, or the centre of a box, lies in one of the boxes, edges included."""
    if len(answer) == 4:
        left, top, right, bottom = _corners([answer], order, space, screen)[0]
        x, y = (left + right) / 2, (top + bottom) / 2
    else:
        _refuse_outside(np.array(answer, dtype=float), space, screen)
        x, y = answer
    over = (boxes[:, 0] - EDGE <= x) & (x <= boxes[:, 2] + EDGE) & (boxes[:, 1] - EDGE <= y) & (y <= boxes[:, 3] + EDGE)
    return bool(over.any())


def _refuse_outside(values: Floats, space: str, screen: Floats) -> None:
    if not inside(space, values.reshape(-1, 1), screen)[0]:
        raise ValueError(outside_words(space, values, screen[:, 0]) + " (--space)")


def iou(first: Floats, second: Floats) -> float:
    """Intersection over union of two boxes; 0 for two boxes without area."""
    across = min(first[2], second[2]) - max(first[0], second[0])
    down = min(first[3], second[3]) - max(first[1], second[1])
    overlap = max(across, 0.0) * max(down, 0.0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second))
    return float(overlap / (areas - overlap)) if areas > overlap else 0.0
