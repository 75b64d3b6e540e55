"""One attempt as an object, for `export` and `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.evidence.citations import unpack_citations
from adjudge.runs.run import Run


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet."""
    cited = set(unpack_citations(row["cites"], len(atoms)).tolist())
    checks = [name.removeprefix("check.") for name in row if name.startswith("check.") and f"{name}.passed" in row]
    return {
        "sample_id": row["sample"],
        "model_name": row["model"],
        "item": row["item"],
        "task": row["task"],
        "trial": row["trial"],
        "bucket": row["bucket"],
        "verdict": row["verdict"],
        "status": row["status"],
        "score": row["score"],
        "threshold": row["threshold"],
        "confidence": row["confidence"],
        "cites": [atom.id for atom in atoms if atom.position in cited],
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
        "evidence": [
            {
                "id": atom.id,
                "rule": atom.rule,
                "field": atom.field,
                "outcome": atom.outcome,
                "severity": atom.severity,
                "observed": atom.observed,
                "message": atom.message,
            }
            for atom in atoms
        ],
        "statement": run.metrics["statement"],
    }
