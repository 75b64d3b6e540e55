"""An episode as a picture: recorded boxes and targets against the points that the agent chose; and how pictures are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from adjudge.errors import ConfigError, OutputError, RunError
from adjudge.protocols.common.plan import SCHEMA, filled
from adjudge.protocols.gui.record import boxes_of
from adjudge.runs.run import Run
from adjudge.runs.writer import SAMPLES

_WIDTH = 640
_STATES = ("hit", "missed", "no point", "not a click")


def overlay(run: Run, episode: str) -> dict[str, Any]:
    """The specification of one episode's picture."""
    if "episode" not in run.column_names:
        raise RunError(f"{run.path} is a grounding run; it has no episodes to draw")
    rows = pq.read_table(run.path / SAMPLES, filters=pc.field("episode") == episode).to_pylist()
    if not rows:
        known = run.samples.column("episode").unique().to_pylist()
        raise RunError(f"{run.path} has no episode {episode!r}; the first are {', '.join(map(str, sorted(known)[:3]))}")
    rows.sort(key=lambda row: row["step"])
    space = run.metrics["space"]
    width, height = _extent(rows, space)
    boxes, targets, points, lines = [], [], [], []
    outside: list[str] = []
    for row in rows:
        step, state = str(row["step"]), _state(row)
        corners = boxes_of(row)
        boxes += [
            {"step": step, "x": left, "y": top, "x2": right, "y2": bottom, "state": state}
            for left, top, right, bottom in corners
        ]
        target = [{"step": step, "x": x, "y": y, "state": state} for x, y in _target(row, corners)]
        targets += target
        x, y = row["said_x"], row["said_y"]
        if x is None:
            continue
        if not (0 <= x <= width and 0 <= y <= height):
            outside.append(step)
            continue
        points.append({"step": step, "x": x, "y": y, "state": state})
        lines += [{**start, "x2": x, "y2": y} for start in target]
    # Boxes of clicks are drawn over those of other steps on the same element.
    boxes.sort(key=lambda box: box["state"] != _STATES[3])
    verdicts = sum(row["verdict"] == "correct" for row in rows)
    steps = sum(row["verdict"] != "unmatched" for row in rows)
    screen = rows[0]
    aspect = height / width
    if space != "pixel" and screen["screen_width"] and screen["screen_height"]:
        aspect = screen["screen_height"] / screen["screen_width"]
    under = [
        f"{verdicts} of {steps} steps fully correct",
        "boxes: recorded · crosses: targets · dots: predicted, numbered by step",
        *([f"outside the space and not drawn: step {', '.join(outside)}"] if outside else ()),
    ]
    drawn = {"boxes": boxes, "lines": lines, "targets": targets, "points": points, "states": list(_STATES)}
    size = {"right": width, "bottom": height, "height": round(_WIDTH * min(max(aspect, 0.3), 2.5))}
    return {"$schema": SCHEMA, **filled(__package__, "episode", episode=episode, under=under, **size, **drawn)}


def _extent(rows: list[dict[str, Any]], space: str) -> tuple[float, float]:
    if space != "pixel":
        side = 1.0 if space == "normalized" else 1000.0
        return side, side
    first = rows[0]
    if first["screen_width"] is not None:
        return first["screen_width"], first["screen_height"]
    across = [v for row in rows for v in (*(row["boxes"] or [])[0::2], row["x"], row["said_x"]) if v is not None]
    down = [v for row in rows for v in (*(row["boxes"] or [])[1::2], row["y"], row["said_y"]) if v is not None]
    return 1.05 * max(across, default=1.0), 1.05 * max(down, default=1.0)


def _target(row: dict[str, Any], corners: list[list[float]]) -> list[tuple[float, float]]:
    """What a step aims at: its point, else the middle of its first box, if it has any."""
    if row["x"] is not None:
        return [(row["x"], row["y"])]
    return [((left + right) / 2, (top + bottom) / 2) for left, top, right, bottom in corners[:1]]


def _state(row: dict[str, Any]) -> str:
    if row["type"] not in {"click", "double_click", "right_click", "hover", "drag"}:
        return _STATES[3]
    if row["verdict"] == "correct":
        return _STATES[0]
    return _STATES[2] if row["said_x"] is None and row["said_element"] is None else _STATES[1]


ENDINGS = (".png", ".svg", ".pdf", ".html")


def write_picture(spec: dict[str, Any], path: Path) -> None:
    """Render and write; another ending is a ConfigError."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ConfigError(f"{path} ends in {ending or 'nothing'}, expected one of {', '.join(ENDINGS)}")
    import vl_convert

    if ending == ".html":
        data: bytes = vl_convert.vegalite_to_html(spec, bundle=True).encode()
    elif ending == ".svg":
        data = vl_convert.vegalite_to_svg(spec).encode()
    else:
        data = vl_convert.vegalite_to_pdf(spec) if ending == ".pdf" else vl_convert.vegalite_to_png(spec, scale=2)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
