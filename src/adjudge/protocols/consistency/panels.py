"""What a page shows of an opened item: what both agents said, side by side, and what is known of the answer."""

from __future__ import annotations

from adjudge.protocols.consistency.policy import RED_FLAGS
from adjudge.runs.panel import Panel
from adjudge.runs.run import Run


def panels(run: Run) -> list[Panel]:
    """Both reasons, then flags and citations; a run of raters has neither."""
    if "scholar" not in run.column_names:
        return []
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
                "claim": "claim",
                "both saw the same evidence": "same_evidence",
                "constraints echoed": "constraints_echoed",
            },
            note="The run keeps where citations stand and how many are out of scope, not their ids.",
        ),
    ]
