"""One attempt as an object, for `export` and `explain`, and what a page shows of an opened one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import cited, picked, plain_atoms
from adjudge.runs.run import Run
from adjudge.runs.section import Panel


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet."""
    checks = [name.removeprefix("check.") for name in row if name.startswith("check.") and f"{name}.passed" in row]
    return {
        "sample_id": row["sample"],
        "model_name": row["model"],
        **picked(row, "item", "task", "trial", "bucket", "verdict", "status", "score", "threshold", "confidence"),
        "success": row.get("success"),
        "cites": cited(row, atoms),
        "as_reported": {
            "answer": output["response"],
            "target": output["target"],
            "input": output.get("input"),
            "explanation": output["explanation"],
            "error": output["error"],
            "cached": row["cached"],
            "cache_tokens": {"read": output.get("cache_read"), "written": output.get("cache_write")},
            "checks": {name: {"score": row[f"check.{name}"], "passed": row[f"check.{name}.passed"]} for name in checks},
            "file": output["file"],
            "line": output["line"],
        },
        "raw_response": output["response"],
        "evidence": plain_atoms(atoms),
        "statement": run.metrics["statement"],
    }


def panels(run: Run) -> list[Panel]:
    """Target, answer and explanation, then the scores that were reported."""
    checks = [name for name in run.column_names if name.startswith("check.") and not name.endswith(".passed")]
    return [
        Panel("texts", "The input", columns={"input": "input"}, missing="The run holds no text of the input."),
        Panel(
            "texts",
            "Target and answer",
            columns={"target": "target", "answer": "response"},
            options={"always": True},
            missing="The log has neither a target nor an answer.",
        ),
        Panel("texts", "Explanation of the scorer", columns={"explanation": "explanation"}),
        Panel("texts", "Error", columns={"error": "error"}),
        Panel(
            "pairs",
            "Scores",
            columns={
                "score": "score",
                "passes from": "threshold",
                **({"passed, as the log says": "success"} if "success" in run.column_names else {}),
                "as reported": "reported",
                "confidence": "confidence",
                "truth": "truth",
                "trial": "trial",
                "tokens read from the cache": "cache_read",
                "tokens written to the cache": "cache_write",
                **{name.removeprefix("check."): name for name in checks},
            },
        ),
    ]
