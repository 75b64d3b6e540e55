"""The charts of a triage run, as Vega-Lite specifications; rendering them is the report's work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adjudge.protocols.common.charts import Spec, chart, layer, number, tooltip, words
from adjudge.protocols.triage.batch import (
    ABSTAINED,
    ANSWERS,
    COMPONENTS,
    ERRORED,
    MISSING,
    NEGATIVE,
    POSITIVE,
    UNPARSED,
)
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.counts import SCORE_BINS, Partial
from adjudge.runs.names import short_names

_POSITIVE, _NEGATIVE = "#D55E00", "#0072B2"
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#8B4513")
_COLUMNS, _NAME = 2, 36
_SHARE = {"scale": {"domain": [0, 1]}}
_CACHE = {"hit": "#E69F00", "miss": "#0072B2", "unknown": "#777777"}
_WHOLE = ("total_seconds", "latency_seconds")
_QUANTILES = (("p50", "circle", 90), ("p90", "diamond", 55), ("p95", "square", 45), ("p99", "cross", 55))
_SHOWN = "Median (dot), 90th (diamond), 95th (square) and 99th percentile (cross)"
_ON_DARK = {"condition": {"test": "datum.share > 0.55", "value": "white"}, "value": "#222222"}


def build(whole: Partial, configurations: Mapping[str, Any], config: TriageConfig) -> list[Spec]:
    """Every chart that has something to show, in the order of the report."""
    names = short_names(sorted(configurations), _NAME)
    configurations = {names[name]: configurations[name] for name in sorted(configurations)}
    specs = (
        _confusion(whole, config, names),
        _reliability(configurations),
        _risk_coverage(configurations),
        _scores(whole, config, names),
        _latency(configurations),
        _components(configurations),
    )
    return [spec for spec in specs if spec is not None]


def _spec(name: str, title: str, description: str, **body: Any) -> Spec:
    """The frame that every chart shares."""
    return chart(
        name,
        {"text": title, "subtitle": description, "anchor": "start", "offset": 14},
        description=f"{title}. {description}",
        config={"view": {"stroke": "#bbbbbb"}, "axis": {"labelOverlap": True}},
        **body,
    )


def _panel(title: str, rows: Sequence[Spec], **body: Any) -> Spec:
    """One of several small charts, with a title and rows of its own."""
    return {"title": {"text": title, "fontSize": 12, "anchor": "middle"}, "data": {"values": rows}, **body}


def _number(**more: Any) -> Spec:
    return {"type": "quantitative", **more}


def _confusion(whole: Partial, config: TriageConfig, names: Mapping[str, str]) -> Spec | None:
    positive, negative = config.classes()
    answers = {
        positive: (POSITIVE,),
        negative: (NEGATIVE,),
        "uncertain": (ABSTAINED,),
        "no answer": (ERRORED, UNPARSED, MISSING),
    }
    x = words("answer", sort=list(answers), title="answer", axis={"labelAngle": 0, "orient": "top"})
    y = words("label", sort=None, title="label")
    colour = _number(
        field="share", scale={"domain": [0, 1], "scheme": "blues"}, legend={"title": "share of label", "format": ".0%"}
    )
    layers = [
        layer("rect", {"color": colour}, stroke="white"),
        layer("text", {"text": {"field": "count", "format": ","}, "color": _ON_DARK}, dy=-6, fontSize=13),
        layer("text", {"text": {"field": "share", "format": ".1%"}, "color": _ON_DARK}, dy=9, fontSize=10),
    ]
    panels = []
    for name in sorted(whole.configurations):
        counts = np.sum(list(whole.blocks[name, "", ""].counts.values()), axis=0)
        rows: list[Spec] = []
        for label, start in ((positive, 0), (negative, ANSWERS)):
            total = int(counts[start : start + ANSWERS].sum())
            shown = {"configuration": names[name], "label": f"{label} (n = {total:,})"}
            for answer, codes in answers.items():
                count = int(counts[[start + code for code in codes]].sum())
                rows.append({**shown, "answer": answer, "count": count, "share": count / total if total else None})
        panels.append(_panel(names[name], rows, width=280, height=84, encoding={"x": x, "y": y}, layer=layers))
    if not panels:
        return None
    return _spec(
        "confusion",
        "Three-way confusion",
        "Counts over all trials and their share of the label; no answer: errors, unparsed and missing records.",
        columns=_COLUMNS,
        concat=panels,
    )


def _reliability(configurations: Mapping[str, Any]) -> Spec | None:
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
    return _spec(
        "reliability",
        "Reliability: is a confidence kept?",
        "Accuracy of the answered by confidence bin, 95 % intervals; the diagonal is perfect calibration. Below: answers in each bin.",
        columns=_COLUMNS,
        concat=panels,
    )


def _reliability_panel(name: str, rows: Sequence[Spec]) -> Spec:
    x, y = _number(**_SHARE, title="mean confidence"), _number(**_SHARE, title="accuracy")
    at_confidence = {**x, "field": "confidence"}
    shown = tooltip("low", "high", "n", "confidence", "accuracy")
    above = {
        "width": 260,
        "height": 260,
        "layer": [
            layer(
                "line",
                {"x": {**x, "field": "at"}, "y": {**y, "field": "at"}},
                data=[{"at": 0}, {"at": 1}],
                strokeDash=[5, 4],
                color="#888888",
            ),
            layer(
                "rule",
                {"x": at_confidence, "y": {**y, "field": "from"}, "y2": {"field": "to"}},
                strokeWidth=1.6,
                color=_NEGATIVE,
            ),
            layer(
                "point",
                {"x": at_confidence, "y": {**y, "field": "accuracy"}, "tooltip": shown},
                filled=True,
                size=60,
                color=_NEGATIVE,
                opacity=1,
            ),
        ],
    }
    most = max(row["n"] for row in rows)
    x = {**x, "title": "confidence"}
    height = _number(field="n", title="answers", scale={"domain": [0, most * 1.25]})
    bars = {"x": {**x, "field": "low"}, "x2": {"field": "high"}}
    tall = {"y": {**height, "axis": {"tickCount": 3, "format": "~s"}}, "y2": {"datum": 0}}
    counts = {"field": "n", "format": "," if most < 10_000 else ".2~s"}
    below = {
        "width": 260,
        "height": 70,
        "layer": [
            layer("bar", {**bars, **tall}, color="#9ec1dc", stroke="white"),
            {
                "transform": [{"calculate": "(datum.low + datum.high) / 2", "as": "middle"}],
                **layer("text", {"x": {**x, "field": "middle"}, "y": height, "text": counts}, dy=-6, fontSize=9),
            },
        ],
    }
    total = sum(row["n"] for row in rows)
    return _panel(f"{name} (n = {total:,})", rows, vconcat=[above, below], spacing=8)


def _risk_coverage(configurations: Mapping[str, Any]) -> Spec | None:
    rows = []
    names = []
    for name, block in configurations.items():
        points = block["risk_coverage"]
        if not points:
            continue
        names.append(f"{name} (n = {points[-1]['answered']:,})")
        rows += [
            {
                "configuration": names[-1],
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
    colour = words(
        "configuration",
        sort=names,
        scale={"domain": names, "range": [_PALETTE[index % len(_PALETTE)] for index in range(len(names))]},
        legend={"title": None, "orient": "bottom", "columns": _COLUMNS, "labelLimit": 320, "symbolOpacity": 1},
    )
    percent = {"axis": {"format": ".0%"}}
    x = {
        "field": "coverage",
        **_number(**_SHARE, **percent, title="share of the answered that is kept, most confident first"),
    }
    band = {"y": {"field": "low", **_number(title="error among the kept", **percent)}, "y2": {"field": "high"}}
    shown = tooltip("configuration", "threshold", "coverage", "risk")
    line = {"y": number("risk"), "tooltip": shown}
    return _spec(
        "risk_coverage",
        "Risk and coverage",
        "Error among the answers kept at a confidence threshold; bands are pointwise 95 % intervals.",
        width=520,
        height=300,
        data={"values": rows},
        encoding={"x": x, "color": colour},
        layer=[
            layer("area", band, opacity=0.14, interpolate="linear"),
            layer("line", line, strokeWidth=1.8, point={"size": 14}),
        ],
    )


def _scores(whole: Partial, config: TriageConfig, names: Mapping[str, str]) -> Spec | None:
    positive, negative = config.classes()
    encoding = {
        "x": {"field": "from", **_number(**_SHARE, title=f"score for {positive}")},
        "x2": {"field": "to"},
        "y": {
            "field": "share",
            **_number(
                stack=None,
                scale={"domainMin": 0},
                title="share of the label's answers",
                axis={"format": ".0%", "tickCount": 4},
            ),
        },
        "y2": {"datum": 0},
        "color": words(
            "label", scale={"domain": [positive, negative], "range": [_POSITIVE, _NEGATIVE]}, legend={"title": "label"}
        ),
        "tooltip": tooltip("label", "from", "to", "count", "share"),
    }
    bars = layer("bar", encoding, opacity=0.55, binSpacing=0)
    panels = []
    for name in sorted(whole.configurations):
        histogram = whole.configurations[name].histogram
        rows = []
        for label, word in ((POSITIVE, positive), (NEGATIVE, negative)):
            # Confidence c in the positive class is the score c; in the negative class it is 1 − c.
            counts = histogram[label, POSITIVE] + histogram[label, NEGATIVE][::-1]
            total = int(counts.sum())
            for place, count in enumerate(counts.tolist() if total else ()):
                edges = {"from": place / SCORE_BINS, "to": (place + 1) / SCORE_BINS}
                rows.append({"label": word, **edges, "share": count / total, "count": count})
        if rows:
            n = int(histogram[:, :ABSTAINED].sum())
            panels.append(_panel(f"{names[name]} (n = {n:,})", rows, width=260, height=130, **bars))
    if not panels:
        return None
    return _spec(
        "scores",
        "Scores by class",
        f"The confidence of answers {positive}, one minus the confidence of answers {negative}; abstentions have no score.",
        columns=_COLUMNS,
        concat=panels,
    )


def _times(configurations: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Configuration, cache state, and the times by component."""
    for name, block in configurations.items():
        for state, times in block["latency"]["by_cache"].items():
            yield name, state, times


