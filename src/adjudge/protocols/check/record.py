"""A sample as an object: the record that `export` writes and `explain` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.evidence.citations import unpack_citations
from adjudge.runs.run import Run

_OF_ATOM = ("id", "rule", "field", "outcome", "severity", "observed", "message")
_LEFT_OUT = {"part", "row", "cites", "sample", "model", "verdict"}


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet, with its answer, gold values and atoms."""
    del run
    cited = set(unpack_citations(row["cites"], len(atoms)).tolist())
    blocks: dict[str, dict[str, Any]] = {}
    shown: dict[str, Any] = {}
    for key, value in row.items():
        block, dot, name = key.partition(".")
        if dot and block in {"answer", "gold", "meta", "input", "previous", "score", "rule"}:
            blocks.setdefault(block, {})[name] = value.isoformat() if hasattr(value, "isoformat") else value
        elif key not in _LEFT_OUT:
            shown[key] = value
    return {
        "id": row["sample"],
        "model": row["model"],
        "verdict": row["verdict"],
        **shown,
        **blocks,
        "response": output.get("response"),
        "cites": [atom.id for atom in atoms if atom.position in cited],
        "atoms": [{name: getattr(atom, name) for name in _OF_ATOM} for atom in atoms],
    }
