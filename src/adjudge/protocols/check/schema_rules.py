"""The rules of a schema: one a keyword, with an atom a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from adjudge.evidence.rule import Condition, Finding, Rule, Slot
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.check.batch import CheckBatch, Mask
from adjudge.protocols.check.sandbox import ABSENT, BROKEN, FAILED, OTHER
from adjudge.protocols.check.schema import Assertion

NOT_THERE = "the answer has no such value"
OTHER_KIND = "the value is of another type than the keyword is about"


def schema_rules(assertions: Sequence[Assertion]) -> list[Rule]:
    """All rules of a schema, in the order in which its keywords are first met."""
    places: dict[str, list[int]] = {}
    for place, each in enumerate(assertions):
        places.setdefault(each.code, []).append(place)
    return [_rule(code, assertions, np.array(of_code)) for code, of_code in places.items()]


def schema_conditions(assertions: Sequence[Assertion], needs: Sequence[str]) -> list[Condition]:
    """That no assertion of the rules that another needs fails; one that has nothing to look at is no obstacle."""

    def holds(place: int) -> Callable[[CheckBatch], Mask]:
        return lambda batch: np.less(batch.validated.states[place], FAILED)[None]

    return [
        Condition(holds(place), f"needs {each.code} on {each.path}")
        for place, each in enumerate(assertions)
        if each.code in needs or "schema" in needs
    ]


def _rule(code: str, assertions: Sequence[Assertion], places: np.ndarray) -> Rule:
    """One keyword at all its paths; `places` are those of its assertions among all."""
    of_code = [assertions[place] for place in places]
    slot_of = {place: slot for slot, place in enumerate(places.tolist())}

    def reasons(batch: CheckBatch, state: int) -> dict[tuple[int, int], str]:
        """Why assertions are in a state, by slot and row."""
        validated = batch.validated
        return {
            (slot_of[place], row): text
            for (place, row), text in validated.why.items()
            if place in slot_of and validated.states[place, row] == state
        }

    def check(batch: CheckBatch) -> Finding:
        failed: Mask = batch.validated.states[places] == FAILED
        errors = [(slot, np.array([row]), text) for (slot, row), text in reasons(batch, BROKEN).items()]
        return Finding(failed, failed, details=reasons(batch, FAILED), errors=errors)

    def is_not(state: int) -> Callable[[CheckBatch], Mask]:
        return lambda batch: np.not_equal(batch.validated.states[places], state)

    return Rule(
        code=code,
        title=f"the keyword `{of_code[0].keyword}` of the schema holds",
        scope=Scope.FIELD,
        slots=tuple(Slot(each.path, 0) for each in of_code),
        needs=("answer",),
        unit=tuple(each.words for each in of_code),
        passed="{field} {unit}",
        failed="{why}; the schema asks that {field} {unit}",
        check=check,
        conditions=(Condition(is_not(ABSENT), NOT_THERE), Condition(is_not(OTHER), OTHER_KIND)),
    )
