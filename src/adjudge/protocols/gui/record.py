"""A GUI step as an object: the record that `export` writes and `explain` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import cited, picked, plain_atoms
from adjudge.runs.run import Run

_OF_ATOM = ("id", "rule", "field", "outcome", "severity", "observed", "limits", "message")
_PARTS = ("type", "x", "y", "end_x", "end_y", "element", "argument")


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet."""
    del run
    if "episode" not in row:
        return _of_grounding(row, atoms)
    predicted = {name: row[f"said_{name}"] for name in _PARTS}
    boxes = row["boxes"]
    return {
        "sample_id": row["sample"],
        "model_name": row["model"],
        "episode_id": row["episode"],
        **picked(row, "step", "scenario", "platform", "status", "bucket", "verdict"),
        "cites": cited(row, atoms),
        "recorded": {
            **picked(row, *_PARTS),
            "boxes": None if boxes is None else [boxes[k : k + 4] for k in range(0, len(boxes), 4)],
        },
        "predicted": predicted if row["status"] == "answered" else None,
        "distance": row["distance"],
        "raw_response": output["response"],
        "evidence": plain_atoms(atoms, _OF_ATOM),
    }


def _of_grounding(row: dict[str, Any], atoms: Sequence[Atom]) -> dict[str, Any]:
    """A grounding record: the boxes to find and the answer."""
    boxes = row["boxes"]
    return {
        "sample_id": row["sample"],
        "model_name": row["model"],
        **picked(row, "bucket", "verdict", "clipped", "by_position", "point", "answer_box", "screen"),
        "boxes": [boxes[k : k + 4] for k in range(0, len(boxes), 4)],
        "slices": {name.removeprefix("slice:"): value for name, value in row.items() if name.startswith("slice:")},
        "cites": cited(row, atoms),
        "evidence": plain_atoms(atoms, _OF_ATOM),
    }
