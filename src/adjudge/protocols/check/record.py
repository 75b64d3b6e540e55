"""A sample as an object: the record that `export` writes and `explain` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import cited, other_columns, picked, plain_atoms
from adjudge.runs.run import Run

_BLOCKS = frozenset({"answer", "gold", "meta", "input", "previous", "score", "rule"})


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet, with its answer, gold values and atoms."""
    del run
    blocks: dict[str, dict[str, Any]] = {}
    shown: dict[str, Any] = {}
    for key, value in other_columns(row, "sample", "model", "verdict").items():
        block, dot, name = key.partition(".")
        if dot and block in _BLOCKS:
            blocks.setdefault(block, {})[name] = value.isoformat() if hasattr(value, "isoformat") else value
        else:
            shown[key] = value
    return {
        "id": row["sample"],
        **picked(row, "model", "verdict"),
        **shown,
        **blocks,
        "response": output.get("response"),
        "cites": cited(row, atoms),
        "atoms": plain_atoms(atoms),
    }
