"""An item as an object: the record that `export` writes and `explain` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import cited, other_columns, plain_atoms
from adjudge.runs.run import Run


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet, with its atoms; reasons are masked."""
    del run
    return {
        "qid": row["sample"],
        "model": row["model"],
        "final": row["verdict"],
        **other_columns(row, "sample", "model", "verdict"),
        **{key: output[key] for key in ("scholar_reason", "auditor_reason") if key in output},
        "claim_text": output.get("response"),
        "cites": cited(row, atoms),
        "atoms": plain_atoms(atoms),
    }
