"""A GUI step as an object: the record that `export` writes and `explain` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.evidence.citations import unpack_citations
from adjudge.runs.run import Run

_PARTS = ("type", "x", "y", "end_x", "end_y", "element", "argument")


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet."""
    del run
    cited = set(unpack_citations(row["cites"], len(atoms)).tolist())
    said = {name: row[f"said_{name}"] for name in _PARTS}
    boxes = row["boxes"]
    return {
        "sample_id": row["sample"],
        "model_name": row["model"],
        "episode_id": row["episode"],
        "step": row["step"],
        "scenario": row["scenario"],
        "platform": row["platform"],
        "status": row["status"],
        "bucket": row["bucket"],
        "verdict": row["verdict"],
        "cites": [atom.id for atom in atoms if atom.position in cited],
        "recorded": {
            **{name: row[name] for name in _PARTS},
            "boxes": None if boxes is None else [boxes[k : k + 4] for k in range(0, len(boxes), 4)],
        },
        "predicted": said if row["status"] == "answered" else None,
        "distance": row["distance"],
        "raw_response": output["response"],
        "evidence": [
            {
                "id": atom.id,
                "rule": atom.rule,
                "field": atom.field,
                "outcome": atom.outcome,
                "severity": atom.severity,
                "observed": atom.observed,
                "limits": atom.limits,
                "message": atom.message,
            }
            for atom in atoms
        ],
    }
