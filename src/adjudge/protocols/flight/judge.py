"""The two scoring profiles of the flight protocol, over columns: the fixed one and the five-dimension rubric.

The gold judged as if it were an answer is the ceiling of every model's eligibility.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.rule import as_slice
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import CRITICAL, FAIL, PASS
from adjudge.protocols.flight.batch import FlightBatch
from adjudge.protocols.flight.config import Library
from adjudge.protocols.flight.fields import ANSWERED
from adjudge.protocols.flight.rules import FAMILIES
from adjudge.runs.section import Column, Section
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import cluster_wilson, wilson

Floats = NDArray[np.float64]
Grades = NDArray[np.int8]

DIMENSIONS = (
    "protocol_schema_compliance",
    "field_validity_local_dynamics",
    "physics_cross_field_consistency",
    "safety_constraint_satisfaction",
    "predictive_quality_reliability",
)
GRADES = ("A", "B", "C", "D")
_A, _B, _C, _D = range(len(GRADES))
NO_GRADE = -1
_GRADE_VALUES = np.array([1.0, 0.75, 0.5, 0.0])
_PASSED, _MORE_IF_CRITICAL = 0.5, 2.0  # what an atom weighs: 0.5, failed 1, failed critically 3
# An answer of 1e308 has an error that overflows; it is kept as this, so that every sample has a number.
LARGEST = 1e300
# Straight lines between these points; past the last row −1 per 10 down to 5, which is one more row.
_MAE = ((0.0, 5.0, 20.0, 50.0, 100.0, 200.0, 300.0), (100.0, 90.0, 70.0, 50.0, 30.0, 15.0, 5.0))
_RMSE = ((0.0, 10.0, 50.0, 100.0, 200.0, 300.0, 400.0), (100.0, 90.0, 70.0, 50.0, 30.0, 15.0, 5.0))


def mae_points(mae: Floats) -> Floats:
    """Points of a mean absolute error."""
    return np.where(np.isnan(mae), np.nan, np.interp(mae, *_MAE))


def rmse_points(rmse: Floats) -> Floats:
    """Points of a root mean square error."""
    return np.where(np.isnan(rmse), np.nan, np.interp(rmse, *_RMSE))


def error_score(mae: Floats, rmse: Floats) -> Floats:
    """The fixed profile's conditional error."""
    return 0.6 * mae_points(mae) + 0.4 * rmse_points(rmse)


def total_score(availability: Floats, constraint: Floats, error: Floats) -> Floats:
    """The fixed profile's total."""
    return 0.2 * availability + 0.3 * constraint + 0.5 * error


@dataclass
class Scores:
    """One number a sample; NaN where there is none. `grades` is shaped (5, n), −1 where there is none."""

    mae: Floats
    rmse: Floats
    normalised_mae: Floats
    normalised_rmse: Floats
    beside_persistence: Floats
    persistence_mae: Floats
    availability: Floats
    constraint: Floats
    error: Floats
    total: Floats
    grades: Grades
    rubric: Floats


def score(batch: FlightBatch, evidence: Evidence, eligible: NDArray[np.bool_], jumps: Floats) -> Scores:
    """Both profiles for a batch."""
    (mae, rmse), (normalised_mae, normalised_rmse) = _pooled(batch.errors, (np.ones(len(jumps)), jumps))
    ((persistence, _),) = _pooled(batch.persistence_errors, (jumps,))
    availability = np.where(eligible, 100.0 * batch.completeness, np.nan)
    counts = {family: _Counts.of(evidence, family) for family in FAMILIES}
    constraint = np.where(eligible, _constraint(counts.values()), np.nan)
    error = np.where(eligible, error_score(mae, rmse), np.nan)
    grades = _grades(batch, counts, mae, rmse)
    return Scores(
        mae=mae,
        rmse=rmse,
        normalised_mae=normalised_mae,
        normalised_rmse=normalised_rmse,
        beside_persistence=_beside_persistence(batch, normalised_mae, jumps),
        persistence_mae=persistence,
        availability=availability,
        constraint=constraint,
        error=error,
        total=total_score(availability, constraint, error),
        grades=grades,
        rubric=_overall(grades),
    )


def _beside_persistence(batch: FlightBatch, normalised_mae: Floats, jumps: Floats) -> Floats:
    """The normalised error on the cells that the shown state has too, so that both can be compared."""
    no_state = np.isnan(batch.shown)
    if not no_state.any():
        return normalised_mae
    partly = np.flatnonzero(no_state.any(axis=0))
    beside = normalised_mae.copy()
    errors = np.where(np.isnan(batch.persistence_errors[:, :, partly]), np.nan, batch.errors[:, :, partly])
    ((beside[partly], _),) = _pooled(errors, (jumps,))
    return beside


