"""An item as an object, as `export` writes it and `explain` shows it, and what a page shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import cited, other_columns, plain_atoms
from adjudge.protocols.consistency.policy import RED_FLAGS
from adjudge.protocols.consistency.raters import PREFIX
from adjudge.runs.run import Run
from adjudge.runs.section import Panel


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


def panels(run: Run) -> list[Panel]:
    """Both reasons, then flags and citations; of raters, who said what."""
    if "scholar" not in run.column_names:
        ratings = {name.removeprefix(PREFIX): name for name in run.column_names if name.startswith(PREFIX)}
        return [Panel("pairs", "What each rater said", columns=ratings)]
    flags = [*RED_FLAGS, *(run.manifest.config.get("flag") or ())]
    return [
        Panel(
            "texts",
            "Both reasons",
            columns={"Scholar": "scholar_reason", "Auditor": "auditor_reason"},
            options={"badges": {"Scholar": "scholar", "Auditor": "auditor"}, "always": True},
            note="Addresses, telephone numbers and the like are masked in reasons.",
        ),
        Panel(
            "pairs",
            "Flags, citations and evidence",
            columns={
                "decided by the row": "why",
                **{f"flag {name.replace('_', ' ')}": name for name in dict.fromkeys(flags)},
                "citations": "citations",
                "citations out of scope": "citations_out_of_scope",
                "cited and retrieved": "@cited_inside",
                "cited, not retrieved": "@cited_outside",
                "claim": "claim",
                "both saw the same evidence": "same_evidence",
                "constraints echoed": "constraints_echoed",
            },
            values=_cited,
        ),
    ]


def _cited(run: Run, samples: pa.Table, outputs: pa.Table | None) -> dict[str, list[Any]]:
    """Ids of the citations, in scope and out of it; a run of an older version keeps none."""
    del run
    if outputs is None or "cited" not in outputs.column_names:
        return {}
    known = [word != "unverifiable" for word in samples.column("citations").to_pylist()]
    lists = [[_ids(text) for text in outputs.column(name).to_pylist()] for name in ("cited", "cited_outside")]
    inside = [
        [name for name in cited if name not in outside] if verifiable else []
        for cited, outside, verifiable in zip(*lists, known, strict=True)
    ]
    return {"cited_inside": inside, "cited_outside": lists[1]}


def _ids(text: str | None) -> list[str]:
    return [] if text is None else [str(name) for name in msgspec.json.decode(text)]
