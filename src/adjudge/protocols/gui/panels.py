"""What a page shows of an opened step: the screen with its boxes, the recorded and the predicted point, and both actions."""

from __future__ import annotations

from typing import Any

from adjudge.runs.run import Run
from adjudge.runs.section import Panel

_EXTENTS = {"normalized": [1, 1], "per_mille": [1000, 1000]}
_PREDICTED: dict[str, Any] = {"label": "predicted point", "mark": "cross", "kind": "predicted"}


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
