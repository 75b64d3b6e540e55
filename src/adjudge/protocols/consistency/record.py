"""An item as an object: the record that `export` writes and `explain` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.evidence.citations import unpack_citations
from adjudge.runs.run import Run

_OF_ATOM = ("id", "rule", "field", "outcome", "severity", "observed", "message")


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet, with its atoms; reasons are masked."""
    del run
    cited = set(unpack_citations(row["cites"], len(atoms)).tolist())
    shown = {
        key: value for key, value in row.items() if key not in {"part", "row", "cites", "sample", "model", "verdict"}
    }
    return {
        "qid": row["sample"],
        "model": row["model"],
        "final": row["verdict"],
        **shown,
        **{key: output[key] for key in ("scholar_reason", "auditor_reason") if key in output},
        "claim_text": output.get("response"),
        "cites": [atom.id for atom in atoms if atom.position in cited],
        "atoms": [{name: getattr(atom, name) for name in _OF_ATOM} for atom in atoms],
    }
