"""What one detector's judgement comes to: its stamp and checklist, and every number unless the contract was violated."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.anomaly import folds
from adjudge.protocols.anomaly.charts import charts
from adjudge.protocols.anomaly.controls import controls
from adjudge.protocols.anomaly.decide import Decisions
from adjudge.protocols.anomaly.judgement import Judgement
from adjudge.protocols.anomaly.measure import (
    PRIMARY,
    Measures,
    hold_complete,
    minimum_magnitudes,
    negative_results,
    slices,
)
from adjudge.protocols.anomaly.settings import AnomalyConfig
from adjudge.protocols.base import Named

WATERMARK = "INVALID: the contract was violated; these numbers are no result"
WITHHELD = "the contract was violated: the metrics are withheld (--show-invalid shows them, watermarked)"
REPRODUCED = "one-command reproduction tested"
HEADLINE = (*(name for name in PRIMARY if name != "detection_latency_ms"), "detection_latency_ms.median")
UNITS = {
    **dict.fromkeys(("fpr", "f1", "event_recall", "event_precision", "detection_latency_ms.detected_fraction"), "%"),
    **{f"detection_latency_ms.{name}": "ms" for name in ("median", "p95", "restricted_mean")},
    "false_alarms_per_hour": "/h",
}
_FEW = 10
_CHECKLIST = (
    ("code leakage check passes", ("code.clean",)),
    ("splits leakage check passes", ("split.disjoint", "split.covers", "split.no_shuffle")),
    ("no banned sensors in the feature list", ("feature.banned",)),
    ("threshold calibrated on validation, not test", ("threshold.clean_val_only",)),
    ("N-consecutive rule documented", ("decision.n_consecutive",)),
    ("bootstrap CIs reported", ("ci.bootstrap",)),
    ("worst-case attack disclosed", ("metrics.complete",)),
)


@dataclass
class Result:
    """The numbers of one detector, the keys it adds to metrics.json, its charts and its notes."""

    top: dict[str, Any]
    estimates: list[Named] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    charts: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def result(
    judgement: Judgement, settings: AnomalyConfig, *, several: bool, reproduced: bool | None, sizes: Mapping[str, str]
) -> Result:
    """Every number, or none of them where the contract was violated; of several, slices name the detector.

    `sizes` names the parameter that is an attack's magnitude, where a catalog says it.
    """
    failed = judgement.violations
    found = Result(
        {
            "valid": not failed,
            "stamp": "INVALID" if failed else "VALID",
            "violations": [{"code": check.code, "reasons": check.reasons} for check in failed],
            "calibration": judgement.calibration.to_dict(),
            "checklist": checklist(judgement, reproduced),
        },
        notes=_few_flights(judgement),
    )
    if judgement.broken:
        found.notes += judgement.checks["detector.scores"].reasons
        return found
    if failed and not settings.show_invalid:
        found.notes.append(WITHHELD)
        return found
    _numbers(found, judgement, settings, f", model={judgement.name}" if several else "", sizes)
    if failed:
        found.top["watermark"] = WATERMARK
        found.notes.insert(0, WATERMARK)
    else:
        hold_complete(found.top, found.metrics, found.top["per_attack"])
    return found


def _numbers(
    found: Result, judgement: Judgement, settings: AnomalyConfig, suffix: str, sizes: Mapping[str, str]
) -> None:
    table, decisions, test = judgement.table, judgement.decisions, judgement.test
    options: dict[str, Any] = {"seed": settings.seed, "resamples": settings.resamples, "level": settings.level}
    threshold = judgement.calibration.threshold
    measures = Measures(table, decisions, threshold=threshold, **options)
    whole = suffix.removeprefix(", ")
    found.estimates = measures.slice(whole, test)
    rows = []
    for where, attack, magnitude, chosen in slices(table):
        own = measures.slice(where + suffix, chosen)
        found.estimates += own
        rows.append(_row(attack, magnitude, chosen, own, decisions))
    smallest = minimum_magnitudes(table, decisions)
    shifted, shifted_estimates = measures.shifted(settings.shift_column, suffix)
    found.estimates += shifted_estimates
    ranked = sorted(
        (row for row in rows if row["magnitude"] is None and row["recall"] is not None),
        key=lambda row: (row["recall"], row["attack"]),
    )
    worst, best = (ranked[0]["attack"], ranked[-1]["attack"]) if ranked else (None, None)
    found.metrics = _flat(found.estimates, whole, decisions, test)
    for name in (settings.metrics and [name for name in PRIMARY if name not in settings.metrics]) or ():
        found.metrics.pop(name, None)
    found.top |= {
        "per_attack": rows,
        "worst_attack": worst,
        "best_attack": best,
        "min_detectable_magnitude": smallest,
        "negative_results": negative_results(rows, smallest, shifted),
        "controls": controls(measures, found.estimates[0].estimate, **options),
    }
    if judgement.folds:
        found.top["leave_one_flight_out"] = folds.summary(judgement.folds, settings.target_fpr, judgement.n_consecutive)
    found.notes += [
        f"control {item['name']} failed: {item['why']}" for item in found.top["controls"] if item["outcome"] == "fail"
    ]
    found.charts = charts(
        measures,
        rows,
        worst,
        watermark=WATERMARK if judgement.violations else None,
        n_consecutive=judgement.n_consecutive,
        point=(found.metrics.get("fpr"), found.metrics.get("recall")),
        sizes=sizes,
        model=judgement.name if suffix else None,
    )


def checklist(judgement: Judgement, reproduced: bool | None) -> list[dict[str, Any]]:
    """The reviewer's lines, each with the rules it rests on; reproduction is unknown until it was tried."""
    lines = []
    for text, codes in _CHECKLIST:
        outcomes = {judgement.checks[code].outcome for code in codes}
        outcome = "fail" if "fail" in outcomes else "unknown" if outcomes == {"not_applicable"} else "pass"
        lines.append({"line": text, "outcome": outcome, "atoms": list(codes)})
    said = "unknown" if reproduced is None else "pass" if reproduced else "fail"
    lines.append({"line": REPRODUCED, "outcome": said, "atoms": []})
    return lines