def _pooled(errors: Floats, units: Sequence[Floats]) -> list[tuple[Floats, Floats]]:
    """Mean absolute and root mean square over fields and steps, each field in its unit; NaN where no pair of values exists.

    One pair for each set of units. Field by field, which stays in the cache; and np.sum would add the values of a lone
    sample in another order.
    """
    n = errors.shape[-1]
    sums, squares, count = np.zeros((len(units), n)), np.zeros((len(units), n)), np.zeros(n, dtype=np.int32)
    with np.errstate(all="ignore"):
        for place, row in enumerate(errors.reshape(-1, n)):
            known = ~np.isnan(row)
            error = np.where(known, row, 0.0)
            count += known
            for index, unit in enumerate(units):
                value = error / unit[place % len(unit)]
                sums[index] += value
                value *= value
                squares[index] += value
        sums, squares = np.minimum(sums / count, LARGEST), np.minimum(np.sqrt(squares / count), LARGEST)
    sums[:, count == 0] = np.nan
    squares[:, count == 0] = np.nan
    return list(zip(sums, squares, strict=True))


@dataclass
class _Counts:
    """How many atoms of a family passed, failed, and failed critically, per sample."""

    passed: Floats
    failed: Floats
    critical: Floats

    @classmethod
    def of(cls, evidence: Evidence, family: str) -> _Counts:
        rows = as_slice(evidence.layout.positions_of(family))
        outcome = evidence.outcome[rows]
        failed = outcome == FAIL
        return cls(_count(outcome == PASS), _count(failed), _count(failed & (evidence.severity[rows] == CRITICAL)))


def _constraint(families: Collection[_Counts]) -> Floats:
    """100·Σw(passed)/Σw over the atoms of the six families that passed or failed."""
    passed = _PASSED * np.sum([of_family.passed for of_family in families], axis=0)
    failed = np.sum([of_family.failed + _MORE_IF_CRITICAL * of_family.critical for of_family in families], axis=0)
    with np.errstate(all="ignore"):
        return np.asarray(100.0 * passed / (passed + failed))


def _count(mask: NDArray[np.bool_]) -> Floats:
    """How many rows hold, per sample; counted in small integers, which is several times faster than in large ones."""
    counts: NDArray[np.uint16] = np.add.reduce(mask.view(np.uint8), axis=0, dtype=np.uint16)
    return counts.astype(np.float64)


def _grades(batch: FlightBatch, counts: Mapping[str, _Counts], mae: Floats, rmse: Floats) -> Grades:
    """The five grades; none for local dynamics where no state was shown, none for quality without a reference."""
    rates = {family: _failure_rate(of_family) for family, of_family in counts.items()}
    protocol = _grade([rates["numeric_validity"]], 0.05, 0.15)
    protocol[(protocol == _C) & (batch.completeness < 0.9)] = _D
    quality = np.minimum(mae_points(mae), rmse_points(rmse))
    reached = np.select([quality >= 90, quality >= 70, quality >= 50], [_A, _B, _C], _D)
    dynamics = _grade([rates["range_sanity"], rates["jump_dynamics"]], 0.05, 0.15)
    grades = np.stack(
        [
            protocol,
            np.where(np.isnan(batch.shown).all(axis=0), NO_GRADE, dynamics),
            _grade([rates["cross_field_consistency"], rates["physics_constraint"]], 0.10, 0.25),
            _grade([rates["safety_constraint"]], 0.10, 0.25),
            np.where(batch.has_reference, reached, NO_GRADE),
        ]
    ).astype(np.int8)
    grades[:, batch.status != ANSWERED] = _D
    return grades


def _failure_rate(counts: _Counts) -> Floats:
    """Failed among the atoms that passed or failed; NaN where there are none."""
    with np.errstate(all="ignore"):
        return np.asarray(counts.failed / (counts.failed + counts.passed))


def _grade(rates: list[Floats], b: float, c: float) -> NDArray[np.int64]:
    """The grade that every rate reaches; D where the answer's own values kept everything from being checked."""
    worst = np.fmax.reduce(rates)
    return np.select([worst == 0.0, worst <= b, worst <= c], [_A, _B, _C], _D)


