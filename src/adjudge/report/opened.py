"""What an opened sample shows beside its evidence: the protocol's panels, and how the verdict came about.

Columns that are computed for the page have names that begin with @, which no column of a run has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from adjudge.errors import AdjudgeError
from adjudge.runs.panel import Panel
from adjudge.runs.run import Run

_STATUSES = np.frombuffer(b"pfu", dtype=np.uint8)  # pass, fail, unknown, as the table of an agent has them
_LISTS = ("reason_words", "reason_quotes", "reason_verified", "quotes", "quotes_verified", "votes", "refused")


def panels_of(run: Run) -> list[Panel]:
    """The panels of the installed protocol; none where it cannot make them for this run."""
    try:
        return list(run.panels(run))
    except AdjudgeError:
        return []


def panel_columns(
    run: Run, panels: Sequence[Panel], samples: pa.Table, outputs: pa.Table | None
) -> dict[str, Sequence[Any]]:
    """The columns that the panels compute for a batch."""
    columns: dict[str, Sequence[Any]] = {}
    for panel in panels:
        if panel.values is not None:
            columns |= {f"@{name}": values for name, values in panel.values(run, samples, outputs).items()}
    return columns


def agent_of(run: Run) -> dict[str, Any] | None:
    """Who judged, and the titles of the checklist; None where a run keeps nothing of it."""
    if run.agent is None:
        return None
    return {
        "name": run.agent["agent"],
        "model": run.agent["model"],
        "language_model": run.agent["language_model"],
        "items": [item["title"] for item in run.agent["checklist"]],
        "rules": [item["rules"] for item in run.agent["checklist"]],
    }


def agent_columns(samples: pa.Table, table: pa.Table | None) -> dict[str, Sequence[Any]]:
    """Checklist, reasons, votes and quotes of a batch, from the partition's `table` of how verdicts came about."""
    if table is None:
        return {}
    rows = table.take(samples.column("row"))
    statuses = rows.column("status").to_pylist()
    columns: dict[str, Sequence[Any]] = {
        "@status": [_STATUSES[np.frombuffer(codes, dtype=np.uint8)].tobytes().decode() for codes in statuses],
        "@decided_by": rows.column("decided_by").to_pylist(),
        "@reasons": [
            [list(pair) for pair in zip(worst or (), sizes or (), strict=True)]
            for worst, sizes in zip(
                rows.column("reason_worst").to_pylist(), rows.column("reason_sizes").to_pylist(), strict=True
            )
        ],
    }
    stored = {name: rows.column(name) for name in _LISTS}
    return columns | {
        f"@{name}": column.to_pylist() for name, column in stored.items() if column.null_count < len(rows)
    }
