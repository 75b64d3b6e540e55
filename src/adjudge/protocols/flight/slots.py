"""Where the rules of a flight leave their atoms: one a field and step, or one a step over several fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adjudge.evidence.rule import Condition, Floats, Limits, Rule, Slot
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.flight.batch import FlightBatch
from adjudge.protocols.flight.fields import FIELDS, Task

NEEDS = ("numeric_validity",)
"""What every rule but those on the answer's form needs to have passed."""


def moment(task: Task, step: int) -> str:
    """Which second a step is about, as people say it; the only one of a task needs no name."""
    return f"t+{step + 1}" if task.arrays else ""


def field_slots(task: Task, *, first: int = 0, before: bool = False) -> tuple[Slot, ...]:
    """One slot a field and step; with `before`, reading the step before as well."""
    return tuple(
        Slot(
            name,
            step,
            ((name, step), (name, step - 1)) if before and step else ((name, step),),
            moment(task, step),
        )
        for step in range(first, task.steps)
        for name in FIELDS
    )


def step_slots(task: Task, *names: str, before: tuple[str, ...] = ()) -> tuple[Slot, ...]:
    """One slot a step, reading fields of that step, and `before` of the one before it; about a field if it reads one alone."""
    field = names[0] if len(names) == 1 and not before else None
    return tuple(
        Slot(
            field,
            step,
            tuple((name, step) for name in names) + tuple((name, step - 1) for name in before if step),
            moment(task, step),
        )
        for step in range(task.steps)
    )


@dataclass(frozen=True)
class StepRule:
    """A rule with one atom a step, a quantity and constant limits; `observed` says what was measured."""

    code: str
    title: str
    reads: tuple[str, ...]
    quantity: Callable[[FlightBatch], Floats]
    limits: Limits
    observed: str
    unit: str
    before: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def rule(self, task: Task) -> Rule:
        """The rule for a task."""
        slots = step_slots(task, *self.reads, before=self.before)
        allowed = self._allowed()
        return Rule(
            code=self.code,
            title=self.title,
            scope=Scope.CROSS_FIELD if slots[0].field is None else Scope.FIELD,
            slots=slots,
            needs=NEEDS,
            unit=self.unit,
            passed=f"{self.observed}, {allowed}",
            failed=f"{self.observed}; allowed is {allowed} {self.unit}",
            quantity=self.quantity,
            limits=self.limits,
            conditions=self.conditions,
        )

    def _allowed(self) -> str:
        bounds = self.limits.at(0)
        if "low" not in bounds:
            return f"at most {bounds['high']:g}"
        return (
            f"between {bounds['low']:g} and {bounds['high']:g}" if "high" in bounds else f"not under {bounds['low']:g}"
        )
