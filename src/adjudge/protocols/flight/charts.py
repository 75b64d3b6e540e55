"""The charts of a flight run, as Vega-Lite specifications; rendering them is the report's work."""

from __future__ import annotations

from typing import Any

from adjudge.evidence.layout import Layout
from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.flight.partials import ATOM_KINDS, BINS, PLACE, Partial
from adjudge.protocols.flight.rules import FAMILIES
from adjudge.stats.estimate import Estimate

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_BUCKET_COLOURS = ("#2a9d8f", "#c0392b", "#e9c46a", "#8e6c8a", "#6c757d", "#ced4da")


def build(
    whole: Partial, estimates: dict[tuple[str, str], Estimate], layout: Layout, task: str
) -> list[dict[str, Any]]:
    """Every chart, in the order of the report."""
    return [
        _intervals(
            whole, estimates, "eligibility_rate", f"Eligible answers, task {task}", "share of samples", percent=True
        ),
        _buckets(whole),
        _violations(whole, layout),
        _intervals(whole, estimates, "total_score", "Total score of eligible answers", "points of 100", percent=False),
        _errors(whole),
    ]


def _spec(name: str, title: str, description: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "spec": {"$schema": _SCHEMA, "title": title, "description": description, **body}}


def _intervals(
    whole: Partial, estimates: dict[tuple[str, str], Estimate], metric: str, title: str, axis: str, *, percent: bool
) -> dict[str, Any]:
    rows = []
    for model in whole.models:
        estimate = estimates.get((model, metric))
        if estimate is not None and estimate.value is not None:
            rows.append(
                {"model": model, "value": estimate.value, "low": estimate.low, "high": estimate.high, "n": estimate.n}
            )
    scale = {"domain": [0, 1]} if percent else {"zero": False}
    x = {"type": "quantitative", "scale": scale, "title": axis, "axis": {"format": ".0%"} if percent else {}}
    y = {"field": "model", "type": "nominal", "sort": list(whole.models), "title": None}
    return _spec(
        metric,
        title,
        f"{title} by model, with 95 % intervals.",
        {
            "width": 460,
            "height": {"step": 34},
            "data": {"values": rows},
            "encoding": {"y": y},
            "layer": [
                {
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 90},
                    "encoding": {
                        "x": {**x, "field": "value"},
                        "tooltip": [{"field": key} for key in ("model", "value", "low", "high", "n")],
                    },
                },
            ],
        },
    )


def _buckets(whole: Partial) -> dict[str, Any]:
    rows = [
        {
            "model": model,
            "bucket": name,
            "order": order,
            "samples": int(whole.sums[index, :, PLACE[f"bucket.{name}"]].sum()),
        }
        for index, model in enumerate(whole.models)
        for order, name in enumerate(BUCKETS)
    ]
    return _spec(
        "buckets",
        "Where the samples ended",
        "Samples of each model by bucket; the bars add up to all samples.",
        {
            "width": 460,
            "height": {"step": 30},
            "data": {"values": rows},
            "mark": "bar",
            "encoding": {
                "y": {"field": "model", "type": "nominal", "sort": list(whole.models), "title": None},
                "x": {"field": "samples", "type": "quantitative", "title": "samples"},
                "color": {
                    "field": "bucket",
                    "type": "nominal",
                    "sort": list(BUCKETS),
                    "scale": {"domain": list(BUCKETS), "range": list(_BUCKET_COLOURS)},
                },
                "order": {"field": "order"},
                "tooltip": [{"field": key} for key in ("model", "bucket", "samples")],
            },
        },
    )


def _violations(whole: Partial, layout: Layout) -> dict[str, Any]:
    rows = []
    for index, model in enumerate(whole.models):
        samples = whole.sums[index, :, PLACE["n"]].sum()
        for family in FAMILIES:
            kinds = whole.atoms[index][layout.positions_of(family)].sum(axis=0)
            rows += [
                {
                    "model": model,
                    "family": family.replace("_", " "),
                    "severity": kind.upper(),
                    "rate": float(kinds[ATOM_KINDS.index(kind)] / samples) if samples else None,
                }
                for kind in ("warning", "critical")
            ]
    return _spec(
        "violations",
        "Failed checks by family",
        "Failed atoms per sample, by verifier family and severity.",
        {
            "width": 150,
            "height": {"step": 22},
            "columns": 3,
            "data": {"values": rows},
            "facet": {"field": "family", "type": "nominal", "title": None, "columns": 3},
            "spec": {
                "width": 150,
                "height": {"step": 20},
                "mark": "bar",
                "encoding": {
                    "y": {"field": "model", "type": "nominal", "sort": list(whole.models), "title": None},
                    "x": {"field": "rate", "type": "quantitative", "title": "failed atoms a sample"},
                    "color": {
                        "field": "severity",
                        "type": "nominal",
                        "scale": {"domain": ["WARNING", "CRITICAL"], "range": ["#e9a23b", "#c0392b"]},
                    },
                },
            },
            "resolve": {"scale": {"x": "independent"}},
        },
    )


def _errors(whole: Partial) -> dict[str, Any]:
    position = 2
    step = BINS // 50
    rows = []
    for index, model in enumerate(whole.models):
        counts = whole.histogram[index, position, :, 0]
        merged = counts[:BINS].reshape(50, step).sum(axis=1)
        merged[-1] += counts[BINS]
        total = merged.sum()
        rows += [
            {"model": model, "score": 2 * k + 1, "share": float(count / total)}
            for k, count in enumerate(merged)
            if total and count
        ]
    return _spec(
        "error_scores",
        "Conditional error score of eligible answers",
        "Distribution of the error score E, in steps of two points.",
        {
            "width": 460,
            "height": 60,
            "data": {"values": rows},
            "mark": {"type": "bar", "size": 8},
            "encoding": {
                "x": {
                    "field": "score",
                    "type": "quantitative",
                    "scale": {"domain": [0, 100]},
                    "title": "E, points of 100",
                },
                "y": {
                    "field": "share",
                    "type": "quantitative",
                    "title": "share",
                    "axis": {"format": ".0%", "tickCount": 3},
                },
                "row": {
                    "field": "model",
                    "type": "nominal",
                    "title": None,
                    "sort": list(whole.models),
                    "header": {"labelAngle": 0, "labelAlign": "left"},
                },
            },
        },
    )
