"""The random samples are what they claim to be, and the oracle keeps its promises on them."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from adjudge.protocols.flight.fields import FIELDS, TASKS

# Drawing a sample of 237 slots is slow by Hypothesis' standards, which says nothing about the code under test.
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
tasks = pytest.mark.parametrize("task", ["S1", "M1", "M3"])


@tasks
@FEW
@given(data=st.data())
def test_cases_survive_json(strategies, task, data):
    case = data.draw(strategies.cases(task))
    for part in (case.answer, case.shown, case.gold, case.output_line("a"), case.reference_line("a")):
        assert json.loads(json.dumps(part, allow_nan=False)) == part


@tasks
@FEW
@given(data=st.data())
def test_a_cruise_fed_back_is_clean(strategies, reference, task, data):
    shown, *later = data.draw(strategies.cruises(1 + TASKS[task].steps))
    gold = {name: [state[name] for state in later] for name in FIELDS} if TASKS[task].arrays else later[0]
    judged = reference.evaluate(task, gold, shown, gold)
    assert [atom for atom in judged.atoms if atom.outcome != "pass"] == []
    assert judged.scores.total == 100.0


@tasks
@FEW
@given(data=st.data())
def test_every_sample_fills_the_layout_and_every_verdict_follows_from_it(strategies, reference, task, data):
    case = data.draw(strategies.cases(task))
    judged = reference.evaluate(task, case.answer, case.shown, case.gold, **case.options)
    clean = reference.evaluate(task, case.gold or {}, case.shown, None)
    assert [(a.rule.partition(".")[0], a.field, a.step) for a in judged.atoms[1:]] == [
        (a.rule.partition(".")[0], a.field, a.step) for a in clean.atoms[1:]
    ]
    critical = [i for i, a in enumerate(judged.atoms) if a.outcome == "fail" and a.severity == "CRITICAL"]
    assert judged.verdict == ("ineligible" if critical else "eligible")
    assert list(judged.citations) == (critical or list(range(len(judged.atoms))))
    assert all((a.severity == "INFO") == (a.outcome != "fail") for a in judged.atoms)
    assert sum(cause.count for cause in judged.attribution) == sum(a.outcome == "fail" for a in judged.atoms)


@tasks
@FEW
@given(data=st.data())
def test_numbers_and_their_text_are_judged_alike(strategies, reference, task, data):
    def as_text(value):
        if isinstance(value, list):
            return [as_text(element) for element in value]
        return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else value

    case = data.draw(strategies.cases(task))
    answer, shown, gold = (
        None if part is None else {name: as_text(value) for name, value in part.items()}
        for part in (case.answer, case.shown, case.gold)
    )
    assert reference.evaluate(task, answer, shown, gold, **case.options) == reference.evaluate(
        task, case.answer, case.shown, case.gold, **case.options
    )


@pytest.mark.parametrize("task", ["S1", "M3"])
@pytest.mark.parametrize(
    "wanted",
    [
        "numeric_validity.missing_field",
        "numeric_validity.invalid_value",
        "numeric_validity.array_shape",
        "range_sanity.out_of_range",
        "jump_dynamics.mutation_violation",
        "cross_field_consistency.altitude_consistency",
        "cross_field_consistency.speed_consistency",
        "cross_field_consistency.track_consistency",
        "physics_constraint.velocity_altitude_consistency",
        "physics_constraint.attitude_velocity_consistency",
        "safety_constraint.rapid_descent",
        "safety_constraint.extreme_speed",
        "safety_constraint.extreme_altitude",
        "safety_constraint.stall_condition",
    ],
)
def test_cases_reach_every_rule_of_all_tasks(strategies, reference, task, wanted):
    def fails(case):
        judged = reference.evaluate(task, case.answer, case.shown, case.gold, **case.options)
        return any(atom.rule == wanted and atom.outcome == "fail" for atom in judged.atoms)

    quick = settings(FEW, max_examples=2000, phases=[Phase.generate], derandomize=True)
    assert fails(find(strategies.cases(task), fails, settings=quick))
