"""The rules of a run: those on every declared field, those of the schema, and those of the rule file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.evidence.rule import Condition, Finding, Limits, Rule, RuleSet, Slot, Variant
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.check.batch import CheckBatch, Mask, place_names
from adjudge.protocols.check.compiled import Compiled, CompiledRule
from adjudge.protocols.check.rulefile import Field
from adjudge.protocols.check.sandbox import ABSENT, BROKEN, FAILED, OTHER
from adjudge.protocols.check.schema import Assertion

_TYPED = ("field.present", "field.type")
NO_VALUE = "the expression has no value here (NULL, or not a finite number)"
NOT_THERE = "the answer has no such value"
OTHER_KIND = "the value is of another type than the keyword is about"
_OPTIONAL = "the field is optional, and not in the answer"


def build(compiled: Compiled) -> list[Rule]:
    """All rules, in the order in which their atoms stand."""
    fields, single = compiled.fields, [each for each in compiled.fields if not each.path.many]
    rules = [_answer(), _present(fields), _typed(fields), *_place_rules([f for f in fields if f.path.many])]
    if listed := [each for each in single if each.one_of]:
        rules.append(_one_of(listed))
    if ranged := [each for each in single if each.range is not None]:
        rules.append(_range(ranged))
    if patterned := [each for each in fields if each.pattern]:
        rules.append(_pattern(patterned, compiled.patterns))
    return [*rules, *_schema_rules(compiled.file.schema), *(_user_rule(rule, compiled) for rule in compiled.rules)]


RULES = RuleSet("check", "check", build)


def _answer() -> Rule:
    def check(batch: CheckBatch) -> Finding:
        failed = (~batch.answered)[None]
        details = {(0, row): text for row, text in batch.notes.items()}
        variant = np.maximum(batch.status.astype(np.int8) - 1, 0)[None]
        return Finding(failed, failed, variant=variant, details=details)

    return Rule(
        code="answer.json",
        title="the output holds a JSON object with at least one of the fields",
        passed="an answer was extracted",
        failed="no answer could be read from the text: {why}",
        check=check,
        variants=(
            Variant("answer.abstained", "the model answered", "the model abstained: {why}"),
            Variant("answer.api_error", "the call to the model succeeded", "the call to the model failed: {why}"),
            Variant("answer.missing_output", "there is an output for the sample", "there is no output: {why}"),
        ),
    )


def _critical(fields: Sequence[Field]) -> Mask:
    """Whose failures are critical, a row a field."""
    return np.array([each.severity == "critical" for each in fields])[:, None]


def _per_field(
    fields: Sequence[Field],
    fails: Callable[[CheckBatch, Field], Mask],
    why: Callable[[CheckBatch], dict[str, Any]] = lambda _: {},
    **parts: Any,
) -> Rule:
    """A rule with an atom a field; `why` are the details or errors beside where each field fails."""

    def check(batch: CheckBatch) -> Finding:
        failed = np.stack([fails(batch, each) for each in fields])
        return Finding(failed, failed & _critical(fields), **why(batch))

    slots = tuple(Slot(each.name, 0, ((each.name, 0),)) for each in fields)
    return Rule(**{"scope": Scope.FIELD, "slots": slots, "needs": _TYPED, "check": check, **parts})


def _present(fields: Sequence[Field]) -> Rule:
    def missing(batch: CheckBatch, each: Field) -> Mask:
        return np.logical_not(batch.present(each))

    def wanted(batch: CheckBatch) -> Mask:
        return np.stack([batch.present(each) | each.required for each in fields])

    return _per_field(
        fields,
        missing,
        code="field.present",
        title="every declared field is in the answer",
        needs=("answer",),
        passed="{field} is there",
        failed="{field} is missing from the answer, or null",
        conditions=() if all(each.required for each in fields) else (Condition(wanted, _OPTIONAL),),
    )


def _typed(fields: Sequence[Field]) -> Rule:
    def why(batch: CheckBatch) -> dict[str, Any]:
        details: dict[tuple[int, int], str] = {}
        for slot, each in enumerate(fields):
            for (name, row), text in batch.details.items():
                if name == each.name:
                    details[slot, row] = text
                elif each.path.many and name.startswith(f"{each.name}["):
                    details.setdefault((slot, row), f"{name}: {text}")
        return {"details": details}

    return _per_field(
        fields,
        CheckBatch.bad_type,
        why,
        code="field.type",
        title="every value is of its declared type",
        needs=("field.present",),
        unit=tuple(str(each.type) for each in fields),
        passed="{field} is of type {unit}",
        failed="{field} is not of type {unit}: {why}",
    )


def _place_rules(fields: Sequence[Field]) -> list[Rule]:
    """Every place of a path into a list has a value of its type; the places after the last slot share one atom."""
    if not fields:
        return []
    slots = tuple(Slot(name, 0, ((each.name, 0),)) for each in fields for name in place_names(each))
    critical = _critical([each for each in fields for _ in place_names(each)])

    def places(batch: CheckBatch) -> Mask:
        return np.stack([batch.lengths(each) > place for each in fields for place in range(each.places + 1)])

    def rule(code: str, title: str, failed: str, judge: Callable[[CheckBatch, Field, int], Mask]) -> Rule:
        def check(batch: CheckBatch) -> Finding:
            failing = np.zeros((len(slots), batch.n), dtype=bool)
            first = 0
            for each in fields:
                for place in range(int(batch.lengths(each).max(initial=0))):
                    failing[first + min(place, each.places)] |= judge(batch, each, place)
                first += each.places + 1
            return Finding(failing, failing & critical)

        return Rule(
            code=code,
            title=title,
            scope=Scope.FIELD,
            slots=slots,
            needs=("answer",),
            passed="{field} is as declared",
            failed=failed,
            check=check,
            conditions=(Condition(places, "the list has no such place"),),
        )

    def missing(batch: CheckBatch, each: Field, place: int) -> Mask:
        empty: Mask = ~pc.is_valid(batch.place(each, place)).to_numpy()
        return empty & (batch.lengths(each) > place) & ~batch.is_mistyped(f"{each.name}[{place}]")

    def mistyped(batch: CheckBatch, each: Field, place: int) -> Mask:
        return batch.is_mistyped(f"{each.name}[{place}]")

    def outside(batch: CheckBatch, each: Field, place: int) -> Mask:
        values = batch.place(each, place)
        wrong = _none_of(values, each) if each.one_of else np.zeros(batch.n, dtype=bool)
        return wrong if each.range is None else wrong | each.range.failed(pc.fill_null(values, np.nan).to_numpy())

    rules = [
        rule("place.present", "every place of a list has a value", "{field} is missing, or null", missing),
        rule("place.type", "every place of a list has a value of its type", "{field} is of another type", mistyped),
    ]
    if any(each.range is not None or each.one_of for each in fields):
        title = "every place of a list has an allowed value"
        rules.append(rule("place.value", title, "{field} is not an allowed value", outside))
    return rules


def _one_of(fields: Sequence[Field]) -> Rule:
    return _per_field(
        fields,
        lambda batch, each: _none_of(batch.column(each), each),
        code="field.one_of",
        title="every value is one of those allowed",
        unit=tuple(_listed(each) for each in fields),
        passed="{field} is one of {unit}",
        failed="{field} is not one of {unit}",
    )


def _none_of(values: pa.ChunkedArray, each: Field) -> Mask:
    """Where a value is there and is none of those allowed."""
    allowed = pc.is_in(values, value_set=pa.array(list(each.one_of), values.type))
    return np.asarray(pc.and_(pc.is_valid(values), pc.invert(allowed)))


def _range(fields: Sequence[Field]) -> Rule:
    names = ("low", "high", "critical_low", "critical_high")
    bounds: dict[str, Any] = {name: np.array([getattr(each.range, name) for each in fields]) for name in names}
    limits = Limits(**bounds)

    def check(batch: CheckBatch) -> Finding:
        observed = np.stack([pc.fill_null(batch.column(each), np.nan).to_numpy() for each in fields])
        failed = limits.failed(observed)
        return Finding(failed, failed & limits.critical(observed) & _critical(fields), observed)

    slots = tuple(Slot(each.name, 0, ((each.name, 0),)) for each in fields)
    return Rule(
        scope=Scope.FIELD,
        slots=slots,
        needs=_TYPED,
        check=check,
        code="field.range",
        title="every number lies in its range",
        unit=tuple(each.unit for each in fields),
        passed="{field} is {observed} {unit}, within {low} to {high}",
        failed="{field} is {observed} {unit}, outside {low} to {high}",
        nominal=limits,
    )


def _pattern(fields: Sequence[Field], places: Mapping[str, int]) -> Rule:
    """Every text has its form; `places` are those of the expressions that say so."""

    def why(batch: CheckBatch) -> dict[str, Any]:
        raised = [(slot, batch.results[places[each.name]].errors) for slot, each in enumerate(fields)]
        return {"errors": [(slot, *error) for slot, errors in raised for error in errors]}

    return _per_field(
        fields,
        lambda batch, each: ~batch.truth(places[each.name])[0],
        why,
        code="field.pattern",
        title="every text has its form",
        unit=tuple(each.pattern for each in fields),
        passed="{field} has the form {unit}",
        failed="{field} has not the form {unit}",
    )


def _user_rule(rule: CompiledRule, compiled: Compiled) -> Rule:
    text = rule.text
    limits = text.severity if isinstance(text.severity, Limits) else None

    def known(batch: CheckBatch) -> Mask:
        """Where every part of the rule has a value, or could not be evaluated."""
        known = np.ones(batch.n, dtype=bool)
        if rule.check >= 0:
            known &= batch.truth(rule.check)[1]
        if rule.observed >= 0:
            known &= ~np.isnan(batch.number(rule.observed))
        return (known | batch.raised(rule.check, rule.observed))[None]

    def holds(batch: CheckBatch) -> Mask:
        return (batch.truth(rule.when)[0] | batch.raised(rule.when))[None]

    def typed(batch: CheckBatch) -> Mask:
        """Where an optional field is missing or of its type."""
        wrong = np.zeros((1, batch.n), dtype=bool)
        for name in text.optional:
            wrong |= batch.bad_type(compiled.file.fields[name])
        return ~wrong

    def check(batch: CheckBatch) -> Finding:
        observed = batch.number(rule.observed)[None] if rule.observed >= 0 else None
        if limits is None or observed is None:
            failed = ~batch.truth(rule.check)[0][None]
            critical = failed & (text.severity == "critical")
        else:
            failed = ~batch.truth(rule.check)[0][None] if rule.check >= 0 else limits.failed(observed)
            critical = failed & limits.critical(observed)
        errors = [(0, *error) for part in rule.parts for error in batch.results[part].errors]
        return Finding(failed, critical, observed, errors=errors)

    conditions = _schema_conditions(compiled.file.schema, text.needs)
    conditions += [Condition(holds, f"when: {text.when}")] if rule.when >= 0 else []
    conditions += [Condition(typed, f"needs field.type on {', '.join(text.optional)}")] if text.optional else []
    conditions += [Condition(_given(name), f"there is no {'.'.join(name)}") for name in rule.uses if len(name) == 2]
    fields = [name[0] for name in rule.uses if name[0] in compiled.file.fields and len(name) == 1]
    units = list(dict.fromkeys(unit for name in fields if (unit := compiled.file.fields[name].unit)))
    title = text.title or " ".join((text.check or text.observed).split())
    measured = " (observed {observed} {unit})" if rule.observed >= 0 else ""
    return Rule(
        code=text.code,
        title=title,
        scope=Scope.CROSS_FIELD if len(fields) > 1 else Scope.SAMPLE,
        slots=(Slot(None, 0, tuple((name, 0) for name in fields if name not in text.optional)),),
        needs=("answer", *_TYPED, *(name for name in text.needs if name.partition(".")[0] != "schema")),
        unit=text.unit if text.unit is not None else units[0] if len(units) == 1 else "",
        passed=text.passed or _escaped(title) + measured,
        failed=text.failed or f"does not hold: {_escaped(title)}{measured}",
        check=check,
        conditions=(*conditions, Condition(known, NO_VALUE)),
        nominal=limits,
    )


def _given(name: tuple[str, ...]) -> Callable[[CheckBatch], Mask]:
    """Where a value of gold, meta, input or the previous sample is there."""

    def given(batch: CheckBatch) -> Mask:
        column = batch.columns[batch.compiled.names.known[name].column]
        filled: Mask = pc.is_valid(column).to_numpy()
        return filled[None]

    return given


def _listed(each: Field) -> str:
    words = [f"{value:g}" if isinstance(value, float) else str(value) for value in each.one_of]
    return ", ".join(words[:8]) + (f" and {len(words) - 8} more" if len(words) > 8 else "")


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _schema_rules(assertions: Sequence[Assertion]) -> list[Rule]:
    """All rules of a schema, in the order in which its keywords are first met."""
    places: dict[str, list[int]] = {}
    for place, each in enumerate(assertions):
        places.setdefault(each.code, []).append(place)
    return [_schema_rule(code, assertions, np.array(of_code)) for code, of_code in places.items()]


def _schema_conditions(assertions: Sequence[Assertion], needs: Sequence[str]) -> list[Condition]:
    """That no assertion of the rules that another needs fails; one that has nothing to look at is no obstacle."""

    def holds(place: int) -> Callable[[CheckBatch], Mask]:
        return lambda batch: np.less(batch.validated.states[place], FAILED)[None]

    return [
        Condition(holds(place), f"needs {each.code} on {each.path}")
        for place, each in enumerate(assertions)
        if each.code in needs or "schema" in needs
    ]


def _schema_rule(code: str, assertions: Sequence[Assertion], places: np.ndarray) -> Rule:
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
