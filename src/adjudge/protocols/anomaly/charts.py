"""Charts of an anomaly run: ROC with its band, recall against magnitude, latency, the timeline of the worst attack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjudge.protocols.anomaly.decide import Decisions
from adjudge.protocols.anomaly.table import ScoreTable
from adjudge.protocols.anomaly.words import TEST
from adjudge.stats import ranking_bootstrap

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_GRID = (
    0.0,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.03,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    1.0,
)
_POINTS = 600
_BLUE, _RED, _GREY = "#2b6cb0", "#c53030", "#a0aec0"


def charts(
    table: ScoreTable,
    decisions: Decisions,
    per_attack: Sequence[dict[str, Any]],
    worst: str | None,
    threshold: float | None,
    *,
    seed: int,
    resamples: int,
    watermark: str | None,
) -> list[dict[str, Any]]:
    """All charts for which there are numbers."""
    specs = [
        ("roc", _roc(table, seed, min(resamples, 500))),
        ("recall_by_magnitude", _recall(per_attack)),
        ("latency", _latency(table, decisions)),
        ("worst_attack", _timeline(table, decisions, worst, threshold)),
    ]
    found = []
    for name, spec in specs:
        if spec is None:
            continue
        title = spec.pop("title")
        if watermark:
            title = {"text": title, "subtitle": watermark, "subtitleColor": _RED, "subtitleFontSize": 14}
        found.append({"name": name, "spec": {"$schema": _SCHEMA, "title": title, "width": 420, "height": 280, **spec}})
    return found


def _roc(table: ScoreTable, seed: int, resamples: int) -> dict[str, Any] | None:
    test = table.of(TEST)
    if not test:
        return None
    rows = slice(int(table.edges[test[0]]), int(table.edges[test[-1] + 1]))
    score, label = table.score[rows], table.label[rows]
    if label.all() or not label.any():
        return None
    flights = np.array([table.sequences[index].flight for index in test])
    _, code = np.unique(flights, return_inverse=True)
    m = int(code.max()) + 1
    order = np.argsort(score)[::-1]
    place = np.repeat(code.astype(np.int64), np.diff(table.edges)[test])[order]
    ranked = ranking_bootstrap.Ranked.of(score, label, order)
    values = []
    for target in _GRID:
        found = ranking_bootstrap.recall_at_fpr(
            ranked, place, m, target, seed=seed, stream=f"roc/{target}", resamples=resamples
        )
        values.append({"fpr": target, "tpr": found.value, "low": found.low, "high": found.high})
    x = {"field": "fpr", "type": "quantitative", "title": "False positive rate"}
    y = {"field": "tpr", "type": "quantitative", "title": "True positive rate", "scale": {"domain": [0, 1]}}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line", "color": _BLUE, "interpolate": "step-after"}, "encoding": {"x": x, "y": y}},
        {
            "data": {"values": [{"fpr": 0, "tpr": 0}, {"fpr": 1, "tpr": 1}]},
            "mark": {"type": "line", "color": _GREY, "strokeDash": [4, 4]},
            "encoding": {"x": x, "y": y},
        },
    ]
    if m > 1:
        band = {
            "mark": {"type": "area", "color": _BLUE, "opacity": 0.2, "interpolate": "step-after"},
            "encoding": {"x": x, "y": {"field": "low", "type": "quantitative", "title": ""}, "y2": {"field": "high"}},
        }
        layers.insert(0, band)
    return {"title": "ROC over test, 95 % band over flights", "data": {"values": values}, "layer": layers}


def _recall(per_attack: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    values = [
        {
            "attack": row["attack"],
            "magnitude": row["magnitude"],
            "recall": row["recall"],
            "low": row["recall_low"],
            "high": row["recall_high"],
        }
        for row in per_attack
        if row["magnitude"] is not None and row["recall"] is not None
    ]
    if not values:
        return None
    x = {"field": "magnitude", "type": "quantitative", "title": "Magnitude (unit of the attack's parameter)"}
    y = {
        "field": "recall",
        "type": "quantitative",
        "title": "Recall at the frozen threshold",
        "scale": {"domain": [0, 1]},
    }
    color = {"field": "attack", "type": "nominal", "title": "Attack"}
    return {
        "title": "Recall against magnitude",
        "data": {"values": values},
        "layer": [
            {"mark": {"type": "line", "point": True}, "encoding": {"x": x, "y": y, "color": color}},
            {
                "mark": {"type": "rule", "opacity": 0.6},
                "encoding": {
                    "x": x,
                    "y": {"field": "low", "type": "quantitative"},
                    "y2": {"field": "high"},
                    "color": color,
                },
            },
            {
                "data": {"values": [{"half": 0.5}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": _GREY},
                "encoding": {"y": {"field": "half", "type": "quantitative"}},
            },
        ],
    }


def _latency(table: ScoreTable, decisions: Decisions) -> dict[str, Any] | None:
    values = [
        {"latency": float(decisions.latency_ms[index]) / 1000.0, "attack": table.sequences[index].attack}
        for index in table.of(TEST)
        if decisions.detected[index]
    ]
    missed = sum(1 for index in table.of(TEST) if decisions.attacked[index] and not decisions.detected[index])
    if not values:
        return None
    return {
        "title": f"Latency of {len(values)} detected attacks ({missed} missed, not shown)",
        "data": {"values": values},
        "mark": "bar",
        "encoding": {
            "x": {
                "field": "latency",
                "type": "quantitative",
                "bin": {"maxbins": 30},
                "title": "Seconds from attack start to alarm",
            },
            "y": {"aggregate": "count", "type": "quantitative", "title": "Sequences"},
            "color": {"field": "attack", "type": "nominal", "title": "Attack"},
        },
    }


def _timeline(
    table: ScoreTable, decisions: Decisions, worst: str | None, threshold: float | None
) -> dict[str, Any] | None:
    chosen = [index for index in table.of(TEST) if table.sequences[index].attack == worst and decisions.attacked[index]]
    if worst is None or not chosen:
        return None
    index = min(chosen, key=lambda i: (decisions.tp[i] / (decisions.tp[i] + decisions.fn[i]), i))
    rows = table.rows(index)
    time, score, label = table.time[rows] - table.time[rows][0], table.score[rows], table.label[rows]
    step = -(-score.size // _POINTS)
    # The largest score of each stretch is shown, so that no peak is lost.
    values = [
        {"t": float(time[start]), "score": float(score[start : start + step].max())}
        for start in range(0, score.size, step)
    ]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], label, [False]]).astype(np.int8)))
    windows = [
        {"from": float(time[a]), "to": float(time[min(b, score.size - 1)])}
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
    x = {"type": "quantitative", "title": "Seconds"}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": windows},
            "mark": {"type": "rect", "color": _RED, "opacity": 0.15},
            "encoding": {"x": {"field": "from", **x}, "x2": {"field": "to"}},
        },
        {
            "data": {"values": values},
            "mark": {"type": "line", "color": _BLUE, "strokeWidth": 1},
            "encoding": {"x": {"field": "t", **x}, "y": {"field": "score", "type": "quantitative", "title": "Score"}},
        },
    ]
    if threshold is not None:
        layers.append(
            {
                "data": {"values": [{"threshold": threshold}]},
                "mark": {"type": "rule", "color": _RED, "strokeDash": [4, 4]},
                "encoding": {"y": {"field": "threshold", "type": "quantitative"}},
            }
        )
    return {"title": f"Worst attack: {table.sequences[index].id} (shaded: attacked)", "layer": layers}
