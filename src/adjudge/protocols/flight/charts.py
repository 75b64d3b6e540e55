"""The charts of a flight run, as Vega-Lite specifications; rendering them is the report's work."""

from __future__ import annotations

from typing import Any

from adjudge.evidence.layout import Layout
from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.common.charts import Spec, chart, intervals, tooltip
from adjudge.protocols.flight.partials import ATOM_KINDS, BINS, PLACE, SCORES, Partial
from adjudge.protocols.flight.rules import FAMILIES
from adjudge.stats.estimate import Estimate

_BUCKET_COLOURS = ("#2a9d8f", "#c0392b", "#e9c46a", "#8e6c8a", "#6c757d", "#ced4da")
_WIDTH, _BARS = 460, 50

Estimates = dict[tuple[str, str], Estimate]


def build(whole: Partial, estimates: Estimates, layout: Layout, task: str) -> list[Spec]:
    """Every chart, in the order of the report."""
    share = {"scale": {"domain": [0, 1]}, "axis": {"format": ".0%"}, "title": "share of samples"}
    points = {"scale": {"zero": False}, "title": "points of 100"}
    return [
        _estimates(whole, estimates, "eligibility_rate", f"Eligible answers, task {task}", share),
        _buckets(whole),
        _violations(whole, layout),
        _estimates(whole, estimates, "total_score", "Total score of eligible answers", points),
        _errors(whole),
    ]


def _by_model(whole: Partial) -> Spec:
    return {"field": "model", "type": "nominal", "sort": list(whole.models), "title": None}


def _estimates(whole: Partial, estimates: Estimates, metric: str, title: str, axis: Spec) -> Spec:
    rows = [
        {"model": model, "value": found.value, "low": found.low, "high": found.high, "n": found.n}
        for model in whole.models
        if (found := estimates.get((model, metric))) is not None and found.value is not None
    ]
    return chart(
        metric,
        title,
        description=f"{title} by model, with 95 % intervals.",
        width=_WIDTH,
        height={"step": 34},
        data={"values": rows},
        encoding={"y": _by_model(whole)},
        layer=intervals(
            {"type": "quantitative", **axis}, "value", "#4c78a8", tooltip=tooltip("model", "value", "low", "high", "n")
        ),
    )


def _buckets(whole: Partial) -> Spec:
    rows = [
        {"model": model, "bucket": name, "order": order, "samples": int(whole.sums[index, :, PLACE[f"bucket.{name}"]].sum())}
        for index, model in enumerate(whole.models)
        for order, name in enumerate(BUCKETS)
    ]  # fmt: skip
    colours = {"domain": list(BUCKETS), "range": list(_BUCKET_COLOURS)}
    return chart(
        "buckets",
        "Where the samples ended",
        description="Samples of each model by bucket; the bars add up to all samples.",
        width=_WIDTH,
        height={"step": 30},
        data={"values": rows},
        mark="bar",
        encoding={
            "y": _by_model(whole),
            "x": {"field": "samples", "type": "quantitative", "title": "samples"},
            "color": {"field": "bucket", "type": "nominal", "sort": list(BUCKETS), "scale": colours},
            "order": {"field": "order"},
            "tooltip": tooltip("model", "bucket", "samples"),
        },
    )


def _violations(whole: Partial, layout: Layout) -> Spec:
    rows: list[dict[str, Any]] = []
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
    colours = {"domain": ["WARNING", "CRITICAL"], "range": ["#e9a23b", "#c0392b"]}
    return chart(
        "violations",
        "Failed checks by family",
        description="Failed atoms per sample, by verifier family and severity.",
        data={"values": rows},
        columns=3,
        facet={"field": "family", "type": "nominal", "title": None},
        spec={
            "width": 150,
            "height": {"step": 20},
            "mark": "bar",
            "encoding": {
                "y": _by_model(whole),
                "x": {"field": "rate", "type": "quantitative", "title": "failed atoms a sample"},
                "color": {"field": "severity", "type": "nominal", "scale": colours},
            },
        },
    )


def _errors(whole: Partial) -> Spec:
    rows = []
    for index, model in enumerate(whole.models):
        counts = whole.histogram[index, SCORES.index("error"), :, 0]
        merged = counts[:BINS].reshape(_BARS, -1).sum(axis=1)
        merged[-1] += counts[BINS]
        total = merged.sum()
        rows += [
            {"model": model, "score": (bar + 0.5) * 100 / _BARS, "share": float(count / total)}
            for bar, count in enumerate(merged)
            if total and count
        ]
    header = {"labelAngle": 0, "labelAlign": "left"}
    return chart(
        "error_scores",
        "Conditional error score of eligible answers",
        description="Distribution of the error score E, in steps of two points.",
        width=_WIDTH,
        height=60,
        data={"values": rows},
        mark={"type": "bar", "size": 8},
        encoding={
            "x": {"field": "score", "type": "quantitative", "scale": {"domain": [0, 100]}, "title": "E, points of 100"},
            "y": {
                "field": "share",
                "type": "quantitative",
                "title": "share",
                "axis": {"format": ".0%", "tickCount": 3},
            },
            "row": {**_by_model(whole), "header": header},
        },
    )
