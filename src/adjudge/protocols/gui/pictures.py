"""Pictures: evaluation files side by side, an episode with its boxes and points, and how they are written.

In the comparison a panel is a metric and a bar a file; null is absent and says n/a, 0 is a bar of no height that says 0.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from adjudge.errors import ConfigError, OutputError, RunError
from adjudge.protocols.common.plan import SCHEMA, filled
from adjudge.protocols.gui import schemas
from adjudge.protocols.gui.evalfile import in_use
from adjudge.protocols.gui.record import boxes_of
from adjudge.runs.run import Run
from adjudge.runs.writer import SAMPLES

PANELS = (
    "action_type_accuracy",
    *("click_hit_rate", "bbox_hit_rate", "element_accuracy", "mean_coord_error"),
    *("episode_success_rate", "mean_episode_progress", "mean_episode_step_score"),
    *("weak_episode_success_rate", "state_success_rate"),
)
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_COLUMNS = 4
NO_VALUE = "n/a"


def comparison(files: Sequence[tuple[str, dict[str, Any]]], metrics: Sequence[str] = ()) -> dict[str, Any]:
    """A panel for each metric that a file has, or for those named; one that no file has is refused."""
    tables = [(label, in_use(document)) for label, document in files]
    known = sorted({name for _, table in tables for name, value in table.items() if not isinstance(value, dict | list)})
    for name in metrics:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"--metric {name}: no file has such a metric.{hint} They have {', '.join(known)}")
    chosen = list(metrics) or [name for name in PANELS if any(name in table for _, table in tables)]
    return {
        "$schema": SCHEMA,
        "title": {"text": "GUI evaluation", "anchor": "start", "fontSize": 16, "offset": 16},
        "concat": [_panel(name, tables) for name in chosen],
        "columns": _COLUMNS,
        "spacing": 28,
        # Labels are never cut: two that differ in their last signs would look the same.
        "config": {"view": {"stroke": None}, "axis": {"labelLimit": 0}},
    }


def _panel(name: str, tables: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    lower = name in schemas.LOWER_IS_BETTER
    rows = [_row(name, label, table) for label, table in tables]
    highest = max((max(row["value"], row["high"] or 0.0) for row in rows if row["value"] is not None), default=1.0)
    top = 1.0 if not lower else (highest * 1.25 or 1.0)
    # A bar of no height is drawn as its foot, so that 0 can be seen.
    return filled(
        __package__,
        "comparison_panel",
        rows=rows,
        name=name,
        labels=[label for label, _ in tables],
        colours=[_COLOURS[index % len(_COLOURS)] for index in range(len(tables))],
        width=max(110, 48 * len(tables)),
        top=top,
        nice=lower,
        colour="#D55E00" if lower else "#767676",
        better="↓ lower is better" if lower else "↑ higher is better",
    )


def _row(name: str, label: str, table: dict[str, Any]) -> dict[str, Any]:
    value = table.get(name)
    low, high = (None, None) if value is None else (table.get(f"{name}_ci") or (None, None))
    return {
        "file": label,
        "value": value,
        "low": low,
        "high": high,
        "above": None if value is None else max(value, high or 0.0),
        "label": NO_VALUE if value is None else f"{value:.3g}",
    }


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
