"""What one detector's judgement comes to: every number, unless the contract was violated; and all detectors as one run."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import comb
from operator import itemgetter
from typing import Any

from adjudge.protocols.anomaly import folds
from adjudge.protocols.anomaly.charts import charts
from adjudge.protocols.anomaly.config import AnomalyConfig
from adjudge.protocols.anomaly.judge import Decisions, Judgement
from adjudge.protocols.anomaly.metrics import Measures, slices
from adjudge.protocols.anomaly.negative import controls, hold_complete, minimum_magnitudes, negative_results
from adjudge.protocols.anomaly.reviewer import reviewer_sections
from adjudge.protocols.anomaly.stamp import Reproduction, checklist, combined, open_items, stamp
from adjudge.protocols.base import Measured, Named
from adjudge.stats.estimate import Estimate

WATERMARK = "INVALID: the contract was violated; these numbers are no result"
WITHHELD = "the contract was violated: the metrics are withheld (--show-invalid shows them, watermarked)"
_FEW = 10
_WITH_ENDS = frozenset({"auroc", "recall", "recall_at_1pct_fpr"})


@dataclass
class Result:
    """The numbers of one detector, the keys it adds to metrics.json, its charts and its notes."""

    top: dict[str, Any]
    estimates: list[Named] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    charts: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def result(
    judgement: Judgement,
    settings: AnomalyConfig,
    *,
    several: bool,
    reproduced: Reproduction | None,
    sizes: Mapping[str, str],
) -> Result:
    """Every number, or none of them where the contract was violated; of several, slices name the detector.

    `sizes` names the parameter that is an attack's magnitude, where a catalog says it.
    """
    failed = judgement.violations
    lines = checklist(judgement, reproduced)
    left_open = open_items(judgement, lines)
    numbers = Result(
        {
            "valid": not failed,
            "stamp": stamp(valid=not failed, left_open=bool(left_open)),
            "offline": bool(judgement.record.get("offline")),
            "violations": [{"code": check.code, "reasons": check.reasons} for check in failed],
            "open_items": left_open,
            "calibration": asdict(judgement.calibration) | {"n_consecutive": judgement.n_consecutive},
            "checklist": lines,
        },
        notes=[*_few_flights(judgement), *judgement.record.get("notes", ())],
    )
    if judgement.broken:
        numbers.notes += judgement.checks["detector.scores"].reasons
        return numbers
    if failed and not settings.show_invalid:
        numbers.notes.append(WITHHELD)
        return numbers
    _add_numbers(numbers, judgement, settings, f", model={judgement.name}" if several else "", sizes)
    if failed:
        numbers.notes.insert(0, WATERMARK)
    else:
        hold_complete(numbers.top, numbers.metrics, numbers.top["per_attack"])
    return numbers


def _add_numbers(
    numbers: Result, judgement: Judgement, settings: AnomalyConfig, suffix: str, sizes: Mapping[str, str]
) -> None:
    table, decisions, test = judgement.table, judgement.decisions, judgement.test
    options: dict[str, Any] = {"seed": settings.seed, "resamples": settings.resamples, "level": settings.level}
    measures = Measures(table, decisions, judgement.calibration.threshold, options)
    whole = suffix.removeprefix(", ")
    numbers.estimates = measures.slice(whole, test)
    rows = []
    for where, attack, magnitude, chosen in slices(table):
        estimates = measures.slice(where + suffix, chosen)
        numbers.estimates += estimates
        row = {"attack": attack, "magnitude": magnitude, "sequences": int(decisions.attacked[chosen].sum())}
        rows.append(row | _cells(estimates))
    smallest = minimum_magnitudes(measures, sizes)
    shifted, shifted_estimates = measures.shifted(settings.shift_column, suffix)
    exceeded = measures.exceedance(whole)
    numbers.estimates += [*shifted_estimates, exceeded]
    of_attacks = [row for row in rows if row["magnitude"] is None and row["recall"] is not None]
    ranked = sorted(of_attacks, key=itemgetter("recall", "attack"))
    worst, best = (ranked[0]["attack"], ranked[-1]["attack"]) if ranked else (None, None)
    of_test = {name: estimate for name, where, estimate in numbers.estimates if where == whole}
    numbers.metrics = _flat(of_test, decisions.take(test))
    for name in settings.left_out:
        numbers.metrics.pop(name, None)
    numbers.top["calibration"] |= {
        "test_exceedance": exceeded.estimate.to_dict(),
        "test_fpr": numbers.metrics.get("fpr"),
        "not_carried_over": _not_carried(judgement, exceeded.estimate, of_test["fpr"]),
    }
    numbers.top |= {
        "per_attack": rows,
        "worst_attack": worst,
        "best_attack": best,
        "min_detectable_magnitude": smallest,
        "negative_results": negative_results(rows, smallest, shifted),
        "controls": controls(measures, numbers.estimates[0].estimate),
    }
    if judgement.folds:
        over_folds = folds.summary(judgement.folds, settings.target_fpr, judgement.n_consecutive)
        numbers.top["leave_one_flight_out"] = over_folds
    failed = [item for item in numbers.top["controls"] if item["outcome"] == "fail"]
    numbers.notes += [f"control {item['name']} failed: {item['why']}" for item in failed]
    if judgement.violations:
        numbers.top["watermark"] = WATERMARK
    point = (numbers.metrics.get("fpr"), numbers.metrics.get("recall"))
    numbers.charts = charts(measures, numbers.top, point, sizes, judgement.name if suffix else None)


def _not_carried(judgement: Judgement, exceeded: Estimate, fpr: Estimate) -> str | None:
    """A sentence where normal test rows exceed the threshold clearly more often than it was set to; else None.

    Clearly: the interval over flights lies above the target, and the share is at least twice the target.
    """
    known = judgement.calibration
    clear = any(
        estimate.value is not None
        and estimate.value >= 2 * known.target_fpr
        and (estimate.low is None or estimate.low > known.target_fpr)
        for estimate in (exceeded, fpr)
    )
    if not clear or known.validation_fpr is None:
        return None
    stated = ((exceeded, "clean test rows exceed the threshold"), (fpr, "normal test rows are under alarm"))
    shown = [f"{100 * each.value:.3g} % of {what}" for each, what in stated if each.value is not None]
    of_validation = f"{100 * known.validation_fpr:.3g} % of clean validation rows exceed it"
    target = f"the target is {100 * known.target_fpr:g} %"
    return f"the calibration did not carry over: {' and '.join(shown)}; {of_validation}, {target}"


def per_attack_csv(rows: Sequence[tuple[str, dict[str, Any]]], watermark: str | None, *, several: bool) -> bytes:
    """per_attack.csv of (detector, row); the detector is a column where there are several."""
    text = io.StringIO()
    if watermark:
        text.write(f"# {watermark}\n")
    writer = csv.writer(text, lineterminator="\n")
    names = list(rows[0][1]) if rows else ["attack", "magnitude", "sequences"]
    named = several and bool(rows)
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
    return [f"only {m} test flights: the flight bootstrap has {draws} distinct resamples, so intervals are rough"]


def _flat(estimates: Mapping[str, Estimate], decisions: Decisions) -> dict[str, Any]:
    """The flat metrics over all of test; latency is one table of its own."""
    flat: dict[str, Any] = {"detection_latency_ms": {}}
    for name, estimate in estimates.items():
        group, _, last = name.partition(".")
        (flat[group] if last else flat)[last or name] = estimate.value
    return flat | {name: int(getattr(decisions, name).sum()) for name in ("tp", "tn", "fp", "fn")}


def _cells(estimates: Sequence[Named]) -> dict[str, Any]:
    """The values of a slice, of the most important ones with their interval."""
    cells: dict[str, Any] = {}
    for name, _, estimate in estimates:
        cells[name] = estimate.value
        if name in _WITH_ENDS:
            cells[f"{name}_low"], cells[f"{name}_high"] = estimate.low, estimate.high
    return cells


Results = Sequence[tuple[Judgement, Result]]


def measured_of(results: Results, sizes: Mapping[str, str], *, several: bool, notes: Sequence[str]) -> Measured:
    """All numbers of a run; of several detectors every name carries its own."""
    counts = {judged.name: judged.buckets() for judged, _ in results}
    total = {key: sum(each[key] for each in counts.values()) for key in next(iter(counts.values()))}
    listed = [f"{judged.name}: {text}" if several else text for judged, each in results for text in each.notes]
    metrics: dict[str, Any] = {}
    for judged, each in results:
        metrics |= {f"{judged.name}/{name}" if several else name: value for name, value in each.metrics.items()}
    return Measured(
        [estimate for _, each in results for estimate in each.estimates],
        {**counts, "all": total},
        metrics,
        _top(results, several=several),
        [chart for _, each in results for chart in each.charts],
        list(dict.fromkeys([*listed, *notes])),
        reviewer_sections(results, sizes, several=several),
    )


def _top(results: Results, *, several: bool) -> dict[str, Any]:
    if not several:
        return results[0][1].top
    tops = {judged.name: each.top for judged, each in results}
    violations = [{"model": name, **item} for name, top in tops.items() for item in top["violations"]]
    return {"violations": violations, "detectors": tops, **combined(list(tops.values()))}
