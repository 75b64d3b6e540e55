"""The rules of stability: enough runs, and a bound on each measure of an item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from adjudge.evidence.rule import Condition, Limits, Rule, RuleSet
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.stability.batch import SHARES

MEASURES = {
    "acr": "the claim contains a gold substring",
    "cghc": "the citations hit a gold citation",
    "css": "citation sets are alike (mean pairwise Jaccard)",
    "ned50": "claims are alike (median pairwise normalised edit distance)",
    "scu": "the same constraints are echoed",
    "rcr": "an unanswerable question is refused",
}
_ABOUT = {
    "acr": "the item is unanswerable, or the gold names no substring",
    "cghc": "the item is unanswerable, or the gold names no citation",
    "rcr": "the item is answerable",
}


@dataclass(frozen=True)
class StabilityContext:
    """What the rules are built from."""

    bounds: Mapping[str, float]
    min_runs: int


def build(context: StabilityContext) -> list[Rule]:
    """All rules, in the order in which their atoms stand."""
    measures = (_measure(name, context.bounds[name]) for name in MEASURES)
    return [_enough(context.min_runs), _in_scope(), *measures]


RULES = RuleSet("stability", "stability", build, version="2")


def _enough(min_runs: int) -> Rule:
    return Rule(
        code="runs.too_few",
        title=f"a gold item has at least {min_runs} runs",
        unit="runs",
        passed="{observed} runs",
        failed="{observed} runs, expected {low} or more",
        quantity=lambda batch: batch.counts["runs"][None].astype(np.float64),
        limits=Limits(low=float(min_runs), critical_low=float(min_runs)),
    )


def _in_scope() -> Rule:
    return Rule(
        code="citations.out_of_scope",
        title="every run cites only what was retrieved for it",
        scope=Scope.SEQUENCE,
        needs=("runs",),
        unit="runs",
        passed="no run cites what was not retrieved",
        failed="{observed} runs cite what was not retrieved",
        quantity=lambda batch: batch.counts["out_of_scope"][None].astype(np.float64),
        limits=Limits(high=0.0, critical_high=0.0),
        conditions=(Condition(lambda batch: (batch.counts["scoped"] > 0)[None], "no run says what was retrieved"),),
    )


def _measure(name: str, bound: float) -> Rule:
    below = name == "ned50"
    limits = Limits(high=bound, critical_high=bound) if below else Limits(low=bound, critical_low=bound)
    conditions = []
    if name in _ABOUT:
        conditions.append(Condition(lambda batch: batch.applies(name)[None], _ABOUT[name]))
    if name in SHARES:
        conditions.append(Condition(lambda batch: (batch.counts["runs"] > 1)[None], "a pair needs two runs"))
    return Rule(
        code=f"stability.{name}",
        title=MEASURES[name],
        scope=Scope.SEQUENCE,
        needs=("runs",),
        passed=f"{name.upper()} is {{observed}}",
        failed=f"{name.upper()} is {{observed}}, expected {{{'high' if below else 'low'}}} or {'less' if below else 'more'}",
        quantity=lambda batch: batch.share(name)[None],
        limits=limits,
        conditions=tuple(conditions),
    )
