"""One attempt as an object, for `export` and `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import cited, picked, plain_atoms
from adjudge.runs.run import Run


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet."""
    checks = [name.removeprefix("check.") for name in row if name.startswith("check.") and f"{name}.passed" in row]
    return {
        "sample_id": row["sample"],
        "model_name": row["model"],
        **picked(row, "item", "task", "trial", "bucket", "verdict", "status", "score", "threshold", "confidence"),
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
