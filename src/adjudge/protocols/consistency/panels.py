"""What a page shows of an opened item: what both agents said, side by side, and what is known of the answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from adjudge.protocols.consistency.policy import RED_FLAGS
from adjudge.runs.run import Run
from adjudge.runs.section import Panel

_RATING = "rating:"


def panels(run: Run) -> list[Panel]:
    """Both reasons, then flags and citations; of raters, who said what."""
    if "scholar" not in run.column_names:
        ratings = [name for name in run.column_names if name.startswith(_RATING)]
        return [Panel("pairs", "What each rater said", columns={name.removeprefix(_RATING): name for name in ratings})]
    flags = [*RED_FLAGS, *(run.manifest.config.get("flags") or ())]
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
