"""Summaries of a task and of a model once more, slow and plain, from the records of the reference evaluator.

Written from the specification; nothing of adjudge is used but the names of the fields.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import Any

from reference_atoms import CRITICAL, FAIL, JUMP, NOT_APPLICABLE, PASS, WARNING, change, numbers
from reference_evaluator import FAMILIES, Judged

from adjudge.protocols.flight.fields import FIELDS, TASKS

BUCKETS = ("passed", "failed", "abstained", "unparsed", "errored", "missing")
PERCENTILES = (5, 10, 25, 75, 90, 95, 99)
DIMENSIONS = {
    "protocol_schema_compliance": "protocol",
    "field_validity_local_dynamics": "field",
    "physics_cross_field_consistency": "physics",
    "safety_constraint_satisfaction": "safety",
    "predictive_quality_reliability": "quality",
}


def quantile(values: list[float], q: float) -> float:
    """The smallest value that at least a share q of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(max(math.ceil(round(len(ordered) * q, 9)), 1), len(ordered)) - 1]


def distribution(values: list[float]) -> dict[str, float | None]:
    names = ("mean", "median", "std", "min", "max", *(f"p{p}" for p in PERCENTILES))
    if not values:
        return {"n": 0, **dict.fromkeys(names)}
    return {
        "n": len(values),
        "mean": math.fsum(values) / len(values),
        "median": statistics.median(values),
        "std": statistics.stdev(values) if len(values) > 1 else None,
        "min": min(values),
        "max": max(values),
        **{f"p{p}": quantile(values, p / 100) for p in PERCENTILES},
    }


def share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def summary(records: list[Judged]) -> dict[str, Any]:
    """What the method lists of a task, over the records of one model or of all."""
    eligible = [record for record in records if record.verdict == "eligible"]
    scored = [record for record in eligible if record.scores.error is not None]
    with_error = [record for record in records if record.mae is not None]
    atoms = [atom for record in records for atom in record.atoms]
    families = (*FAMILIES, "protocol")

    def of(family: str, among: Any = atoms) -> list[Any]:
        return [atom for atom in among if atom.rule.partition(".")[0] == family]

    compliance = {}
    for family in FAMILIES:
        outcomes = [{atom.outcome for atom in of(family, record.atoms)} & {PASS, FAIL} for record in records]
        checked = [found for found in outcomes if found]
        compliance[family] = share(sum(FAIL not in found for found in checked), len(checked))
    profile = {}
    for family in families:
        found = of(family)
        failed = [atom for atom in found if atom.outcome == FAIL]
        passed = sum(atom.outcome == PASS for atom in found)
        profile[family] = {
            "pass": passed,
            "warning": sum(atom.severity == WARNING for atom in failed),
            "critical": sum(atom.severity == CRITICAL for atom in failed),
            "not_applicable": sum(atom.outcome == NOT_APPLICABLE for atom in found),
            "error": 0,
            "violations": len(failed),
            "rate": share(len(failed), passed + len(failed)),
        }
    by_rule = Counter(atom.rule for atom in atoms if atom.outcome == FAIL)
    by_family = {
        family: sum(count for rule, count in by_rule.items() if rule.startswith(f"{family}.")) for family in families
    }
    left_out = len(records) - len(eligible)
    tail: dict[str, Any] = {}
    for name in ("mae", "rmse"):
        values = [getattr(record, name) for record in with_error]
        tail |= {f"{name}_p{p}": quantile(values, p / 100) if values else None for p in (95, 99)}
    for limit in (50, 70, 90):
        under = sum(record.scores.error < limit for record in scored)
        tail[f"error_under_{limit}_rate"] = share(under + left_out, len(scored) + left_out)
        tail[f"error_under_{limit}_rate_eligible"] = share(under, len(scored))
    risky = sum(record.scores.error < 50 for record in scored)
    tail["high_risk"] = {"count": risky, "rate": share(risky, len(scored)), "of": len(scored)}
    return {
        "counts": {
            **{bucket: sum(record.bucket == bucket for record in records) for bucket in BUCKETS},
            "n": len(records),
            "eligible": len(eligible),
        },
        "eligibility_rate": share(len(eligible), len(records)),
        "availability": {
            "rate": share(math.fsum(record.completeness for record in records), len(records)),
            "distribution": distribution([record.completeness for record in records]),
        },
        "compliance": compliance,
        "constraint_profile": profile,
        "conditional_error": {
            name: distribution([getattr(record, name) for record in scored]) for name in ("mae", "rmse")
        },
        "scores": {
            **{
                name: distribution([getattr(record.scores, name) for record in eligible])
                for name in ("availability", "constraint")
            },
            **{name: distribution([getattr(record.scores, name) for record in scored]) for name in ("error", "total")},
            "rubric": distribution([record.rubric.overall for record in records]),
        },
        "tail_risk": tail,
        "failure_modes": {
            "by_rule": {rule: count for rule, count in by_rule.items() if count},
            "by_family": by_family,
            "share": {family: share(count, sum(by_family.values())) for family, count in by_family.items()},
        },
        "grades": {
            dimension: {grade: sum(getattr(record.rubric, name) == grade for record in records) for grade in "ABCD"}
            for dimension, name in DIMENSIONS.items()
        },
    }


