"""The flight protocol once more, slow and plain: verdict, checklist, attribution and scores from the atoms.

With `reference_atoms` this is the oracle of the columnar engine; both are written from the specification alone.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from reference_atoms import (
    ALTITUDE_CONSISTENCY,
    ARRAY_SHAPE,
    ATTITUDE_VELOCITY,
    CONTINUITY,
    CRITICAL,
    EXTREME_ALTITUDE,
    EXTREME_SPEED,
    FAIL,
    INFO,
    INVALID_VALUE,
    JUMP,
    MISSING_FIELD,
    MUTATION,
    OUT_OF_RANGE,
    PASS,
    RAPID_DESCENT,
    SPEED_CONSISTENCY,
    STALL,
    TRACK_CONSISTENCY,
    VELOCITY_ALTITUDE,
    WARNING,
    Atom,
    change,
    evidence,
    numbers,
)

from adjudge.protocols.flight.fields import FIELDS, TASKS

FAMILIES = (
    "numeric_validity",
    "range_sanity",
    "jump_dynamics",
    "cross_field_consistency",
    "physics_constraint",
    "safety_constraint",
)
CHECKLIST = (
    MISSING_FIELD,
    INVALID_VALUE,
    ARRAY_SHAPE,
    OUT_OF_RANGE,
    MUTATION,
    ALTITUDE_CONSISTENCY,
    SPEED_CONSISTENCY,
    TRACK_CONSISTENCY,
    CONTINUITY,
    VELOCITY_ALTITUDE,
    ATTITUDE_VELOCITY,
    RAPID_DESCENT,
    EXTREME_SPEED,
    EXTREME_ALTITUDE,
    STALL,
)
WEIGHTS = {CRITICAL: 3.0, WARNING: 1.0, INFO: 0.5}
GRADES = {"A": 1.0, "B": 0.75, "C": 0.5, "D": 0.0}
MAE_POINTS = ((0, 100), (5, 90), (20, 70), (50, 50), (100, 30), (200, 15))
RMSE_POINTS = ((0, 100), (10, 90), (50, 70), (100, 50), (200, 30), (300, 15))


@dataclass(frozen=True)
class Item:
    """One line of the checklist; `evidence` holds positions in `Judged.atoms`."""

    item_id: str
    constraint_id: str
    status: str
    evidence: tuple[int, ...]


@dataclass(frozen=True)
class Cause:
    """One group of failures of the same rule and field; `evidence` holds positions in `Judged.atoms`."""

    rank: int
    rule: str
    field: str | None
    severity: str
    count: int
    evidence: tuple[int, ...]


@dataclass(frozen=True)
class Scores:
    """The fixed profile; each score is None where it does not exist, and `reason` says why."""

    availability: float | None
    constraint: float | None
    error: float | None
    total: float | None
    reason: str | None


@dataclass(frozen=True)
class Rubric:
    """The five grades and the mean over those that exist, times 100."""

    protocol: str
    field: str | None
    physics: str
    safety: str
    quality: str | None
    overall: float


@dataclass(frozen=True)
class Judged:
    """Everything that follows from one sample. `attribution` holds all causes; the top K are its first K."""

    atoms: tuple[Atom, ...]
    verdict: str
    bucket: str
    citations: tuple[int, ...]
    gating_reasons: tuple[str, ...]
    checklist: tuple[Item, ...]
    attribution: tuple[Cause, ...]
    completeness: float
    mae: float | None
    rmse: float | None
    normalised_mae: float | None
    normalised_rmse: float | None
    scores: Scores
    rubric: Rubric


def rules_of(task: str) -> set[str]:
    """The codes of the rules that are known here."""
    return {atom.rule for atom in evaluate(task, None, None, None, bucket_hint="unparsed").atoms}


def evaluate(
    task: str,
    answer: dict[str, Any] | None,
    shown: dict[str, Any] | None,
    gold: dict[str, Any] | None,
    *,
    bucket_hint: str = "answered",
    relative_altitude: bool = False,
    airborne_only: bool = False,
) -> Judged:
    """Judge one extracted answer; without one, `bucket_hint` says what happened instead."""
    if answer is not None and not any(name in answer for name in FIELDS):
        bucket_hint = "abstained" if answer.get("abstain") is True else "unparsed"
        answer = None
    if answer is None and bucket_hint == "answered":
        raise ValueError("without an answer, bucket_hint must be unparsed, errored, abstained or missing")
    atoms, values = evidence(
        task, answer, shown, bucket_hint, relative_altitude=relative_altitude, airborne_only=airborne_only
    )
    critical = tuple(i for i, atom in enumerate(atoms) if atom.outcome == FAIL and atom.severity == CRITICAL)
    verdict = "ineligible" if critical else "eligible"
    bucket = bucket_hint if answer is None else ("failed" if critical else "passed")
    completeness = 0.0 if answer is None else sum(name in answer for name in FIELDS) / len(FIELDS)
    truths = _gold(task, gold)
    errors = [
        (name, change(name, value, truth))
        for predicted, true in zip(values, truths, strict=True)
        for name, value, truth in ((name, predicted[name], true[name]) for name in FIELDS)
        if value is not None and truth is not None
    ]
    mae, rmse = _pooled([error for _, error in errors])
    normalised_mae, normalised_rmse = _pooled([error / JUMP[name] for name, error in errors])
    has_reference = any(truth is not None for true in truths for truth in true.values())
    return Judged(
        atoms=tuple(atoms),
        verdict=verdict,
        bucket=bucket,
        citations=critical or tuple(range(len(atoms))),
        gating_reasons=_gating(atoms, critical),
        checklist=_checklist(task, atoms),
        attribution=_attribution(atoms),
        completeness=completeness,
        mae=mae,
        rmse=rmse,
        normalised_mae=normalised_mae,
        normalised_rmse=normalised_rmse,
        scores=_scores(atoms, verdict, completeness, mae, rmse),
        rubric=_rubric(
            atoms,
            completeness,
            mae,
            rmse,
            answered=answer is not None,
            has_reference=has_reference,
            has_state=any(value is not None for value in numbers(shown).values()),
        ),
    )


def points(value: float, table: tuple[tuple[float, float], ...]) -> float:
    """Points of an error: straight lines between the rows of the table, then −1 per 10 down to 5."""
    for (x0, y0), (x1, y1) in itertools.pairwise(table):
        if value <= x1:
            return y0 + (y1 - y0) * (value - x0) / (x1 - x0)
    last_x, last_y = table[-1]
    return max(5.0, last_y - (value - last_x) / 10.0)


def rubric_overall(grades: tuple[str | None, ...]) -> float:
    """The mean of the grades that exist, times 100."""
    present = [GRADES[grade] for grade in grades if grade is not None]
    return 100.0 * sum(present) / len(present)


def _gold(task: str, gold: dict[str, Any] | None) -> list[dict[str, float | None]]:
    if gold is None or not TASKS[task].arrays:
        return [numbers(gold) for _ in range(TASKS[task].steps)]
    return [numbers({name: values[step] for name, values in gold.items()}) for step in range(TASKS[task].steps)]


def _pooled(errors: list[float]) -> tuple[float | None, float | None]:
    """Mean absolute and root mean square of the errors; None of nothing, infinite where a sum overflows."""
    if not errors:
        return None, None
    return _mean(errors), math.sqrt(_mean([error * error for error in errors]))


def _mean(values: list[float]) -> float:
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.inf


def _gating(atoms: list[Atom], critical: tuple[int, ...]) -> tuple[str, ...]:
    if not critical:
        return ()
    rules = list(dict.fromkeys(atoms[i].rule for i in critical))
    noun = "violation" if len(critical) == 1 else "violations"
    return (f"Found {len(critical)} critical {noun}: {', '.join(rules)}",)


def _checklist(task: str, atoms: list[Atom]) -> tuple[Item, ...]:
    """One item per rule that the task's graph can check; continuity needs an array."""
    items = []
    for rule in CHECKLIST:
        if rule == CONTINUITY and not TASKS[task].arrays:
            continue
        evidence = tuple(i for i, atom in enumerate(atoms) if atom.rule == rule)
        if not evidence and rule in {MISSING_FIELD, INVALID_VALUE, ARRAY_SHAPE}:
            # A validity atom that passes stands for all three: the field is there, well shaped and a number.
            evidence = tuple(i for i, atom in enumerate(atoms) if atom.rule == INVALID_VALUE and atom.outcome == PASS)
        outcomes = {atoms[i].outcome for i in evidence}
        status = FAIL if FAIL in outcomes else PASS if PASS in outcomes else "unknown"
        items.append(Item(f"CHECK_{len(items) + 1:03d}", rule, status, evidence))
    return tuple(items)


