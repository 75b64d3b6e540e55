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
    return [_rule(code, assertions, np.array(some)) for code, some in places.items()]


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
    some = [assertions[place] for place in places]

    def check(batch: CheckBatch) -> Finding:
        validated = batch.validated
        states = validated.states[places]
        failed: Mask = states == FAILED
        slot_of = {place: slot for slot, place in enumerate(places.tolist())}
        details = {
            (slot_of[place], row): text
            for (place, row), text in validated.why.items()
            if place in slot_of and validated.states[place, row] == FAILED
        }
        errors = [
            (slot_of[place], np.array([row]), text)
            for (place, row), text in validated.why.items()
            if place in slot_of and validated.states[place, row] == BROKEN
        ]
        return Finding(failed, failed, details=details, errors=errors)

    def there(batch: CheckBatch) -> Mask:
        mask: Mask = batch.validated.states[places] != ABSENT
        return mask

    def of_kind(batch: CheckBatch) -> Mask:
        mask: Mask = batch.validated.states[places] != OTHER
        return mask

    return Rule(
        code=code,
        title=f"the keyword `{some[0].keyword}` of the schema holds",
        scope=Scope.FIELD,
        slots=tuple(Slot(each.path, 0) for each in some),
        needs=("answer",),
        unit=tuple(each.words for each in some),
        passed="{field} {unit}",
        failed="{why}; the schema asks that {field} {unit}",
        check=check,
        conditions=(Condition(there, NOT_THERE), Condition(of_kind, OTHER_KIND)),
    )