def _latency(configurations: Mapping[str, Any]) -> Spec | None:
    """The total time of each configuration, apart by cache state."""
    rows = []
    for name, state, times in _times(configurations):
        total = times["total_seconds"] if times["total_seconds"]["n"] else times["latency_seconds"]
        if total["n"]:
            rows.append({"group": f"{name}, cache {state} (n = {total['n']:,})", "cache": state, **total})
    title, axis = "Latency by cache state", "total time, seconds (log scale)"
    return _quantiles(rows, "latency", title, f"{_SHOWN} of the total time.", axis)


def _components(configurations: Mapping[str, Any]) -> Spec | None:
    """The time of each component of each configuration; a cache has none."""
    rows = []
    for name, state, times in _times(configurations):
        for part in COMPONENTS:
            if state != "hit" and part not in _WHOLE and times[part]["n"]:
                what = part.removesuffix("_seconds").replace("_", " ")
                group = f"{name}, {what} (n = {times[part]['n']:,})"
                rows.append({"group": group, "cache": state, **times[part]})
    title, axis = "Latency by component", "time, seconds (log scale)"
    return _quantiles(rows, "latency_components", title, f"{_SHOWN}; no cache hits.", axis)


def _quantiles(rows: Sequence[Spec], name: str, title: str, description: str, axis: str) -> Spec | None:
    if not rows or any(row["p50"] <= 0 for row in rows):
        return None
    keys = ("group", "cache", "p50", "p90", "p95", "p99", "mean")
    states = [state for state in _CACHE if any(row["cache"] == state for row in rows)]
    scale = {"type": "log", "nice": True}
    x = _number(scale=scale, axis={"tickCount": 6, "format": "~g"}, title=axis)
    order = [row["group"] for row in rows]
    colour = words(
        "cache",
        scale={"domain": states, "range": [_CACHE[state] for state in states]},
        legend={"title": "cache", "symbolOpacity": 1},
    )
    points = [
        layer("point", {"x": {**x, "field": key}}, filled=shape == "circle", shape=shape, size=size, opacity=1)
        for key, shape, size in _QUANTILES
    ]
    return _spec(
        name,
        title,
        description,
        width=460,
        height={"step": 26},
        data={"values": [{key: row[key] for key in keys} for row in rows]},
        encoding={
            "y": words("group", sort=order, title=None, axis={"labelLimit": 360}),
            "color": colour,
        },
        layer=[layer("rule", {"x": {**x, "field": "p50"}, "x2": {"field": "p99"}}, strokeWidth=1.5), *points],
    )
