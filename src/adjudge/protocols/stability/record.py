"""One gold item with its measures and its atoms, and what a page shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import cited, other_columns, plain_atoms
from adjudge.runs.run import Run
from adjudge.runs.section import Panel


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


def panels(run: Run) -> list[Panel]:
    """The claims of all runs, and what was counted over them."""
    del run
    return [
        Panel("texts", "The claims of every run", columns={"claims": "claims"}, missing="No run made a claim."),
        Panel(
            "pairs",
            "Over all runs",
            columns={
                "runs": "runs",
                "the item can be answered": "answerable",
                "runs with the expected text": "acr_hits",
                "runs with a citation of the gold": "cghc_hits",
                "runs that refuse": "refusals",
                "runs with citations that can be placed": "scoped",
                "runs with a citation out of scope": "out_of_scope",
                "similarity of claims (CSS)": "css",
                "median edit distance (NED50)": "ned50",
                "agreement of runs (IAA)": "iaa",
            },
        ),
    ]
