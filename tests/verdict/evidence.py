"""A small batch with evidence, for tests of what is made of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.evidence.atoms import Atom
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.rule import Finding, Limits, Rule, Slot, Variant
from adjudge.evidence.vocabulary import Scope


@dataclass
class Batch:
    """One quantity a field, and what became of a rule with variants: 0 passed, 1 its own code, 2 the variant's."""

    values: np.ndarray
    ended: np.ndarray

    @property
    def n(self):
        return self.values.shape[1]


FIELDS = ("x", "y")


def limits_rule(code, limits, **more):
    return Rule(
        code=code,
        title=f"{code} holds",
        scope=Scope.FIELD,
        slots=tuple(Slot(name, 0, ((name, 0),)) for name in FIELDS),
        passed="{observed}",
        failed="{observed}",
        quantity=lambda batch: batch.values,
        limits=limits,
        **more,
    )


def ended_rule():
    def check(batch):
        failed = (batch.ended > 0)[None]
        return Finding(failed, failed, variant=np.maximum(batch.ended - 1, 0).astype(np.int8)[None])

    variants = (Variant("end.lost", "it is not lost", "it is lost"),)
    return Rule(
        code="end.cut", title="it is not cut", passed="it is whole", failed="it is cut", check=check, variants=variants
    )


def evaluated(rules, values, ended=None):
    values = np.array(values, dtype=np.float64)
    ended = np.zeros(values.shape[1], dtype=np.int8) if ended is None else np.array(ended, dtype=np.int8)
    return VerifierGraph(rules).evaluate(Batch(values, ended))


def atom(position, outcome="pass", severity="INFO", rule="a.a"):
    return Atom(
        id=f"m/s/{rule}/{position}", rule=rule, family="a", title=rule, field=None, step=0, outcome=outcome, severity=severity,
        scope="SAMPLE", observed=None, limits={}, why=None, message="", position=position,
    )  # fmt: skip


RANGE = Limits(low=-1.0, high=2.0, critical_high=4.0)
