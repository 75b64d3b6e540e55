"""The charts of a triage run, as Vega-Lite specifications; rendering them is the report's work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.protocols.common.plan import Spec, chart, filled
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
from adjudge.protocols.triage.latency import WHOLE, in_words, times_by_cache
from adjudge.runs.names import short_names

_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#8B4513")
_NAME = 36
_CACHE = {"hit": "#E69F00", "miss": "#0072B2", "unknown": "#777777"}
_SHOWN = "Median (dot), 90th (diamond), 95th (square) and 99th percentile (cross)"


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


def _panels(name: str, title: str, text: str, panels: Sequence[Spec]) -> Spec | None:
    """Several small charts side by side, if there are any."""
    return chart(__package__, "panels", name, title=title, text=text, panels=panels) if panels else None


def _confusion(whole: Partial, config: TriageConfig, names: Mapping[str, str]) -> Spec | None:
    positive, negative = config.classes()
    answers = {
        positive: (POSITIVE,),
        negative: (NEGATIVE,),
        "uncertain": (ABSTAINED,),
        "no answer": (ERRORED, UNPARSED, MISSING),
    }
    panels = []
    for name in sorted(whole.configurations):
        counts = whole.blocks[name, "", ""].total()
        rows: list[Spec] = []
        for label, start in ((positive, 0), (negative, ANSWERS)):
            total = int(counts[start : start + ANSWERS].sum())
            shown = {"configuration": names[name], "label": f"{label} (n = {total:,})"}
            for answer, codes in answers.items():
                count = int(counts[[start + code for code in codes]].sum())
                rows.append({**shown, "answer": answer, "count": count, "share": count / total if total else None})
        panels.append(filled(__package__, "confusion_panel", title=names[name], rows=rows, answers=list(answers)))
    text = "Counts over all trials and their share of the label; no answer: errors, unparsed and missing records."
    return _panels("confusion", "Three-way confusion", text, panels)


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
            most = max(row["n"] for row in rows)
            title = f"{name} (n = {sum(row['n'] for row in rows):,})"
            style = {"highest": most * 1.25, "format": "," if most < 10_000 else ".2~s"}
            panels.append(filled(__package__, "reliability_panel", title=title, rows=rows, **style))
    text = (
        "Accuracy of the answered by confidence bin, 95 % intervals; the diagonal is perfect calibration. "
        "Below: answers in each bin."
    )
    return _panels("reliability", "Reliability: is a confidence kept?", text, panels)


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
    colours = [_PALETTE[index % len(_PALETTE)] for index in range(len(names))]
    return chart(__package__, "risk_coverage", rows=rows, names=names, colours=colours)


def _scores(whole: Partial, config: TriageConfig, names: Mapping[str, str]) -> Spec | None:
    positive, negative = config.classes()
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
            title = f"{names[name]} (n = {n:,})"
            words = {"positive": positive, "negative": negative}
            panels.append(filled(__package__, "scores_panel", title=title, rows=rows, **words))
    text = f"The confidence of answers {positive}, one minus the confidence of answers {negative}; abstentions have no score."
    return _panels("scores", "Scores by class", text, panels)


def _latency(configurations: Mapping[str, Any]) -> Spec | None:
    """The total time of each configuration, apart by cache state."""
    rows = []
    for name, state, times in times_by_cache(configurations):
        total = next((times[part] for part in WHOLE if times[part]["n"]), None)
        if total is not None:
            rows.append({"group": f"{name}, cache {state} (n = {total['n']:,})", "cache": state, **total})
    title, axis = "Latency by cache state", "total time, seconds (log scale)"
    return _quantiles(rows, "latency", title, f"{_SHOWN} of the total time.", axis)


def _components(configurations: Mapping[str, Any]) -> Spec | None:
    """The time of each component of each configuration; a cache has none."""
    rows = []
    for name, state, times in times_by_cache(configurations):
        for part in COMPONENTS:
            if state != "hit" and part not in WHOLE and times[part]["n"]:
                group = f"{name}, {in_words(part)} (n = {times[part]['n']:,})"
                rows.append({"group": group, "cache": state, **times[part]})
    title, axis = "Latency by component", "time, seconds (log scale)"
    return _quantiles(rows, "latency_components", title, f"{_SHOWN}; no cache hits.", axis)


def _quantiles(rows: Sequence[Spec], name: str, title: str, description: str, axis: str) -> Spec | None:
    if not rows or any(row["p50"] <= 0 for row in rows):
        return None
    keys = ("group", "cache", "p50", "p90", "p95", "p99", "mean")
    states = [state for state in _CACHE if any(row["cache"] == state for row in rows)]
    return chart(
        __package__,
        "quantiles",
        name,
        title=title,
        text=description,
        axis=axis,
        states=states,
        rows=[{key: row[key] for key in keys} for row in rows],
        groups=[row["group"] for row in rows],
        colours=[_CACHE[state] for state in states],
    )
