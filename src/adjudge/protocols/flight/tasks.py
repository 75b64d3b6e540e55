"""The rules of every task of a run in one layout of evidence: that of the task with the most steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adjudge.evidence.atoms import NOT_ASKED
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.layout import Layout
from adjudge.evidence.table import Evidence, Reasons
from adjudge.evidence.vocabulary import NOT_APPLICABLE
from adjudge.protocols.flight.batch import FlightBatch
from adjudge.protocols.flight.fields import Task


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
