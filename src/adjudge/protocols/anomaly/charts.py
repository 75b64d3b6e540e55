"""Charts of an anomaly run: ROC with its band, recall against magnitude, latency, the timeline of the worst attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.anomaly.batch import ScoreTable
from adjudge.protocols.anomaly.judge import Decisions
from adjudge.protocols.anomaly.metrics import Measures
from adjudge.protocols.anomaly.words import TEST
from adjudge.protocols.common.charts import Spec, chart, layer, number, words
from adjudge.stats.resampling import weights
from adjudge.stats.sequences import runs

_GRID = (
    *(0.0, 0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08),
    *(0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
)
_POINTS = 600
_BLUE, _RED, _GREY = "#2b6cb0", "#c53030", "#a0aec0"


class Drawing(NamedTuple):
    """What the charts show beside the measures.

    `point` is (FPR, recall) at the frozen threshold; `sizes` names the parameter that is an attack's magnitude; `model`
    is the detector's name where there are several.
    """

    point: tuple[float | None, float | None]
    sizes: Mapping[str, str]
    worst: str | None
    n_consecutive: int
    watermark: str | None
    model: str | None


def charts(measures: Measures, per_attack: Sequence[dict[str, Any]], drawing: Drawing) -> list[Spec]:
    """All charts for which there are numbers."""
    table, decisions = measures.table, measures.decisions
    point, sizes, worst, n_consecutive, watermark, model = drawing
    specs = [
        ("roc", _roc(measures, point, n_consecutive)),
        ("recall_by_magnitude", _recall(per_attack, sizes)),
        ("latency", _latency(table, decisions)),
        ("worst_attack", _timeline(table, decisions, worst, measures.threshold, n_consecutive)),
    ]
    drawn = []
    for name, spec in specs:
        if spec is None:
            continue
        text, under = spec.pop("title"), spec.pop("subtitle", None)
        title: dict[str, Any] = {"text": text if model is None else f"{model}: {text}", "anchor": "start"}
        if under:
            title |= {"subtitle": under}
        if watermark:
            title |= {"subtitle": watermark, "subtitleColor": _RED, "subtitleFontSize": 14}
        size = {} if "facet" in spec else {"width": 420, "height": 280}
        drawn.append(chart(name if model is None else f"{model}/{name}", title, **size, **spec))
    return drawn


def _share(field: str, title: str) -> Spec:
    """An axis of shares from 0 to 1."""
    return number(field, title=title, scale={"domain": [0, 1]}, axis={"format": "~p"})


def _roc(measures: Measures, point: tuple[float | None, float | None], n_consecutive: int) -> Spec | None:
    rows = measures.sorted.whole
    if rows.one_class:
        return None
    m, curve = rows.m, measures.sorted.curve
    # At each rate of the grid the largest recall whose rate stays within it, over all flights and in each resample.
    drawn = next(weights(m, min(measures.options["resamples"], 500), measures.options["seed"], "roc"))
    values: list[dict[str, float]] = []
    for rate in _GRID:
        row = {"fpr": rate, "tpr": float(curve.recall_at(np.ones((1, m)), rate)[0]), "chance": rate}
        low, high = np.nanquantile(curve.recall_at(drawn, rate), (0.025, 0.975))
        values.append(row | {"low": float(low), "high": float(high)})
    ticks = [0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1]
    x = number(
        "fpr",
        title="False positive rate (square-root scale)",
        scale={"type": "sqrt", "domain": [0, 1]},
        axis={"values": ticks, "format": "~p"},
    )
    y = _share("tpr", "True positive rate")
    layers = [
        layer("line", {"x": x, "y": y}, color=_BLUE),
        layer("line", {"x": x, "y": {**y, "field": "chance"}}, color=_GREY, strokeDash=[4, 4]),
    ]
    if m > 1:
        span = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        layers.insert(0, layer("area", span, color=_BLUE, opacity=0.2))
    under = ["Line: all flights. Band: 95 % of resampled flights." if m > 1 else "One flight: no band."]
    if None not in point:
        frozen = [{"fpr": point[0], "tpr": point[1]}]
        layers.append(layer("point", {"x": x, "y": y}, data=frozen, filled=True, size=70, color=_RED))
        under.append(f"Red: the frozen threshold with {n_consecutive} exceedances in a row.")
    return {"title": "ROC over test", "subtitle": under, "data": {"values": values}, "layer": layers}


def _recall(per_attack: Sequence[dict[str, Any]], sizes: Mapping[str, str]) -> Spec | None:
    values = [
        {
            "attack": f"{row['attack']} ({sizes[row['attack']]})" if row["attack"] in sizes else row["attack"],
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
    x = number("magnitude", title="Magnitude")
    y = _share("recall", "Recall at the frozen threshold")
    span = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    levels = [
        layer("rule", {"y": {"datum": level, "type": "quantitative"}}, strokeDash=[4, 4], color=_GREY)
        for level in (0.5, 0.9)
    ]
    # Magnitudes have the unit of the attack's own parameter, so every attack has its own axis.
    return {
        "title": "Recall against magnitude",
        "subtitle": "Bars: 95 % intervals over flights. Dashed: 50 % and 90 %.",
        "data": {"values": values},
        "facet": words("attack", title=None, header={"labelFontSize": 12}),
        "columns": 3,
        "spec": {
            "width": 200,
            "height": 200,
            "layer": [
                *levels,
                layer("rule", span, strokeWidth=5, opacity=0.35, color=_BLUE),
                layer("line", {"x": x, "y": y}, point={"color": _BLUE, "size": 45}, color=_BLUE),
            ],
        },
        "resolve": {"scale": {"x": "independent"}},
    }


def _latency(table: ScoreTable, decisions: Decisions) -> Spec | None:
    test = set(table.of_split(TEST))
    windows = [window for window in zip(*decisions.stretches, strict=True) if window[0] in test]
    values = [
        {"latency": float(latency) / 1000.0, "attack": table.sequences[index].attack}
        for index, detected, latency in windows
        if detected
    ]
    missed = len(windows) - len(values)
    if not values:
        return None
    return {
        "title": f"Latency of {len(values)} detected attacks",
        "subtitle": f"{missed} missed, not shown" if missed else "none missed",
        "data": {"values": values},
        "mark": "bar",
        "encoding": {
            "x": number("latency", bin={"maxbins": 30}, title="Seconds from attack start to alarm"),
            "y": {"aggregate": "count", "type": "quantitative", "title": "Attacks"},
            "color": words("attack", title="Attack"),
        },
    }


def _timeline(
    table: ScoreTable, decisions: Decisions, worst: str | None, threshold: float | None, n_consecutive: int
) -> Spec | None:
    chosen = [
        index for index in table.of_split(TEST) if table.sequences[index].attack == worst and decisions.attacked[index]
    ]
    if worst is None or not chosen:
        return None
    index = min(chosen, key=lambda i: (decisions.tp[i] / (decisions.tp[i] + decisions.fn[i]), i))
    item, rows = table.sequences[index], table.rows(index)
    time, score, label = table.time[rows] - table.time[rows][0], table.score[rows], table.attacked[rows]
    step = -(-score.size // _POINTS)
    # The largest score of each stretch is shown, so that no peak is lost.
    values = [
        {"t": float(time[start]), "score": float(score[start : start + step].max())}
        for start in range(0, score.size, step)
    ]
    x = {"type": "quantitative", "title": "Seconds"}
    y = number("score", title="Score")
    stretch = {"x": {"field": "from", **x}, "x2": {"field": "to"}}
    layers = [
        layer("rect", stretch, data=_stretches(time, label), color=_RED, opacity=0.12),
        layer("line", {"x": {"field": "t", **x}, "y": y}, data=values, color=_BLUE, strokeWidth=1),
    ]
    under = ["Shaded: attacked."]
    if threshold is not None:
        starts = np.zeros(score.size, dtype=bool)
        starts[0] = True
        alarms = _stretches(time, runs(score > threshold, starts, n_consecutive))
        layers += [
            layer("rule", {"y": y}, data=[{"score": threshold}], color=_RED, strokeDash=[4, 4]),
            layer("rule", {**stretch, "y": {"value": "height"}}, data=alarms, color=_RED, strokeWidth=5),
        ]
        under.append(f"Dashed: the frozen threshold. Red at the foot: alarm, {n_consecutive} exceedances in a row.")
    size = "" if item.magnitude is None else f" of size {item.magnitude:g}"
    recall = decisions.tp[index] / (decisions.tp[index] + decisions.fn[index])
    title = f"Worst attack: {item.attack}{size} on flight {item.flight}, recall {recall:.0%}"
    return {"title": title, "subtitle": under, "layer": layers}


def _stretches(time: NDArray[np.float64], on: NDArray[np.bool_]) -> list[dict[str, float]]:
    """From when to when something is on."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(np.int8)))
    last = time.size - 1
    return [
        {"from": float(time[a]), "to": float(time[min(b, last)])} for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
