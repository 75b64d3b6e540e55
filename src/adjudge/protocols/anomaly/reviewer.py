"""The reviewer's tables: how the threshold was set, every attack at every size, what the controls showed, the folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from adjudge.protocols.anomaly.config import PRIMARY
from adjudge.protocols.anomaly.contract import FROM_VALIDATION
from adjudge.protocols.anomaly.judge import Judgement
from adjudge.protocols.anomaly.metrics import EXCEEDED, LATENCY, METRICS
from adjudge.protocols.anomaly.negative import HALF, unit_of, with_recall
from adjudge.runs.section import Cell, Column, Section
from adjudge.stats.estimate import Estimate

if TYPE_CHECKING:
    from adjudge.protocols.anomaly.results import Result, Results

_SHARES = ("recall", "event_recall")
_TERMINAL_ROWS = 20


def reviewer_sections(results: Results, sizes: Mapping[str, str], *, several: bool) -> list[Section]:
    """The tables of all detectors that have numbers; of several, each row names its own."""
    shown = [(judged, each) for judged, each in results if each.estimates]
    if not shown:
        return []
    sections = [_calibration(shown), _demanded(shown), _attacks(shown, sizes), _controls(shown)]
    if any(judged.folds for judged, _ in shown):
        sections.append(_folds(shown))
    if several:
        return sections
    # A table of one detector needs no column that names it.
    return [replace(each, columns=list(each.columns)[1:], rows=[row[1:] for row in each.rows]) for each in sections]


def _estimates(judged: Judgement, each: Result) -> dict[tuple[str, str], Estimate]:
    """The estimates of a detector by slice and name, without its own name in the slice."""
    suffix = f"model={judged.name}"
    return {(where.removesuffix(suffix).removesuffix(", "), name): estimate for name, where, estimate in each.estimates}


def _calibration(results: Results) -> Section:
    rows: list[list[Cell]] = []
    for judged, each in results:
        known, estimates = judged.calibration, _estimates(judged, each)
        source = f"{known.n:,} clean validation rows" if known.source == FROM_VALIDATION else known.source
        set_on: list[Cell] = [judged.name, known.threshold, source, judged.n_consecutive]
        rows.append([*set_on, known.target_fpr, known.validation_fpr, estimates["", EXCEEDED], estimates["", "fpr"]])
    flights = len({results[0][0].table.sequences[index].flight for index in results[0][0].test})
    method = next(
        (each.estimate.method for _, result in results for each in result.estimates if each.name == "recall"), ""
    )
    return Section(
        "calibration",
        "The threshold, and how often clean rows exceed it",
        [
            *("Detector", "Threshold", "Set on", "N"),
            *(Column(title, "%") for title in ("Target", "Validation", "Test", "Test, N rule")),
        ],
        rows,
        note=f"Normal rows over the threshold, and on test the false positive rate under N exceedances in a row. "
        f"Intervals over {flights} test flights: {method}.",
        place="first",
    )


def _demanded(results: Results) -> Section:
    names = [(name if name != LATENCY[:-1] else f"{LATENCY}median") for name in PRIMARY]
    by_detector = [(judged.name, _estimates(judged, each)) for judged, each in results]
    rows: list[list[Cell]] = [[model, *(estimates["", name] for name in names)] for model, estimates in by_detector]
    declared = {metric.name: metric.named(metric.name) for metric in METRICS}
    columns = [Column(declared[name].title, declared[name].unit) for name in names]
    # A terminal shows them among the headline estimates.
    title = "The metrics that the contract demands"
    return Section("demanded", title, ["Detector", *columns], rows, place="first", terminal=0)


def _attacks(results: Results, sizes: Mapping[str, str]) -> Section:
    rows: list[list[Cell]] = []
    for judged, each in results:
        estimates = _estimates(judged, each)
        table = each.top["per_attack"]
        single = with_recall(table)
        low, high = (pick((row["recall"] for row in single), default=None) for pick in (min, max))
        for row in table:
            where, size, unit = f"attack={row['attack']}", "all", unit_of(sizes.get(row["attack"]))
            if row["magnitude"] is not None:
                where += f", magnitude={row['magnitude']:g}"
                size = f"{row['magnitude']:.6g} {unit}".rstrip()
            mark = ""
            if row in single:
                missed = "mostly missed" if row["recall"] < HALF else ""
                mark = "worst" if row["recall"] == low else "best" if row["recall"] == high else missed
            numbers = [estimates[where, name] for name in (*_SHARES, f"{LATENCY}median")]
            rows.append([judged.name, row["attack"], size, mark, row["sequences"], *numbers])
    return Section(
        "attacks",
        "Every attack at every size",
        [
            *("Detector", "Attack", "Size", "", "n"),
            *(Column(title, "%") for title in ("Recall", "Detected")),
            Column("Median latency", "ms"),
        ],
        rows,
        note="n sequences. Recall: attacked rows under alarm at the frozen threshold, by which worst and best are told. "
        "Detected: attacked stretches with an alarm.",
        place="first",
        terminal=_TERMINAL_ROWS,
        empty="No attack was judged.",
    )


def _controls(results: Results) -> Section:
    rows: list[list[Cell]] = []
    for judged, each in results:
        for item in each.top["controls"]:
            auroc = None if item["auroc"] is None else Estimate.from_dict(item["auroc"])
            outcome = item["outcome"].replace("_", " ")
            rows.append([judged.name, item["name"].replace("_", " "), outcome, auroc, item["why"]])
    columns = ["Detector", "Control", "Outcome", "AUROC", "What it showed"]
    return Section("controls", "Controls that can fail", columns, rows, place="results")


def _folds(results: Results) -> Section:
    rows: list[list[Cell]] = [
        [judged.name, name, row["folds"], row["mean"], row["variance"]]
        for judged, each in results
        for name, row in each.top.get("leave_one_flight_out", {"over_folds": {}})["over_folds"].items()
    ]
    columns = ["Detector", "Measure", "Folds", "Mean", "Variance"]
    return Section("folds", "Leave one flight out", columns, rows, place="more", note="Variance with n - 1.")
