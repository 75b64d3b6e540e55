"""The tables that every report of a check run shows: models, rules, fields against gold, slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.rule import Layout, Limits
from adjudge.protocols.check.compiled import Compiled
from adjudge.runs.section import Column, Section
from adjudge.stats.estimate import Estimate

_OUTCOMES = ("pass", "fail", "not applicable", "error")
_CHECKS = {
    "present": "missing",
    "type": "mistyped",
    "one_of": "not allowed",
    "range": "out of range",
    "pattern": "wrong form",
}
"""The checks of fields, and what is said of one that fails."""
Estimates = Mapping[tuple[str, str], Estimate]


def sections(
    estimates: Estimates, outcomes: NDArray[np.int64], layout: Layout, compiled: Compiled, models: Sequence[str]
) -> list[Section]:
    """All tables of a run, without those that would have no row."""
    tables = [
        _models(estimates, compiled, models),
        _rules(estimates, outcomes, layout, compiled),
        _fields(estimates, outcomes, layout, compiled),
        _schema(outcomes, layout),
        _slices(estimates, compiled),
    ]
    return [table for table in tables if table.rows]


def _models(estimates: Estimates, compiled: Compiled, models: Sequence[str]) -> Section:
    """Models in the order of their pass rate."""
    names = ["pass_rate", *(f"score.{name}" for name in compiled.file.scores)]
    rows: list[list[Any]] = [
        [model, *(estimates[f"model={model}", name] for name in names)]
        for model in models
        if (f"model={model}", "pass_rate") in estimates
    ]
    rows.sort(key=lambda row: (-(row[1].value or 0.0), row[0]))
    return Section(
        "models",
        "Models by pass rate",
        ["model", Column("pass rate", "%"), *(f"score {name}" for name in compiled.file.scores)],
        rows,
        note="Overlapping intervals do not rank; `adjudge compare` pairs the samples.",
        place="first",
    )


def _rules(estimates: Estimates, outcomes: NDArray[np.int64], layout: Layout, compiled: Compiled) -> Section:
    """Every rule of the file with its outcomes, the lowest pass rate first."""
    rows: list[list[Any]] = []
    for rule in compiled.rules:
        code, severity = rule.text.code, rule.text.severity
        (position,) = layout.positions_of(code)
        words = "by limits" if isinstance(severity, Limits) else severity
        title, rate = layout.positions[position].rule["title"], estimates["", f"{code}.pass_rate"]
        rows.append([code, title, words, rate, *outcomes[position].tolist()])
    rows.sort(key=lambda row: (row[3].value is None, row[3].value or 0.0, row[0]))
    return Section(
        "rules",
        "Rules",
        ["rule", "title", "severity", Column("pass rate", "%"), *_OUTCOMES],
        rows,
        note="The pass rate is over the samples on which a rule could be applied.",
    )


def _schema(outcomes: NDArray[np.int64], layout: Layout) -> Section:
    """Every keyword and path of the schema with its outcomes, the most failures first."""
    rows = [
        [place.rule["code"], place.slot["field"], place.slot["unit"], *outcomes[index].tolist()]
        for index, place in enumerate(layout.positions)
        if place.rule["family"] == "schema"
    ]
    rows.sort(key=lambda row: (-row[4], row[0], row[1]))
    return Section(
        "schema",
        "Schema",
        ["rule", "path", "asks", *_OUTCOMES],
        rows,
        note="An answer is counted once a keyword and path; it fails where one place of the path does.",
    )


def _fields(estimates: Estimates, outcomes: NDArray[np.int64], layout: Layout, compiled: Compiled) -> Section:
    """Every declared field: how often it failed a check of its own, and how often it is the gold value."""
    at = {(place.rule["code"], place.slot["field"]): index for index, place in enumerate(layout.positions)}
    failed = {place: int(outcomes[index][1]) for place, index in at.items()}
    rows: list[list[Any]] = []
    for each in compiled.fields:
        checks = [failed.get((f"field.{kind}", each.name)) for kind in _CHECKS]
        rows.append([each.name, str(each.type), *checks, estimates.get(("", f"{each.name}.accuracy"))])
    return Section(
        "fields",
        "Fields",
        ["field", "type", *_CHECKS.values(), Column("equals gold", "%")],
        rows,
        note="Samples on which a field fails a check of its own; a dash is a check that is not declared.",
    )


def _slices(estimates: Estimates, compiled: Compiled) -> Section:
    rows: list[list[Any]] = [
        [*label.split("=", 1), estimate, estimate.n]
        for (label, name), estimate in estimates.items()
        if name == "pass_rate" and any(label.startswith(f"{source}=") for source in compiled.file.slices)
    ]
    return Section("slices", "Pass rate by slice", ["slice", "value", Column("pass rate", "%"), "n"], rows)
