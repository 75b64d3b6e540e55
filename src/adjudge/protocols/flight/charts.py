"""The charts of a flight run, as Vega-Lite specifications: what the page does not draw already beside its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.protocols.common.charts import Spec, chart, intervals, number, tooltip, words
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES
from adjudge.protocols.flight.partials import PLACE
from adjudge.protocols.flight.rare_atoms import ATOM_KINDS
from adjudge.protocols.flight.rules import FAMILIES

if TYPE_CHECKING:
    from adjudge.protocols.flight.finish import TaskNumbers

_WIDTH, _BARS = 460, 50
_FEW_TICKS = {"tickCount": 3}
_GRADE_COLOURS = ("#2a9d8f", "#8ab17d", "#e9c46a", "#c0392b")


def build(task: TaskNumbers) -> list[Spec]:
    """Every chart of a task, in the order of the report."""
    specs = [_violations(task), _field_errors(task), _tail_risk(task), _error_scores(task)]
    if "rubric_score" in task.models[0].estimates:
        specs.append(_rubric(task))
    return specs


def _chart(task: TaskNumbers, name: str, title: str, **body: Any) -> Spec:
    return chart(f"{name}{task.suffix.replace('/', '_')}", f"{title}, task {task.task}", **body)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _by_model(task: TaskNumbers) -> Spec:
    return words("model", sort=[numbers.model for numbers in task.detailed], title=None)


def _violations(task: TaskNumbers) -> Spec:
    rows: list[dict[str, Any]] = []
    whole = task.whole
    for index, numbers in enumerate(task.detailed):
        samples = whole.sums[index, :, PLACE["n"]].sum()
        for place, family in enumerate(FAMILIES):
            kinds = whole.atoms[index, place]
            rows += [
                {
                    "model": numbers.model,
                    "family": _words(family),
                    "severity": kind.upper(),
                    "rate": float(kinds[ATOM_KINDS.index(kind)] / samples) if samples else None,
                }
                for kind in ("warning", "critical")
            ]
    colours = {"domain": ["WARNING", "CRITICAL"], "range": ["#e9a23b", "#c0392b"]}
    return _chart(
        task,
        "violations",
        "Failed checks by family",
        description="Failed atoms per sample, by verifier family and severity; all panels share one scale.",
        data={"values": rows},
        columns=3,
        facet=words("family", title=None, sort=[_words(name) for name in FAMILIES]),
        spec={
            "width": 150,
            "height": {"step": 20},
            "mark": "bar",
            "encoding": {
                "y": _by_model(task),
                "x": number("rate", title="failed atoms a sample", axis=_FEW_TICKS),
                "color": words("severity", scale=colours),
            },
        },
    )


def _field_errors(task: TaskNumbers) -> Spec:
    rows = [
        {"model": profile["model_name"], "field": field, "error": errors["normalised_mae"]}
        for profile in task.profiles
        for field, errors in profile["error_distribution"]["by_field"].items()
        if errors["normalised_mae"] is not None
    ]
    x = number("error", title="mean absolute error ÷ the field's jump limit")
    return _chart(
        task,
        "field_errors",
        "Errors by field, eligible answers",
        description="The mean absolute error of every field over its jump limit, so that fields can be compared.",
        width=_WIDTH,
        height={"step": 18},
        data={"values": rows},
        mark={"type": "point", "filled": True, "size": 60},
        encoding={
            "x": x,
            "y": words("field", sort=None, title=None),
            "color": {**_by_model(task), "legend": {"title": None, "orient": "top"}},
            "tooltip": tooltip("model", "field", "error"),
        },
    )


def _tail_risk(task: TaskNumbers) -> Spec:
    rows = []
    for numbers in task.detailed:
        for name in ("mae_p95", "mae_p99"):
            estimate = numbers.estimates[name]
            if estimate.value is not None:
                ends = {"low": estimate.low, "high": estimate.high if estimate.high is not None else estimate.value}
                rows.append({"model": numbers.model, "percentile": f"P{name[-2:]}", "value": estimate.value, **ends})
    axis = {"type": "quantitative", "title": "mean absolute error of a sample (raw units)", "scale": {"type": "symlog"}}
    axis["axis"] = {"tickCount": 5}
    return _chart(
        task,
        "tail_risk",
        "Tail risk: high percentiles of the error",
        description="P95 and P99 of the samples' mean absolute errors with 95 % intervals, ineligible samples too.",
        width=_WIDTH,
        height={"step": 26},
        data={"values": rows},
        encoding={"y": _by_model(task), "yOffset": {"field": "percentile"}},
        layer=intervals(
            axis,
            "value",
            "#4c78a8",
            shape=words("percentile", legend={"title": None, "orient": "top"}),
            tooltip=tooltip("model", "percentile", "value", "low", "high"),
        ),
    )


def _error_scores(task: TaskNumbers) -> Spec:
    rows = []
    for numbers in task.detailed:
        counts, _ = np.histogram(numbers.scores("error"), bins=_BARS, range=(0.0, 100.0))
        rows += [
            {"model": numbers.model, "score": (bar + 0.5) * 100 / _BARS, "share": count / int(counts.sum())}
            for bar, count in enumerate(counts.tolist())
            if count
        ]
    header = {"labelAngle": 0, "labelAlign": "left"}
    share = number("share", title=None, axis={"format": ".0%", **_FEW_TICKS})
    return _chart(
        task,
        "error_scores",
        "Error score of eligible answers",
        description="Distribution of the conditional error score E, in steps of two points.",
        width=_WIDTH,
        height=60,
        data={"values": rows},
        mark={"type": "bar", "size": 8},
        encoding={
            "x": number("score", scale={"domain": [0, 100]}, title="E, points of 100"),
            "y": share,
            "row": {**_by_model(task), "header": header},
        },
    )


def _rubric(task: TaskNumbers) -> Spec:
    rows = [
        {
            "model": numbers.model,
            "dimension": _words(dimension),
            "grade": grade,
            "share": numbers.total(f"grade.{dimension}.{grade}") / numbers.total("n"),
        }
        for numbers in task.detailed
        for dimension in DIMENSIONS
        for grade in GRADES
    ]
    colours = {"domain": list(GRADES), "range": list(_GRADE_COLOURS)}
    return _chart(
        task,
        "rubric",
        "Rubric: grades by dimension",
        description="Shares of all samples by grade; what is missing to 100 % is not graded.",
        data={"values": rows},
        columns=2,
        facet=words("dimension", title=None, sort=[_words(name) for name in DIMENSIONS]),
        spec={
            "width": 200,
            "height": {"step": 20},
            "mark": "bar",
            "encoding": {
                "y": _by_model(task),
                "x": number("share", title=None, axis={"format": ".0%", **_FEW_TICKS}, scale={"domain": [0, 1]}),
                "color": words("grade", scale=colours, sort=list(GRADES)),
                "order": {"field": "grade"},
            },
        },
    )
