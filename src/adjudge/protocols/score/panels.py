"""What a page shows of an opened attempt: target, answer and explanation, and the scores that were reported."""

from __future__ import annotations

from adjudge.runs.run import Run
from adjudge.runs.section import Panel


def panels(run: Run) -> list[Panel]:
    """Texts side by side, then every check of the log."""
    checks = [name for name in run.column_names if name.startswith("check.") and not name.endswith(".passed")]
    return [
        Panel(
            "texts",
            "The input",
            columns={"input": "input"},
            missing="The run holds no text of the input.",
        ),
        Panel(
            "texts",
            "Target and answer",
            columns={"target": "target", "answer": "response"},
            options={"always": True},
            missing="The log has neither a target nor an answer.",
        ),
        Panel("texts", "Explanation of the scorer", columns={"explanation": "explanation"}),
        Panel("texts", "Error", columns={"error": "error"}),
        Panel(
            "pairs",
            "Scores",
            columns={
                "score": "score",
                "passes from": "threshold",
                "as reported": "reported",
                "confidence": "confidence",
                "truth": "truth",
                "trial": "trial",
                "tokens read from the cache": "cache_read",
                "tokens written to the cache": "cache_write",
                **{name.removeprefix("check."): name for name in checks},
            },
        ),
    ]
