"""Where the rules of a flight leave their atoms: one a field and step, or one a step over several fields.

A run of several tasks has one layout of evidence, that of the task with the most steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.atoms import NOT_ASKED
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.rule import Condition, Floats, Layout, Limits, Rule, Slot
from adjudge.evidence.table import Evidence, Reasons
from adjudge.evidence.vocabulary import CRITICAL, ERROR, FAIL, NOT_APPLICABLE, PASS, Scope
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


def widest(tasks: Sequence[Task]) -> Task:
    """The task with the most steps."""
    return max(tasks, key=lambda task: task.steps)


class TaskRules:
    """The rules of one task, and the places of their atoms in the layout of the run."""

    def __init__(self, task: Task, graph: VerifierGraph, whole: Layout) -> None:
        self.task, self.graph, self.whole = task, graph, whole
        self.layout = graph.layout
        self.alone = self.layout.width == whole.width
        where = {
            (place.rule["code"], place.slot["field"], place.slot["step"]): k for k, place in enumerate(whole.positions)
        }
        self._places = np.array(
            [where[place.rule["code"], place.slot["field"], place.slot["step"]] for place in self.layout.positions]
        )
        self._codes = np.array([whole.codes.index(code) for code in self.layout.codes], dtype=np.int16)

    def evaluate(self, batch: FlightBatch) -> Evidence:
        """Every rule of the task over one batch."""
        return self.graph.evaluate(batch)

    def widened(self, evidence: Evidence) -> Evidence:
        """The evidence of the task in the layout of the run; what is not asked of it is not applicable."""
        if self.alone:
            return evidence
        shape = (self.whole.width, evidence.n)
        outcome, severity = np.full(shape, NOT_APPLICABLE, dtype=np.uint8), np.zeros(shape, dtype=np.uint8)
        observed, code = np.full(shape, np.nan), np.empty(shape, dtype=np.int16)
        code[:] = self.whole.slot_code[:, None]
        outcome[self._places], severity[self._places] = evidence.outcome, evidence.severity
        observed[self._places], code[self._places] = evidence.observed, self._codes[evidence.code]
        reasons_of_task = evidence.reasons
        codes = np.full(shape, len(reasons_of_task.texts), dtype=np.int32)
        codes[self._places] = -1 if reasons_of_task.codes is None else reasons_of_task.codes
        reasons = Reasons.of(codes, [*reasons_of_task.texts, NOT_ASKED])
        return Evidence(self.whole, outcome, severity, observed, code, reasons)

    def narrowed(self, evidence: Evidence) -> Evidence:
        """The evidence of the task out of that of the run."""
        if self.alone:
            return evidence
        translate = np.full(len(self.whole.codes), -1, dtype=np.int16)
        translate[self._codes] = np.arange(self._codes.size)
        places = self._places
        reasons_of_run = evidence.reasons
        codes = (
            np.full((places.size, evidence.n), -1, dtype=np.int32)
            if reasons_of_run.codes is None
            else reasons_of_run.codes[places]
        )
        return Evidence(
            self.layout,
            evidence.outcome[places],
            evidence.severity[places],
            evidence.observed[places],
            translate[evidence.code[places]],
            Reasons.of(codes, reasons_of_run.texts),
        )


Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

ATOM_KINDS = ("pass", "warning", "critical", "not_applicable", "error")
_KIND_OF_OUTCOME = np.zeros(1 + max(PASS, FAIL, NOT_APPLICABLE, ERROR), dtype=np.int64)
_KIND_OF_OUTCOME[[PASS, FAIL, NOT_APPLICABLE, ERROR]] = [
    ATOM_KINDS.index(kind) for kind in ("pass", "warning", "not_applicable", "error")
]


class RareAtoms:
    """The atoms of a batch that did not pass: few, so they are counted one by one and the rest by difference."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.n = evidence, evidence.n
        flat = np.flatnonzero(evidence.outcome != PASS)
        self.position, self.sample = np.divmod(flat, max(1, evidence.n))
        self.outcome = evidence.outcome.ravel()[flat]
        self.severity = evidence.severity.ravel()[flat]
        self.code = evidence.code.ravel()[flat]

    def atoms(self, model: Ints, n_models: int, families: Sequence[str]) -> NDArray[np.int32]:
        """(models, families, kinds): how many atoms are of each kind; rules of other families, a plugin's, are left out."""
        layout, width = self.evidence.layout, len(families) + 1
        places = {name: place for place, name in enumerate(families)}
        family = np.array([places.get(position.rule["family"], len(families)) for position in layout.positions])
        critical = (self.outcome == FAIL) & (self.severity == CRITICAL)
        kind = np.where(critical, ATOM_KINDS.index("critical"), _KIND_OF_OUTCOME[self.outcome])
        place = (model[self.sample] * width + family[self.position]) * len(ATOM_KINDS) + kind
        counts = np.bincount(place, minlength=n_models * width * len(ATOM_KINDS))
        counts = counts.reshape(n_models, width, len(ATOM_KINDS))
        atoms = np.bincount(model, minlength=n_models)[:, None] * np.bincount(family, minlength=width)
        counts[:, :, 0] = atoms - counts.sum(axis=2)
        return counts[:, : len(families)].astype(np.int32)

    def codes(self, model: Ints, n_models: int) -> NDArray[np.int32]:
        """(models, codes): how many atoms failed under each code."""
        failed, n_codes = self.outcome == FAIL, len(self.evidence.layout.codes)
        place = model[self.sample[failed]] * n_codes + self.code[failed]
        return np.bincount(place, minlength=n_models * n_codes).reshape(n_models, n_codes).astype(np.int32)

    def family(self, name: str) -> tuple[Mask, Mask]:
        """Per sample: whether an atom of the family passed or failed, and whether any failed."""
        rows = self.evidence.layout.positions_of(name)
        in_family = np.zeros(self.evidence.layout.width, dtype=bool)
        in_family[rows] = True
        of_family = in_family[self.position]
        others = np.bincount(self.sample[of_family], minlength=self.n)
        failed = np.zeros(self.n, dtype=bool)
        failed[self.sample[of_family & (self.outcome == FAIL)]] = True
        return failed | (others < rows.size), failed
