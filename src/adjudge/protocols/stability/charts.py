"""The chart of a stability run, as a Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.protocols.base import Named
from adjudge.protocols.common.plan import chart

COUNTED = ("items_with_too_few_runs", "unstable")
"""Estimates that are numbers of items."""


def measures(named: Sequence[Named]) -> dict[str, Any]:
    """Every aggregate with its interval."""
    rows = [
        {"measure": name.upper(), "value": e.value, "low": e.low, "high": e.high}
        for name, _, e in named
        if e.value is not None and name not in COUNTED
    ]
    return chart(__package__, "stability", rows=rows, order=[row["measure"] for row in rows])
