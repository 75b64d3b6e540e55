"""One gold item with its measures and its atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import cited, other_columns, plain_atoms
from adjudge.runs.run import Run


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet."""
    del run
    return {
        "qid": row["sample"],
        **other_columns(row, "sample", "model"),
        "claims": output["claims"],
        "cites": cited(row, atoms),
        "atoms": plain_atoms(atoms, ("id", "outcome", "message")),
    }
