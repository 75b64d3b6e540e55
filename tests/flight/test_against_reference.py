"""The columnar engine and the plain reference evaluator give the same atoms, verdicts and scores."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge.evidence.atoms import atoms, unpack_citations
from adjudge.evidence.graph import only_rules
from adjudge.protocols.base import Partition
from adjudge.protocols.flight.config import DEFAULT, load
from adjudge.protocols.flight.fields import TASKS
from adjudge.protocols.flight.judge import DIMENSIONS
from adjudge.protocols.flight.plan import FlightPlan
from adjudge.readers.blocks import block_of
from adjudge.verdict.adjudicator import stored_reasons, stored_statuses


@pytest.fixture(scope="module")
def plans(reference):
    """Plans with the rules that the reference has; one that was added since has a table test of its own."""
    made = {}
    for task in TASKS:
        for relative in (False, True):
            for airborne in (False, True):
                content = load(DEFAULT).content
                content["rules"]["altitude_consistency"]["relative_to_shown"] = relative
                content["airborne_only"]["enabled"] = airborne
                config = {
                    "task": task,
                    "outputs": ["outputs"],
                    "reference": ["reference"],
                    "library": content,
                    "top_k": 1000,
                }
                with only_rules(reference.rules_of(task)):
                    made[task, relative, airborne] = FlightPlan(config)
    return made


def judge(plan, outputs, references):
    """Samples, evidence and rows of a handful of cases, through the real reader."""

    tables = {
        item.role: item.read(block_of([(k, json.dumps(record).encode()) for k, record in enumerate(records, 1)]))
        for item, records in zip(plan.inputs(), (outputs, references), strict=True)
    }
    (judged,) = plan.judge(Partition({}, ("model",), ("outputs", "reference"), tables=tables))
    return judged


def near(a, b):
    if a is None or b is None:
        return a is None and b is None
    return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (b > 1e299 and a >= 1e299)


def outside(atom):
    """Whether the observed value lies outside the limits that the atom itself names."""
    low, high = atom.limits.get("low", -math.inf), atom.limits.get("high", math.inf)
    # Climb per degree of pitch is compared as a product: a quotient may round onto the limit.
    edge = atom.failed and math.isclose(atom.observed, low, rel_tol=1e-15)
    return not low <= atom.observed <= high or edge


@pytest.mark.parametrize("task", TASKS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_same_atoms_verdicts_and_scores(task, data, plans, reference, strategies):
    case = data.draw(strategies.cases(task))
    expected = reference.evaluate(case.task, case.answer, case.shown, case.gold, **case.options)
    plan = plans[task, case.relative_altitude, case.airborne_only]
    output, gold = case.output_line("s"), case.reference_line("s")
    given = [output] if output else [], [gold] if gold else []
    samples, evidence, _, _, tables = judge(plan, *given)
    row = samples.to_pylist()[0]
    found = list(atoms(evidence, 0, "model", "s"))

    assert len(found) == len(expected.atoms)
    for atom, other in zip(found, expected.atoms, strict=True):
        assert (atom.rule, atom.field, atom.step) == (other.rule, other.field, other.step)
        assert (atom.outcome, atom.severity) == (other.outcome, other.severity), (atom, other)
        assert near(atom.observed, other.observed), (atom, other)
        if atom.outcome == "not_applicable":
            assert atom.why
        elif atom.observed is not None:
            assert atom.failed == outside(atom), atom
    assert (row["verdict"], row["bucket"]) == (expected.verdict, expected.bucket)
    assert tuple(unpack_citations(row["cites"], len(found))) == expected.citations
    assert near(row["completeness"], expected.completeness)
    assert near(row["mae"], expected.mae)
    assert near(row["rmse"], expected.rmse)
    assert near(row["normalised_mae"], expected.normalised_mae)
    for name in ("availability", "constraint", "error", "total"):
        assert near(row[name], getattr(expected.scores, name)), name
    grades = (
        expected.rubric.protocol,
        expected.rubric.field,
        expected.rubric.physics,
        expected.rubric.safety,
        expected.rubric.quality,
    )
    assert tuple(row[name] for name in DIMENSIONS) == grades
    assert near(row["rubric"], expected.rubric.overall)
    stored = tables["agent"].to_pylist()[0]
    items = dict(zip((item.rules[0] for item in plan.adjudicator.items), stored_statuses(stored), strict=True))
    for item in expected.checklist:
        assert items[item.constraint_id] == item.status
    reasons = stored_reasons(stored, found)
    assert [(r.worst.rule, r.worst.field, r.severity, len(r.atoms)) for r in reasons] == [
        (c.rule, c.field, c.severity, c.count) for c in expected.attribution
    ]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_sample_is_judged_the_same_alone_and_in_any_company(data, plans, strategies):
    """The same sample evaluated alone, first, last, in another order: the same atoms, ids, verdict, scores."""
    task = data.draw(st.sampled_from(list(TASKS)))
    plan = plans[task, True, True]
    cases = {f"s{k}": data.draw(strategies.cases(task)) for k in range(4)}

    def judged(names):
        outputs = [line for name in names if (line := cases[name].output_line(name))]
        golds = [line for name in names if (line := cases[name].reference_line(name))]
        samples, evidence, *_ = judge(plan, outputs, golds)
        table = samples.to_pylist()
        return {
            row["sample"]: (repr(row), repr(list(atoms(evidence, index, "model", row["sample"]))))
            for index, row in enumerate(table)
        }

    together = judged(list(cases))
    assert judged(list(cases)[::-1]) == together
    for name in cases:
        assert judged([name])[name] == together[name]
