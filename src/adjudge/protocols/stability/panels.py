"""What a page shows of an opened gold item: the claims of all runs, and what was counted over them."""

from __future__ import annotations

from adjudge.runs.run import Run
from adjudge.runs.section import Panel


def panels(run: Run) -> list[Panel]:
    """Claims first."""
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