def per_attack_csv(rows: Sequence[tuple[str | None, dict[str, Any]]], watermark: str | None) -> bytes:
    """per_attack.csv of (detector, row); the detector is a column where it is named."""
    text = io.StringIO()
    if watermark:
        text.write(f"# {watermark}\n")
    writer = csv.writer(text, lineterminator="\n")
    names = list(rows[0][1]) if rows else ["attack", "magnitude", "sequences"]
    named = any(model is not None for model, _ in rows)
    writer.writerow((["model"] if named else []) + names)
    for model, row in rows:
        cells = ["" if row[name] is None else repr(v) if isinstance(v := row[name], float) else v for name in names]
        writer.writerow(([model] if named else []) + cells)
    return text.getvalue().encode()


def _few_flights(judgement: Judgement) -> list[str]:
    m = len({judgement.table.sequences[index].flight for index in judgement.test})
    if m >= _FEW:
        return []
    draws = comb(2 * m - 1, m) if m else 0
    text = f"only {m} test flights: the flight bootstrap has {draws} distinct resamples, so intervals are rough"
    return [text]


def _flat(estimates: Sequence[Named], whole: str, decisions: Decisions, test: NDArray[np.intp]) -> dict[str, Any]:
    """The flat metrics over all of test; latency is one table of its own."""
    flat: dict[str, Any] = {"detection_latency_ms": {}}
    for name, where, estimate in estimates:
        if where != whole:
            continue
        group, _, last = name.partition(".")
        if last:
            flat[group][last] = estimate.value
        else:
            flat[name] = estimate.value
    part = decisions.take(test)
    return flat | {name: int(getattr(part, name).sum()) for name in ("tp", "tn", "fp", "fn")}


def _row(
    attack: str, magnitude: float | None, chosen: NDArray[np.intp], found: Sequence[Named], decisions: Decisions
) -> dict[str, Any]:
    row: dict[str, Any] = {"attack": attack, "magnitude": magnitude, "sequences": int(decisions.attacked[chosen].sum())}
    for name, _, estimate in found:
        row[name] = estimate.value
        if name in {"auroc", "recall", "recall_at_1pct_fpr"}:
            row[f"{name}_low"], row[f"{name}_high"] = estimate.low, estimate.high
    return row