def _attribution(atoms: list[Atom]) -> tuple[Cause, ...]:
    """Failures by rule and field: criticals first, then the furthest over its limit, then rule code and field order."""
    groups: dict[tuple[str, str | None], list[int]] = {}
    for i, atom in enumerate(atoms):
        if atom.outcome == FAIL:
            groups.setdefault((atom.rule, atom.field), []).append(i)

    def order(group: tuple[str, str | None]) -> tuple[bool, float, str, int]:
        members = [atoms[i] for i in groups[group]]
        rule, name = group
        excess = max(atom.excess for atom in members if atom.excess is not None)
        has_critical = any(atom.severity == CRITICAL for atom in members)
        return not has_critical, -round(excess, 9), rule, -1 if name is None else FIELDS.index(name)

    return tuple(
        Cause(
            rank=rank,
            rule=group[0],
            field=group[1],
            severity=WARNING if order(group)[0] else CRITICAL,
            count=len(groups[group]),
            evidence=tuple(groups[group]),
        )
        for rank, group in enumerate(sorted(groups, key=order), start=1)
    )


def _family(atom: Atom) -> str:
    return atom.rule.partition(".")[0]


def _scores(atoms: list[Atom], verdict: str, completeness: float, mae: float | None, rmse: float | None) -> Scores:
    if verdict == "ineligible":
        return Scores(None, None, None, None, "ineligible")
    availability = 100.0 * completeness
    counted = [atom for atom in atoms if _family(atom) in FAMILIES and atom.outcome in {PASS, FAIL}]
    passed = sum(WEIGHTS[atom.severity] for atom in counted if atom.outcome == PASS)
    constraint = 100.0 * passed / sum(WEIGHTS[atom.severity] for atom in counted)
    if mae is None or rmse is None:
        return Scores(availability, constraint, None, None, "no reference")
    error = 0.6 * points(mae, MAE_POINTS) + 0.4 * points(rmse, RMSE_POINTS)
    return Scores(availability, constraint, error, total(availability, constraint, error), None)


