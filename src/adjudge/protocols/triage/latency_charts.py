"""Latency of a triage run as charts: in total by cache state, and by component."""

from __future__ import annotations

from typing import Any

from adjudge.protocols.triage.batch import COMPONENTS
from adjudge.protocols.triage.chart_spec import spec

_CACHE = {"hit": "#E69F00", "miss": "#0072B2", "unknown": "#777777"}
_WHOLE = ("total_seconds", "latency_seconds")
_QUANTILES = (("p50", "circle", 90), ("p90", "diamond", 55), ("p95", "square", 45), ("p99", "cross", 55))
_SHOWN = "Median (dot), 90th (diamond), 95th (square) and 99th percentile (cross)"


def latency(configurations: dict[str, Any]) -> dict[str, Any] | None:
    """The total time of each configuration, apart by cache state."""
    rows = []
    for name, block in configurations.items():
        for state, times in block["latency"]["by_cache"].items():
            total = times["total_seconds"] if times["total_seconds"]["n"] else times["latency_seconds"]
            if total["n"]:
                rows.append({"group": f"{name}, cache {state} (n = {total['n']:,})", "cache": state, **total})
    return _chart(
        rows, "latency", "Latency by cache state", f"{_SHOWN} of the total time.", "total time, seconds (log scale)"
    )


def components(configurations: dict[str, Any]) -> dict[str, Any] | None:
    """The time of each component of each configuration; a cache has none."""
    rows = []
    for name, block in configurations.items():
        for state, times in block["latency"]["by_cache"].items():
            for part in COMPONENTS:
                if state != "hit" and part not in _WHOLE and times[part]["n"]:
                    what = part.removesuffix("_seconds").replace("_", " ")
                    shown = f"{name}, {what} (n = {times[part]['n']:,})"
                    rows.append({"group": shown, "cache": state, **times[part]})
    return _chart(
        rows, "latency_components", "Latency by component", f"{_SHOWN}; no cache hits.", "time, seconds (log scale)"
    )


def _chart(rows: list[dict[str, Any]], name: str, title: str, description: str, axis: str) -> dict[str, Any] | None:
    if not rows or any(row["p50"] <= 0 for row in rows):
        return None
    keys = ("group", "cache", "p50", "p90", "p95", "p99", "mean")
    states = [state for state in _CACHE if any(row["cache"] == state for row in rows)]
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "nice": True},
        "axis": {"tickCount": 6, "format": "~g"},
        "title": axis,
    }
    quantiles = [
        {
            "mark": {"type": "point", "filled": shape == "circle", "shape": shape, "size": size, "opacity": 1},
            "encoding": {"x": {**x, "field": key}},
        }
        for key, shape, size in _QUANTILES
    ]
    order = [row["group"] for row in rows]
    return spec(
        name,
        title,
        description,
        {
            "width": 460,
            "height": {"step": 26},
            "data": {"values": [{key: row[key] for key in keys} for row in rows]},
            "encoding": {
                "y": {"field": "group", "type": "nominal", "sort": order, "title": None, "axis": {"labelLimit": 360}},
                "color": {
                    "field": "cache",
                    "type": "nominal",
                    "scale": {"domain": states, "range": [_CACHE[state] for state in states]},
                    "legend": {"title": "cache", "symbolOpacity": 1},
                },
            },
            "layer": [
                {
                    "mark": {"type": "rule", "strokeWidth": 1.5},
                    "encoding": {"x": {**x, "field": "p50"}, "x2": {"field": "p99"}},
                },
                *quantiles,
            ],
        },
    )
