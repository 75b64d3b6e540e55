"""A GUI step as an object, as `export` writes it and `explain` shows it, and what a page shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import cited, picked, plain_atoms
from adjudge.runs.run import Run
from adjudge.runs.section import Panel

_OF_ATOM = ("id", "rule", "field", "outcome", "severity", "observed", "limits", "message")
_PARTS = ("type", "x", "y", "end_x", "end_y", "element", "argument")
_EXTENTS = {"normalized": [1, 1], "per_mille": [1000, 1000]}
_PREDICTED: dict[str, Any] = {"label": "predicted point", "mark": "cross", "kind": "predicted"}


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet."""
    del run
    if "episode" not in row:
        return _of_grounding(row, atoms)
    predicted = {name: row[f"said_{name}"] for name in _PARTS}
    return {
        "sample_id": row["sample"],
        "model_name": row["model"],
        "episode_id": row["episode"],
        **picked(row, "step", "scenario", "platform", "status", "bucket", "verdict"),
        "cites": cited(row, atoms),
        "recorded": {**picked(row, *_PARTS), "boxes": boxes_of(row) or None},
        "predicted": predicted if row["status"] == "answered" else None,
        "distance": row["distance"],
        "raw_response": output["response"],
        "evidence": plain_atoms(atoms, _OF_ATOM),
    }


def _of_grounding(row: dict[str, Any], atoms: Sequence[Atom]) -> dict[str, Any]:
    """A grounding record: the boxes to find and the answer."""
    return {
        "sample_id": row["sample"],
        "model_name": row["model"],
        **picked(row, "bucket", "verdict", "clipped", "by_position", "point", "answer_box", "screen"),
        "boxes": boxes_of(row),
        "slices": {name.removeprefix("slice:"): value for name, value in row.items() if name.startswith("slice:")},
        "cites": cited(row, atoms),
        "evidence": plain_atoms(atoms, _OF_ATOM),
    }


def boxes_of(row: dict[str, Any]) -> list[list[float]]:
    """The recorded boxes of a row of samples.parquet, which stand there end to end."""
    ends = row["boxes"] or []
    return [ends[k : k + 4] for k in range(0, len(ends), 4)]


def panels(run: Run) -> list[Panel]:
    """The drawing, in the space of the coordinates; a grounding run has boxes and an answer, and no actions."""
    boxes = {"label": "target box", "column": "boxes", "kind": "target"}
    extent = _EXTENTS.get(str(run.metrics.get("space")))
    if "episode" not in run.column_names:
        answer = {"label": "predicted box", "column": "answer_box", "kind": "answer-box"}
        points = [{**_PREDICTED, "column": "point"}]
        options: dict[str, Any] = {"extent": extent, "screen": "screen", "boxes": [boxes, answer], "points": points}
        return [Panel("drawing", "The screen", options=options, missing="The record has no box and no point.")]
    options = {
        "extent": extent,
        "size": ["screen_width", "screen_height"],
        "boxes": [boxes],
        "points": [
            {"label": "recorded point", "x": "x", "y": "y", "mark": "ring", "kind": "recorded"},
            {**_PREDICTED, "x": "said_x", "y": "said_y"},
        ],
        "behind": "screenshot",
        "unpictured": "The recorded step names no screenshot.",
    }
    return [
        Panel(
            "drawing",
            "The step on its screen",
            columns={"distance to the target": "distance"},
            options=options,
            missing="The step has no box and no point to draw.",
        ),
        Panel(
            "table",
            "Recorded and predicted",
            columns={"recorded": "{}", "predicted": "said_{}"},
            options={"rows": ["type", "element", "argument", "x", "y", "end_x", "end_y"], "filled": True},
        ),
    ]
