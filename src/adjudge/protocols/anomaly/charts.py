"""Charts of an anomaly run: ROC with its band, recall against magnitude, latency, the timeline of the worst attack."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.anomaly.decide import Decisions
from adjudge.protocols.anomaly.measure import Measures
from adjudge.protocols.anomaly.table import ScoreTable
from adjudge.protocols.anomaly.words import TEST
from adjudge.stats import bootstrap

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_GRID = (0.0, *(k / 200 for k in range(1, 21)), *(k / 20 for k in range(3, 21)))
_POINTS = 600
_BLUE, _RED, _GREY = "#2b6cb0", "#c53030", "#a0aec0"


def charts(
    measures: Measures,
    per_attack: Sequence[dict[str, Any]],
    worst: str | None,
    *,
    seed: int,
    resamples: int,
    watermark: str | None,
    model: str | None = None,
) -> list[dict[str, Any]]:
    """All charts for which there are numbers; of several detectors, each chart names its own."""
    table, decisions = measures.table, measures.decisions
    specs = [
        ("roc", _roc(measures, seed, min(resamples, 500))),
        ("recall_by_magnitude", _recall(per_attack)),
        ("latency", _latency(table, decisions)),
        ("worst_attack", _timeline(table, decisions, worst, measures.threshold)),
    ]
    found = []
    for name, spec in specs:
        if spec is None:
            continue
        title = spec.pop("title") if model is None else f"{model}: {spec.pop('title')}"
        if watermark:
            title = {"text": title, "subtitle": watermark, "subtitleColor": _RED, "subtitleFontSize": 14}
        size = {} if "facet" in spec else {"width": 420, "height": 280}
        called = name if model is None else f"{model}/{name}"
        found.append({"name": called, "spec": {"$schema": _SCHEMA, "title": title, **size, **spec}})
    return found


def _roc(measures: Measures, seed: int, resamples: int) -> dict[str, Any] | None:
    rows = measures.sorted.slice(measures.test)
    if rows.one_class:
        return None
    m = rows.m
    # Thresholds at which the pooled false positive rate passes the grid; the band is over flights at each of them.
    clean = np.flatnonzero(rows.code & 1 == 0)
    place = np.ceil((1.0 - np.array(_GRID[1:-1])) * (clean.size - 1)).astype(np.int64)
    cuts = np.unique(rows.score[clean[place]])
    edges = [0, *np.searchsorted(rows.score, cuts, side="right").tolist(), rows.score.size]
    counts = np.array(
        [np.bincount(rows.code[a:b], minlength=2 * m).reshape(m, 2) for a, b in pairwise(edges)], dtype=np.int64
    )
    ups, downs = _above(counts[:, :, 1].T), _above(counts[:, :, 0].T)
    values: list[dict[str, float | None]] = [{"fpr": 0.0, "tpr": 0.0, "low": 0.0, "high": 0.0}]
    for k in reversed(range(cuts.size + 1)):
        found = bootstrap.ratio_of_sums(
            ups[:, k], ups[:, 0], seed=seed, stream=f"roc/{k}", resamples=resamples, unit="flight"
        )
        rate = float(downs[:, k].sum() / downs[:, 0].sum())
        values.append({"fpr": rate, "tpr": found.value, "low": found.low, "high": found.high})
    x = {"field": "fpr", "type": "quantitative", "title": "False positive rate"}
    y = {"field": "tpr", "type": "quantitative", "title": "True positive rate", "scale": {"domain": [0, 1]}}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line", "color": _BLUE}, "encoding": {"x": x, "y": y}},
        {
            "data": {"values": [{"fpr": 0, "tpr": 0}, {"fpr": 1, "tpr": 1}]},
            "mark": {"type": "line", "color": _GREY, "strokeDash": [4, 4]},
            "encoding": {"x": x, "y": y},
        },
    ]
    if m > 1:
        band = {
            "mark": {"type": "area", "color": _BLUE, "opacity": 0.2},
            "encoding": {"x": x, "y": {"field": "low", "type": "quantitative", "title": ""}, "y2": {"field": "high"}},
        }
        layers.insert(0, band)
    return {"title": "ROC over test, 95 % band over flights", "data": {"values": values}, "layer": layers}


def _above(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of each flight in a cell or above it."""
    summed: NDArray[np.int64] = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
    return summed


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
    x = {"field": "magnitude", "type": "quantitative", "title": "Magnitude"}
    y = {
        "field": "recall",
        "type": "quantitative",
        "title": "Recall at the frozen threshold",
        "scale": {"domain": [0, 1]},
    }
    span = {"x": x, "y": {"field": "low", "type": "quantitative", "title": ""}, "y2": {"field": "high"}}
    # Magnitudes have the unit of the attack's own parameter, so every attack has its own axis.
    return {
        "title": "Recall against magnitude",
        "data": {"values": values},
        "facet": {"field": "attack", "type": "nominal", "title": None},
        "columns": 3,
        "spec": {
            "width": 200,
            "height": 200,
            "layer": [
                {"mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.4, "color": _BLUE}, "encoding": span},
                {"mark": {"type": "line", "point": True, "color": _BLUE}, "encoding": {"x": x, "y": y}},
                {"mark": {"type": "rule", "strokeDash": [4, 4], "color": _GREY}, "encoding": {"y": {"datum": 0.5}}},
            ],
        },
        "resolve": {"scale": {"x": "independent"}},
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
