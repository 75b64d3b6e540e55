"""Attribution: which failures are one reason, how far over its limit each is, and which stands first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adjudge.evidence.rule import Case, Finding, Limits, Slot
from adjudge.verdict.agent import _over_limit, reasons_of
from verdict.evidence import RANGE, ended_rule, evaluated, limits_rule


def listed(evidence, top=5):
    """Per sample, (position of the worst atom, positions of all) in the order of their rank."""
    reasons = reasons_of(evidence, top)
    assert reasons.atoms.size == reasons.size.sum()
    edges = np.concatenate([[0], np.cumsum(reasons.size)])
    groups = [[] for _ in range(evidence.n)]
    for place, sample in enumerate(reasons.sample):
        groups[sample].append((int(reasons.worst[place]), reasons.atoms[edges[place] : edges[place + 1]].tolist()))
    return groups


def over(evidence):
    position, sample = np.nonzero(evidence.outcome == 1)
    return _over_limit(evidence, position, sample).tolist()


@pytest.mark.parametrize(
    "limits, observed, expected",
    [
        (Limits(high=2.0), 3.0, 0.5),
        (Limits(low=-4.0), -6.0, 0.5),
        (Limits(low=1.0, high=2.0), 0.5, 0.5),
        (Limits(low=1.0, high=2.0, by_span=True), 4.0, 2.0),
        (Limits(low=0.0, high=10.0), -5.0, 0.5),  # a limit of 0 has no multiples: in spans
        (Limits(low=-10.0, high=0.0), 5.0, 0.5),
        (Limits(high=0.0), 3.0, 3.0),  # and without a span as it is
        (Limits(high=0.3), 0.9, 2.0),  # rounding does not show
        (Limits(high=1e-9), 3.0, 3e9 - 1.0),  # nor does it touch what has no such digits
    ],
)
def test_how_far_over_its_limit_an_atom_is(limits, observed, expected):
    evidence = evaluated([limits_rule("a.a", limits)], [[observed], [np.mean([limits.low or 0, limits.high or 0])]])
    assert over(evidence)[0] == pytest.approx(expected, rel=1e-12)


def test_a_failure_without_a_measurement_is_over_every_limit():
    assert over(evaluated([ended_rule()], [[0.0], [0.0]], ended=[1])) == [np.inf]


def test_failures_of_one_rule_and_field_are_one_reason_and_fields_are_apart():
    evidence = evaluated([limits_rule("a.a", RANGE)], [[3.0, 0.0, 3.0], [0.0, 3.0, 3.5]])
    # of two fields of one rule the farther over stands first
    assert listed(evidence) == [[(0, [0])], [(1, [1])], [(1, [1]), (0, [0])]]


def test_critical_comes_before_farther_over_and_ties_stand_by_code_then_field():
    small = Limits(high=1.0, critical_high=9.0)
    grave = Limits(high=8.0, critical_high=8.0)
    evidence = evaluated([limits_rule("b.b", small), limits_rule("a.a", grave)], [[8.5, 3.0], [0.0, 3.0]])
    # sample 0: b.b is 7.5 times over and a warning, a.a 1/16 over and critical
    assert [group[0] for group in listed(evidence)[0]] == [2, 0]
    # sample 1: both fields of b.b are alike, so the first field stands first
    assert [group[0] for group in listed(evidence)[1]] == [0, 1]
    alike = evaluated([limits_rule("b.b", small), limits_rule("a.a", small)], [[3.0], [0.0]])
    assert [group[0] for group in listed(alike)[0]] == [2, 0]  # a.a before b.b


def test_only_the_worst_are_kept_for_every_sample():
    evidence = evaluated([limits_rule("a.a", RANGE), ended_rule()], [[3.0, 3.0], [3.5, 0.0]], ended=[2, 0])
    assert [len(groups) for groups in listed(evidence, top=2)] == [2, 1]
    assert listed(evidence, top=2)[0][0] == (2, [2])  # critical and without a measurement
    assert listed(evidence, top=0) == [[], []]


def test_nothing_failed_gives_no_reason():
    reasons = reasons_of(evaluated([limits_rule("a.a", RANGE)], [[0.0], [0.0]]), 5)
    assert [part.size for part in (reasons.sample, reasons.worst, reasons.size, reasons.atoms)] == [0, 0, 0, 0]


def test_of_several_seconds_of_one_field_the_worst_atom_speaks_for_the_reason():
    def by_step(critical):
        slots = tuple(Slot("x", step, (("x", step),)) for step in range(3))
        limits = Limits(high=1.0, critical_high=critical)
        return replace(limits_rule("a.a", limits), slots=slots)

    values = [[3.0], [5.0], [4.0]]
    assert listed(evaluated([by_step(9.0)], values)) == [[(1, [0, 1, 2])]]  # the farthest over
    two = [by_step(9.0), replace(by_step(9.0), code="b.b")]
    assert listed(evaluated(two, values)) == [[(1, [0, 1, 2]), (4, [3, 4, 5])]]
    far_warning = replace(
        limits_rule("a.a", Limits(high=np.array([1.0, 4.0, 1.0]), critical_high=np.array([9.0, 4.5, 9.0]))),
        slots=by_step(9.0).slots,
    )
    assert listed(evaluated([far_warning], values)) == [[(1, [0, 1, 2])]]  # critical, though the least over


@pytest.mark.parametrize("observed, expected", [(1.5, 0.0), (2.0, 0.0), (1.0, 0.0), (3.0, 0.5), (0.5, 0.5)])
def test_what_failed_within_its_limits_is_not_over_them(observed, expected):
    def check(batch):
        return Finding(np.ones((2, batch.n), dtype=bool), np.zeros((2, batch.n), dtype=bool), batch.values)

    rule = replace(
        limits_rule("a.a", Limits(high=9.0)), quantity=None, limits=None, check=check, nominal=Limits(low=1.0, high=2.0)
    )
    assert over(evaluated([rule], [[observed], [observed]])) == [expected, expected]


def test_an_atom_is_measured_by_the_limit_of_the_case_that_decided_it():
    def check(batch):
        failed = np.ones((2, batch.n), dtype=bool)
        return Finding(failed, failed, batch.values, case=np.array([[0], [1]], dtype=np.int8))

    cases = (Case("it is slow", Limits(high=5.0), "", ""),)
    rule = replace(
        limits_rule("a.a", Limits(high=9.0)),
        quantity=None,
        limits=None,
        check=check,
        nominal=Limits(high=2.0),
        cases=cases,
    )
    assert over(evaluated([rule], [[10.0], [10.0]])) == [4.0, 1.0]
