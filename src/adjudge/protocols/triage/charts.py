"""The charts of a triage run, as Vega-Lite specifications; rendering them is the report's work."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjudge.protocols.triage.batch import ABSTAINED, ANSWERS, ERRORED, MISSING, NEGATIVE, POSITIVE, UNPARSED
from adjudge.protocols.triage.chart_spec import spec
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.latency_charts import components, latency
from adjudge.protocols.triage.partials import SCORE_BINS, Partial

_POSITIVE, _NEGATIVE = "#D55E00", "#0072B2"
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#8B4513")
_COLUMNS = 2


def build(whole: Partial, configurations: dict[str, Any], config: TriageConfig) -> list[dict[str, Any]]:
    """Every chart that has something to show, in the order of the report."""
    made = (
        _confusion(whole, config),
        _reliability(configurations),
        _risk_coverage(configurations),
        _scores(whole, config),
        latency(configurations),
        components(configurations),
    )
    return [chart for chart in made if chart is not None]


def _confusion(whole: Partial, config: TriageConfig) -> dict[str, Any] | None:
    positive, negative = config.classes()
    answers = {
        positive: (POSITIVE,),
        negative: (NEGATIVE,),
        "uncertain": (ABSTAINED,),
        "no answer": (ERRORED, UNPARSED, MISSING),
    }
    rows: list[dict[str, Any]] = []
    for name in sorted(whole.configurations):
        counts = np.sum(list(whole.blocks[name, "", ""].counts.values()), axis=0)
        for label, start in ((positive, 0), (negative, ANSWERS)):
            total = int(counts[start : start + ANSWERS].sum())
            for answer, codes in answers.items():
                count = int(counts[[start + code for code in codes]].sum())
                rows.append(
                    {
                        "configuration": name,
                        "label": f"{label} (n = {total:,})",
                        "answer": answer,
                        "count": count,
                        "share": count / total if total else None,
                    }
                )
    if not rows:
        return None
    x = {
        "field": "answer",
        "type": "nominal",
        "sort": list(answers),
        "title": "answer",
        "axis": {"labelAngle": 0, "orient": "top"},
    }
    y = {"field": "label", "type": "nominal", "sort": None, "title": "label"}
    panels = [
        {
            "title": {"text": name, "fontSize": 12, "anchor": "middle"},
            "data": {"values": [row for row in rows if row["configuration"] == name]},
            "width": 280,
            "height": 84,
            "encoding": {"x": x, "y": y},
            "layer": [
                {
                    "mark": {"type": "rect", "stroke": "white"},
                    "encoding": {
                        "color": {
                            "field": "share",
                            "type": "quantitative",
                            "scale": {"domain": [0, 1], "scheme": "blues"},
                            "legend": {"title": "share of label", "format": ".0%"},
                        }
                    },
                },
                {
                    "mark": {"type": "text", "dy": -6, "fontSize": 13},
                    "encoding": {"text": {"field": "count", "format": ","}, "color": _on_dark()},
                },
                {
                    "mark": {"type": "text", "dy": 9, "fontSize": 10},
                    "encoding": {"text": {"field": "share", "format": ".1%"}, "color": _on_dark()},
                },
            ],
        }
        for name in sorted(whole.configurations)
    ]
    return spec(
        "confusion",
        "Three-way confusion",
        "Counts over all trials and their share of the label; no answer: errors, unparsed and missing records.",
        {"columns": _COLUMNS, "concat": panels},
    )


def _on_dark() -> dict[str, Any]:
    return {"condition": {"test": "datum.share > 0.55", "value": "white"}, "value": "#222222"}


def _reliability(configurations: dict[str, Any]) -> dict[str, Any] | None:
    panels = []
    for name, block in configurations.items():
        rows = [
            {
                "low": row["low"],
                "high": row["high"],
                "n": row["n"],
                "confidence": row["mean_confidence"],
                "accuracy": row["accuracy"]["value"],
                "from": row["accuracy"]["low"],
                "to": row["accuracy"]["high"],
            }
            for row in block["reliability"]
            if row["n"]
        ]
        if rows:
            panels.append(_reliability_panel(name, rows))
    if not panels:
        return None
    return spec(
        "reliability",
        "Reliability: is a confidence kept?",
        "Accuracy of the answered by confidence bin, 95 % intervals; the diagonal is perfect calibration. Below: answers in each bin.",
        {"columns": _COLUMNS, "concat": panels},
    )


def _reliability_panel(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    total = sum(row["n"] for row in rows)
    x: dict[str, Any] = {"type": "quantitative", "scale": {"domain": [0, 1]}, "title": "mean confidence"}
    y = {"type": "quantitative", "scale": {"domain": [0, 1]}, "title": "accuracy"}
    above = {
        "width": 260,
        "height": 260,
        "layer": [
            {
                "data": {"values": [{"at": 0}, {"at": 1}]},
                "mark": {"type": "line", "strokeDash": [5, 4], "color": "#888888"},
                "encoding": {"x": {**x, "field": "at"}, "y": {**y, "field": "at"}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 1.6, "color": _NEGATIVE},
                "encoding": {
                    "x": {**x, "field": "confidence"},
                    "y": {**y, "field": "from"},
                    "y2": {"field": "to"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60, "color": _NEGATIVE, "opacity": 1},
                "encoding": {
                    "x": {**x, "field": "confidence"},
                    "y": {**y, "field": "accuracy"},
                    "tooltip": [{"field": key} for key in ("low", "high", "n", "confidence", "accuracy")],
                },
            },
        ],
    }
    most = max(row["n"] for row in rows)
    x["title"] = "confidence"
    bars = {"x": {**x, "field": "low"}, "x2": {"field": "high"}}
    height = {"field": "n", "type": "quantitative", "title": "answers", "scale": {"domain": [0, most * 1.25]}}
    below = {
        "width": 260,
        "height": 70,
        "layer": [
            {
                "mark": {"type": "bar", "color": "#9ec1dc", "stroke": "white"},
                "encoding": {**bars, "y": {**height, "axis": {"tickCount": 3, "format": "~s"}}, "y2": {"datum": 0}},
            },
            {
                "transform": [{"calculate": "(datum.low + datum.high) / 2", "as": "middle"}],
                "mark": {"type": "text", "dy": -6, "fontSize": 9},
                "encoding": {
                    "x": {**x, "field": "middle"},
                    "y": height,
                    "text": {"field": "n", "format": "," if most < 10_000 else ".2~s"},
                },
            },
        ],
    }
    return {
        "title": {"text": f"{name} (n = {total:,})", "fontSize": 12, "anchor": "middle"},
        "data": {"values": rows},
        "vconcat": [above, below],
        "spacing": 8,
    }


def _risk_coverage(configurations: dict[str, Any]) -> dict[str, Any] | None:
    rows = []
    names = []
    for name, block in configurations.items():
        points = block["risk_coverage"]
        if not points:
            continue
        shown = f"{name} (n = {points[-1]['answered']:,})"
        names.append(shown)
        rows += [
            {
                "configuration": shown,
                "coverage": point["coverage"],
                "risk": point["risk"]["value"],
                "low": point["risk"]["low"],
                "high": point["risk"]["high"],
                "threshold": point["threshold"],
            }
            for point in points
        ]
    if not rows:
        return None
    colour = {
        "field": "configuration",
        "type": "nominal",
        "sort": names,
        "scale": {"domain": names, "range": [_PALETTE[index % len(_PALETTE)] for index in range(len(names))]},
        "legend": {"title": None, "orient": "bottom", "columns": _COLUMNS, "labelLimit": 320, "symbolOpacity": 1},
    }
    x = {
        "field": "coverage",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"format": ".0%"},
        "title": "share of the answered that is kept, most confident first",
    }
    return spec(
        "risk_coverage",
        "Risk and coverage",
        "Error among the answers kept at a confidence threshold; bands are pointwise 95 % intervals.",
        {
            "width": 520,
            "height": 300,
            "data": {"values": rows},
            "encoding": {"x": x, "color": colour},
            "layer": [
                {
                    "mark": {"type": "area", "opacity": 0.14, "interpolate": "linear"},
                    "encoding": {
                        "y": {
                            "field": "low",
                            "type": "quantitative",
                            "title": "error among the kept",
                            "axis": {"format": ".0%"},
                        },
                        "y2": {"field": "high"},
                    },
                },
                {
                    "mark": {"type": "line", "strokeWidth": 1.8, "point": {"size": 14}},
                    "encoding": {
                        "y": {"field": "risk", "type": "quantitative"},
                        "tooltip": [{"field": key} for key in ("configuration", "threshold", "coverage", "risk")],
                    },
                },
            ],
        },
    )


def _scores(whole: Partial, config: TriageConfig) -> dict[str, Any] | None:
    positive, negative = config.classes()
    panels = []
    for name in sorted(whole.configurations):
        histogram = whole.configurations[name].histogram
        rows = []
        for label, word in ((POSITIVE, positive), (NEGATIVE, negative)):
            # Confidence c in the positive class is the score c; in the negative class it is 1 − c.
            counts = histogram[label, POSITIVE] + histogram[label, NEGATIVE][::-1]
            total = int(counts.sum())
            rows += [
                {
                    "label": word,
                    "from": place / SCORE_BINS,
                    "to": (place + 1) / SCORE_BINS,
                    "share": int(count) / total,
                    "count": int(count),
                }
                for place, count in enumerate(counts)
                if total
            ]
        if not rows:
            continue
        n = int(histogram[:, :ABSTAINED].sum())
        panels.append(
            {
                "title": {"text": f"{name} (n = {n:,})", "fontSize": 12, "anchor": "middle"},
                "data": {"values": rows},
                "width": 260,
                "height": 130,
                "mark": {"type": "bar", "opacity": 0.55, "binSpacing": 0},
                "encoding": {
                    "x": {
                        "field": "from",
                        "type": "quantitative",
                        "scale": {"domain": [0, 1]},
                        "title": f"score for {positive}",
                    },
                    "x2": {"field": "to"},
                    "y": {
                        "field": "share",
                        "type": "quantitative",
                        "stack": None,
                        "scale": {"domainMin": 0},
                        "title": "share of the label's answers",
                        "axis": {"format": ".0%", "tickCount": 4},
                    },
                    "y2": {"datum": 0},
                    "color": {
                        "field": "label",
                        "type": "nominal",
                        "scale": {"domain": [positive, negative], "range": [_POSITIVE, _NEGATIVE]},
                        "legend": {"title": "label"},
                    },
                    "tooltip": [{"field": key} for key in ("label", "from", "to", "count", "share")],
                },
            }
        )
    if not panels:
        return None
    return spec(
        "scores",
        "Scores by class",
        f"The confidence of answers {positive}, one minus the confidence of answers {negative}; abstentions have no score.",
        {"columns": _COLUMNS, "concat": panels},
    )
