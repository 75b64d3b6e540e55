"""The charts of a flight run, as Vega-Lite specifications: what the page does not draw already beside its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.protocols.common.plan import Spec, chart
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES
from adjudge.protocols.flight.model_values import ATOM_KINDS
from adjudge.protocols.flight.partials import PLACE
from adjudge.protocols.flight.rules import FAMILIES

if TYPE_CHECKING:
    from adjudge.protocols.flight.finish import TaskNumbers

_BARS = 50


def build(task: TaskNumbers) -> list[Spec]:
    """Every chart of a task, in the order of the report."""
    specs = [
        _chart(task, "violations", _violations(task), families=[_words(name) for name in FAMILIES]),
        _chart(task, "field_errors", _field_errors(task)),
        _chart(task, "tail_risk", _tail_risk(task)),
        _chart(task, "error_scores", _error_scores(task)),
    ]
    if "rubric_score" in task.models[0].estimates:
        dimensions = [_words(name) for name in DIMENSIONS]
        specs.append(_chart(task, "rubric", _rubric(task), dimensions=dimensions, grades=list(GRADES)))
    return specs


def _chart(task: TaskNumbers, name: str, rows: list[dict[str, Any]], **values: Any) -> Spec:
    models = [numbers.model for numbers in task.detailed]
    named = f"{name}{task.suffix.replace('/', '_')}"
    return chart(__package__, name, named, task=task.task, models=models, rows=rows, **values)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _violations(task: TaskNumbers) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    whole = task.whole
    for index, numbers in enumerate(task.detailed):
        samples = whole.sums[index, :, PLACE["n"]].sum()
        for place, family in enumerate(FAMILIES):
            kinds = whole.atoms[index, place]
            for kind in ("warning", "critical"):
                rate = float(kinds[ATOM_KINDS.index(kind)] / samples) if samples else None
                row = {"model": numbers.model, "family": _words(family), "severity": kind.upper(), "rate": rate}
                rows.append(row)
    return rows


def _field_errors(task: TaskNumbers) -> list[dict[str, Any]]:
    return [
        {"model": profile["model_name"], "field": field, "error": errors["normalised_mae"]}
        for profile in task.profiles
        for field, errors in profile["error_distribution"]["by_field"].items()
        if errors["normalised_mae"] is not None
    ]


def _tail_risk(task: TaskNumbers) -> list[dict[str, Any]]:
    rows = []
    for numbers in task.detailed:
        for name in ("mae_p95", "mae_p99"):
            estimate = numbers.estimates[name]
            if estimate.value is not None:
                ends = {"low": estimate.low, "high": estimate.high if estimate.high is not None else estimate.value}
                rows.append({"model": numbers.model, "percentile": f"P{name[-2:]}", "value": estimate.value, **ends})
    return rows


def _error_scores(task: TaskNumbers) -> list[dict[str, Any]]:
    rows = []
    for numbers in task.detailed:
        counts, _ = np.histogram(numbers.scores("error"), bins=_BARS, range=(0.0, 100.0))
        rows += [
            {"model": numbers.model, "score": (bar + 0.5) * 100 / _BARS, "share": count / int(counts.sum())}
            for bar, count in enumerate(counts.tolist())
            if count
        ]
    return rows


def _rubric(task: TaskNumbers) -> list[dict[str, Any]]:
    return [
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
