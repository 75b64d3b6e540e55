"""The chart of a stability run, as a Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.protocols.base import Named
from adjudge.protocols.common.charts import chart, intervals, words

COUNTED = ("items_with_too_few_runs", "unstable")
"""Estimates that are numbers of items."""


def measures(named: Sequence[Named]) -> dict[str, Any]:
    """Every aggregate with its interval."""
    rows = [
        {"measure": name.upper(), "value": e.value, "low": e.low, "high": e.high}
        for name, _, e in named
        if e.value is not None and name not in COUNTED
    ]
    axis = {"type": "quantitative", "scale": {"domain": [0, 1]}, "title": "share or distance"}
    order = [row["measure"] for row in rows]
    return chart(
        "stability",
        "Stability under seed and prompt jitter",
        description="Every measure over all questions with its 95 % interval; NED50 is a distance, lower is better.",
        width=420,
        height={"step": 30},
        data={"values": rows},
        encoding={"y": words("measure", sort=order, title=None)},
        layer=intervals(axis, "value", "#2b6ca3"),
    )