def total(availability: float, constraint: float, error: float) -> float:
    """The fixed profile's total."""
    return 0.2 * availability + 0.3 * constraint + 0.5 * error


def _rubric(
    atoms: list[Atom],
    completeness: float,
    mae: float | None,
    rmse: float | None,
    *,
    answered: bool,
    has_reference: bool,
    has_state: bool,
) -> Rubric:
    if not answered:
        return Rubric("D", "D", "D", "D", "D", 0.0)
    numeric = _failure_rate(atoms, "numeric_validity")
    protocol = _grade([numeric], 0.05, 0.15)
    if protocol == "C" and completeness < 0.9:
        protocol = "D"
    grades = (
        protocol,
        # Local dynamics compare with a shown state; without one there is no grade.
        _grade([_failure_rate(atoms, "range_sanity"), _failure_rate(atoms, "jump_dynamics")], 0.05, 0.15)
        if has_state
        else None,
        _grade(
            [_failure_rate(atoms, "cross_field_consistency"), _failure_rate(atoms, "physics_constraint")], 0.10, 0.25
        ),
        _grade([_failure_rate(atoms, "safety_constraint")], 0.10, 0.25),
        _quality(mae, rmse) if has_reference else None,
    )
    return Rubric(*grades, overall=rubric_overall(grades))


def _failure_rate(atoms: list[Atom], family: str) -> float | None:
    """Failed among the atoms that passed or failed; None where there are none."""
    outcomes = [atom.outcome for atom in atoms if _family(atom) == family and atom.outcome in {PASS, FAIL}]
    return outcomes.count(FAIL) / len(outcomes) if outcomes else None


def _grade(rates: list[float | None], b: float, c: float) -> str:
    """The grade that every rate reaches; a dimension in which nothing could be checked is D."""
    present = [rate for rate in rates if rate is not None]
    if not present:
        return "D"
    worst = max(present)
    return "A" if worst == 0.0 else "B" if worst <= b else "C" if worst <= c else "D"


def _quality(mae: float | None, rmse: float | None) -> str:
    if mae is None or rmse is None:
        return "D"
    lower = min(points(mae, MAE_POINTS), points(rmse, RMSE_POINTS))
    return "A" if lower >= 90.0 else "B" if lower >= 70.0 else "C" if lower >= 50.0 else "D"