def _overall(grades: Grades) -> Floats:
    """The mean of the grades that exist, times 100."""
    known = grades != NO_GRADE
    values = np.where(known, _GRADE_VALUES[grades], 0.0)
    mean: Floats = 100.0 * values.sum(axis=0) / known.sum(axis=0)
    return mean


LOW = 0.9
"""True states that are eligible less often than this say more of the library than of the models."""


@dataclass
class Ceiling:
    """By flight how many true states are eligible, and how many there are; in how many each rule is broken critically."""

    eligible: NDArray[np.int64]
    samples: NDArray[np.int64]
    broken: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of_flights(cls, flights: int) -> Ceiling:
        """Nothing yet."""
        return cls(np.zeros(flights, dtype=np.int64), np.zeros(flights, dtype=np.int64))

    def add(self, other: Ceiling, flights: NDArray[np.intp]) -> None:
        """Add what was found elsewhere, whose flights are these."""
        self.eligible[flights] += other.eligible
        self.samples[flights] += other.samples
        self.broken += other.broken

    def rate(self, *, clustered: bool) -> Estimate:
        """The share of true states that are eligible."""
        if not self.samples.any():
            return Estimate.null("no sample has a reference", method="wilson")
        if clustered:
            return cluster_wilson(self.eligible[self.samples > 0], self.samples[self.samples > 0])
        return wilson(int(self.eligible.sum()), int(self.samples.sum()))

    def rules(self) -> list[tuple[str, int]]:
        """The rules that true states break, most often broken first."""
        return sorted(self.broken.items(), key=lambda item: (-item[1], item[0]))


def ceiling_of(
    batch: FlightBatch, flight: NDArray[np.int64], flights: int, judge_gold: Callable[[FlightBatch], Evidence]
) -> Ceiling:
    """Judge the gold of a batch, once a sample, whatever the number of models."""
    ceiling = Ceiling.of_flights(flights)
    rows, gold = batch.gold_as_answer()
    if not rows.size:
        return ceiling
    evidence = judge_gold(gold)
    critical = (evidence.outcome == FAIL) & (evidence.severity == CRITICAL)
    wrong = critical.any(axis=0)
    ceiling.samples += np.bincount(flight[rows], minlength=flights)
    ceiling.eligible += np.bincount(flight[rows[~wrong]], minlength=flights)
    if wrong.any():
        codes = np.where(critical[:, wrong], evidence.code[:, wrong], -1)
        for code in np.unique(codes[codes >= 0]).tolist():
            ceiling.broken[evidence.layout.codes[code]] += int((codes == code).any(axis=0).sum())
    return ceiling


def ceiling_section(ceiling: Ceiling, rate: Estimate, library: Library, task: str = "") -> Section:
    """What the data itself reaches, and the rules that true states break."""
    n = int(ceiling.samples.sum())
    rows: list[list[str | int | float | Estimate | None]] = [["the data itself", rate, n, ""]]
    rows += [[code, count / n, count, gold_answer(code, library)] for code, count in ceiling.rules()]
    return Section(
        f"ceiling{task}",
        f"The data itself{f', task {task}' if task else ''}: true states judged as if they were answers",
        ["", Column("share", "%"), "samples", "library setting for it"],
        rows,
        note="Its eligibility is the ceiling of every model; below it, the rules that true states break critically.",
        terminal=0 if task else 4,
    )


def ceiling_note(ceiling: Ceiling, rate: Estimate, library: Library, task: str) -> list[str]:
    """A warning where true states are mostly refused: the library does not fit the data."""
    if rate.value is None or rate.value >= LOW:
        return []
    rules = [code for code, _ in ceiling.rules()[:3]]
    answers = [text for text in dict.fromkeys(gold_answer(code, library) for code in rules) if text]
    return [
        f"only {100 * rate.value:.0f} % of the true states of {task} are eligible themselves, which is the ceiling of every model; they "
        f"break {', '.join(rules)}"
        + (
            f" (the library setting{'s' if len(answers) > 1 else ''} {' and '.join(answers)} answer{'s' if len(answers) == 1 else ''} that)"
            if answers
            else ""
        )
    ]


def gold_answer(code: str, library: Library) -> str:
    """The setting of the constraint library that spares true states a rule, where it is not on already."""
    if (
        code == "cross_field_consistency.altitude_consistency"
        and not library.rules.altitude_consistency.relative_to_shown
    ):
        return "relative_to_shown"
    slow = {"safety_constraint.extreme_speed", "safety_constraint.stall_condition"}
    return "airborne_only" if code in slow and not library.airborne_only.enabled else ""
