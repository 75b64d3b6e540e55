"""The data itself: the gold judged as if it were an answer, which is the ceiling of every model's eligibility."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import CRITICAL, FAIL
from adjudge.protocols.flight.batch import FlightBatch
from adjudge.protocols.flight.library import Library
from adjudge.runs.section import Column, Section
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import cluster_wilson, wilson

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


def section(ceiling: Ceiling, rate: Estimate, library: Library, task: str = "") -> Section:
    """What the data itself reaches, and the rules that true states break."""
    n = int(ceiling.samples.sum())
    rows: list[list[str | int | float | Estimate | None]] = [["the data itself", rate, n, ""]]
    rows += [[code, count / n, count, answer(code, library)] for code, count in ceiling.rules()]
    return Section(
        f"ceiling{task}",
        f"The data itself{f', task {task}' if task else ''}: true states judged as if they were answers",
        ["", Column("share", "%"), "samples", "library setting for it"],
        rows,
        note="Its eligibility is the ceiling of every model; below it, the rules that true states break critically.",
        terminal=0 if task else 4,
    )


def note(ceiling: Ceiling, rate: Estimate, library: Library, task: str) -> list[str]:
    """A warning where true states are mostly refused: the library does not fit the data."""
    if rate.value is None or rate.value >= LOW:
        return []
    rules = [code for code, _ in ceiling.rules()[:3]]
    answers = [text for text in dict.fromkeys(answer(code, library) for code in rules) if text]
    return [
        f"only {100 * rate.value:.0f} % of the true states of {task} are eligible themselves, which is the ceiling of every model; they "
        f"break {', '.join(rules)}"
        + (
            f" (the library setting{'s' if len(answers) > 1 else ''} {' and '.join(answers)} answer{'s' if len(answers) == 1 else ''} that)"
            if answers
            else ""
        )
    ]


def answer(code: str, library: Library) -> str:
    """The setting of the constraint library that spares true states a rule, where it is not on already."""
    if (
        code == "cross_field_consistency.altitude_consistency"
        and not library.rules.altitude_consistency.relative_to_shown
    ):
        return "relative_to_shown"
    slow = {"safety_constraint.extreme_speed", "safety_constraint.stall_condition"}
    return "airborne_only" if code in slow and not library.airborne_only.enabled else ""
