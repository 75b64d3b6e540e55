"""Charts of an anomaly run: ROC with its band, recall against magnitude, latency, the timeline of the worst attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.anomaly.judge import alarm_rows
from adjudge.protocols.anomaly.metrics import Measures
from adjudge.protocols.common.plan import Spec, chart
from adjudge.stats.resampling import weights

_GRID = (
    *(0.0, 0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08),
    *(0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
)
_POINTS = 600
_RED = "#c53030"


Point = tuple[float | None, float | None]


def charts(
    measures: Measures, top: Mapping[str, Any], point: Point, sizes: Mapping[str, str], model: str | None
) -> list[Spec]:
    """All charts for which there are numbers, of a detector whose keys of metrics.json are `top`.

    `point` is (FPR, recall) at the frozen threshold; `sizes` names the parameter that is an attack's magnitude; `model`
    is the detector's name where there are several.
    """
    n_consecutive, watermark = top["calibration"]["n_consecutive"], top.get("watermark")
    shown = {
        "roc": _roc(measures, point, n_consecutive),
        "recall_by_magnitude": _recall(top["per_attack"], sizes),
        "latency": _latency(measures),
        "worst_attack": _timeline(measures, top["worst_attack"], n_consecutive),
    }
    drawn = []
    for name, content in shown.items():
        if content is None:
            continue
        title: dict[str, Any] = {
            "text": content.title if model is None else f"{model}: {content.title}",
            "anchor": "start",
            "subtitle": content.under,
        }
        if watermark:
            title |= {"subtitle": watermark, "subtitleColor": _RED, "subtitleFontSize": 14}
        named = name if model is None else f"{model}/{name}"
        drawn.append(chart(__package__, name, named, title=title, **content.values))
    return drawn


class _Content(NamedTuple):
    """What one chart says above it, and what fills its template."""

    title: str
    under: str | list[str]
    values: dict[str, Any]


def _roc(measures: Measures, point: Point, n_consecutive: int) -> _Content | None:
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
    under = ["Line: all flights. Band: 95 % of resampled flights." if m > 1 else "One flight: no band."]
    frozen = None if None in point else [{"fpr": point[0], "tpr": point[1]}]
    if frozen:
        under.append(f"Red: the frozen threshold with {n_consecutive} exceedances in a row.")
    return _Content("ROC over test", under, {"rows": values, "band": m > 1, "frozen": frozen})


def _recall(per_attack: Sequence[dict[str, Any]], sizes: Mapping[str, str]) -> _Content | None:
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
    # Magnitudes have the unit of the attack's own parameter, so every attack has its own axis.
    under = "Bars: 95 % intervals over flights. Dashed: 50 % and 90 %."
    return _Content("Recall against magnitude", under, {"rows": values})


def _latency(measures: Measures) -> _Content | None:
    test = set(measures.test.tolist())
    windows = [window for window in zip(*measures.decisions.stretches, strict=True) if window[0] in test]
    values = [
        {"latency": float(latency) / 1000.0, "attack": measures.table.sequences[index].attack}
        for index, detected, latency in windows
        if detected
    ]
    missed = len(windows) - len(values)
    if not values:
        return None
    under = f"{missed} missed, not shown" if missed else "none missed"
    return _Content(f"Latency of {len(values)} detected attacks", under, {"rows": values})


def _timeline(measures: Measures, worst: str | None, n_consecutive: int) -> _Content | None:
    table, decisions, threshold = measures.table, measures.decisions, measures.threshold
    of_worst = [i for i in measures.test.tolist() if table.sequences[i].attack == worst and decisions.attacked[i]]
    if worst is None or not of_worst:
        return None
    recalls = {i: decisions.tp[i] / (decisions.tp[i] + decisions.fn[i]) for i in of_worst}
    index = min(recalls, key=lambda i: (recalls[i], i))
    item, rows = table.sequences[index], table.rows(index)
    time, score, label = table.time[rows] - table.time[rows][0], table.score[rows], table.attacked[rows]
    step = -(-score.size // _POINTS)
    # The largest score of each stretch is shown, so that no peak is lost.
    values = [
        {"t": float(time[start]), "score": float(score[start : start + step].max())}
        for start in range(0, score.size, step)
    ]
    under, alarms = ["Shaded: attacked."], []
    if threshold is not None:
        alarms = _stretches(time, alarm_rows(score, threshold, n_consecutive))
        under.append(f"Dashed: the frozen threshold. Red at the foot: alarm, {n_consecutive} exceedances in a row.")
    size = "" if item.magnitude is None else f" of size {item.magnitude:g}"
    title = f"Worst attack: {item.attack}{size} on flight {item.flight}, recall {recalls[index]:.0%}"
    drawn = {"attacked": _stretches(time, label), "scores": values, "alarms": alarms}
    return _Content(title, under, {**drawn, "threshold": None if threshold is None else [{"score": threshold}]})


def _stretches(time: NDArray[np.float64], on: NDArray[np.bool_]) -> list[dict[str, float]]:
    """From when to when something is on."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(np.int8)))
    ends = time[np.minimum(edges, time.size - 1)].tolist()
    return [{"from": begin, "to": end} for begin, end in zip(ends[::2], ends[1::2], strict=True)]