def steps_of(task: str, state: dict[str, Any] | None) -> list[dict[str, float | None]]:
    """The numbers of an answer or a gold, second by second; None where there is none of the right shape."""
    found = []
    for step in range(TASKS[task].steps):
        if state is None:
            found.append(dict.fromkeys(FIELDS))
        elif TASKS[task].arrays:
            found.append(
                numbers(
                    {
                        name: values[step]
                        for name, values in state.items()
                        if isinstance(values, list) and len(values) == TASKS[task].steps
                    }
                )
            )
        else:
            found.append(numbers({name: value for name, value in state.items() if not isinstance(value, list)}))
    return found


def cells(task: str, case: Any) -> list[tuple[str, float, float | None]]:
    """(field, error of the answer, error of repeating the shown state) where answer and gold have a number."""
    shown = numbers(case.shown)
    found = []
    for predicted, true in zip(steps_of(task, case.answer), steps_of(task, case.gold), strict=True):
        for name in FIELDS:
            if predicted[name] is not None and true[name] is not None:
                still = None if shown[name] is None else change(name, shown[name], true[name])
                found.append((name, change(name, predicted[name], true[name]), still))
    return found


def by_field(task: str, pairs: list[tuple[Any, Judged]]) -> dict[str, Any]:
    """Errors of every field over eligible samples."""
    found = {}
    every = [cell for case, record in pairs if record.verdict == "eligible" for cell in cells(task, case)]
    for name in FIELDS:
        errors = [error for field, error, _ in every if field == name]
        still = [other for field, _, other in every if field == name and other is not None]
        mae = share(math.fsum(errors), len(errors))
        found[name] = {
            "mae": mae,
            "rmse": math.sqrt(math.fsum(e * e for e in errors) / len(errors)) if errors else None,
            "normalised_mae": None if mae is None else mae / JUMP[name],
            "persistence_mae": share(math.fsum(still), len(still)),
            "n": len(errors),
        }
    return found


def skill(task: str, pairs: list[tuple[Any, Judged]]) -> float | None:
    """1 − the answers' normalised error over that of repeating the shown state, on the cells that have both."""
    ours = theirs = 0.0
    for case, record in pairs:
        both = [
            (error / JUMP[name], still / JUMP[name]) for name, error, still in cells(task, case) if still is not None
        ]
        if record.verdict == "eligible" and both:
            ours += math.fsum(a for a, _ in both) / len(both)
            theirs += math.fsum(b for _, b in both) / len(both)
    return None if theirs == 0.0 else 1.0 - ours / theirs
