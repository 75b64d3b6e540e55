"""One gold item with its measures and its atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.evidence.citations import unpack_citations
from adjudge.runs.run import Run


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet."""
    del run
    cited = set(unpack_citations(row["cites"], len(atoms)).tolist())
    shown = {key: value for key, value in row.items() if key not in {"part", "row", "cites", "sample", "model"}}
    return {
        "qid": row["sample"],
        **shown,
        "claims": output["claims"],
        "cites": [atom.id for atom in atoms if atom.position in cited],
        "atoms": [{"id": atom.id, "outcome": atom.outcome, "message": atom.message} for atom in atoms],
    }
