"""What of a flight run `adjudge compare` may pair, sample by sample, and which columns are the data set's own."""

from __future__ import annotations

from typing import Any

DATASET_COLUMNS = ("gold",)


def comparable(scores: str) -> list[dict[str, Any]]:
    """The outcomes, the one that matters most first; scores only where the fixed profile was asked for."""
    outcomes: list[dict[str, Any]] = [
        {
            "name": "eligibility_rate",
            "column": "verdict",
            "equals": "eligible",
            "kind": "binary",
            "cluster": "flight",
            "phrases": {
                "better": "stays within physics and safety more often",
                "worse": "stays within physics and safety less often",
            },
        }
    ]
    if scores in {"fixed", "both"}:
        outcomes += [
            {
                "name": "total_score_all",
                "title": "total score (ineligible as 0)",
                "column": "total",
                "null": 0.0,
                "kind": "mean",
                "cluster": "flight",
            },
            {
                "name": "error_score",
                "title": "error score (where both are eligible)",
                "column": "error",
                "kind": "mean",
                "cluster": "flight",
            },
        ]
    return outcomes
