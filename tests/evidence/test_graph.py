"""The verifier graph: needs, order, conditions, errors, and columns that survive the disk."""

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pytest

from adjudge.errors import ConfigError, RunError
from adjudge.evidence.atoms import atom_id, atoms
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.rule import Condition, Finding, Limits, Rule, Slot
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import Scope


@dataclass
class Batch:
    """Two quantities."""

    a: np.ndarray
    b: np.ndarray

    @property
    def n(self):
        return len(self.a)


def rule(code, quantity, *, needs=(), high=1.0, **more):
    return Rule(
        code=code,
        title=code,
        scope=Scope.FIELD,
        slots=(Slot("x", 0, (("x", 0),)),),
        needs=needs,
        passed="{observed} of {high}",
        failed="{observed} over {high}",
        quantity=quantity,
        limits=Limits(high=high, critical_high=2 * high),
        **more,
    )


BATCH = Batch(np.array([0.5, 1.5, 2.5]), np.array([0.5, 0.5, 9.0]))
RULES = (
    rule("first.a", lambda batch: batch.a[None]),
    rule("second.b", lambda batch: batch.b[None], needs=("first.a",)),
    rule("third.b", lambda batch: batch.b[None], needs=("second",)),
)


def found(evidence):
    return {
        atom.id: (atom.outcome, atom.severity, atom.observed, atom.why)
        for i in range(evidence.n)
        for atom in atoms(evidence, i, "m", f"s{i}")
    }


def test_a_rule_that_needs_another_is_not_applicable_with_the_reason_whatever_the_order():
    results = [found(VerifierGraph(order).evaluate(BATCH)) for order in permutations(RULES)]
    assert all(result == results[0] for result in results)
    atom = results[0]
    assert atom["m/s0/second.b/x@0"] == ("pass", "INFO", 0.5, None)
    assert atom["m/s1/first.a/x@0"] == ("fail", "WARNING", 1.5, None)
    assert atom["m/s2/first.a/x@0"] == ("fail", "CRITICAL", 2.5, None)
    assert atom["m/s1/second.b/x@0"] == ("not_applicable", "INFO", None, "needs first.a on x")
    # The reason that is handed on is the root, not the rule in between.
    assert atom["m/s1/third.b/x@0"] == ("not_applicable", "INFO", None, "needs first.a on x")


def test_a_cycle_an_unknown_need_and_a_double_code_are_refused_at_load_time():
    with pytest.raises(ConfigError, match=r"circle: a\.a, b\.b"):
        VerifierGraph([rule("a.a", len, needs=("b.b",)), rule("b.b", len, needs=("a.a",))])
    with pytest.raises(ConfigError, match=r"a\.a needs 'nothing', which is no rule"):
        VerifierGraph([rule("a.a", len, needs=("nothing",))])
    with pytest.raises(ConfigError, match=r"a\.a is registered twice"):
        VerifierGraph([rule("a.a", len), rule("a.a", len)])
    with pytest.raises(ConfigError, match=r"a\.a needs itself"):
        VerifierGraph([rule("a.a", len, needs=("a.a",))])


@pytest.mark.parametrize("code", ["nofamily", "A.b", "a.b.c", "a.b c", ""])
def test_a_malformed_code_is_refused(code):
    with pytest.raises(ConfigError, match=r"family\.rule"):
        rule(code, len)


def test_an_exception_in_a_rule_is_an_error_atom_and_the_others_go_on():
    def broken(batch):
        raise ZeroDivisionError("instrument")

    atom = found(VerifierGraph([rule("bad.one", broken), *RULES]).evaluate(BATCH))
    assert atom["m/s0/bad.one/x@0"] == ("error", "INFO", None, "the rule failed: ZeroDivisionError: instrument")
    assert atom["m/s0/first.a/x@0"][0] == "pass"


def test_a_quantity_that_is_not_a_number_is_an_error_and_not_a_pass():
    atom = found(VerifierGraph([rule("a.nan", lambda batch: np.full((1, batch.n), np.nan))]).evaluate(BATCH))
    assert atom["m/s0/a.nan/x@0"] == ("error", "INFO", None, "the measured quantity is not a number")


def test_a_rule_that_returns_another_shape_is_an_error():
    atom = found(VerifierGraph([rule("a.shape", lambda batch: np.zeros((2, batch.n)))]).evaluate(BATCH))
    assert atom["m/s0/a.shape/x@0"][0] == "error"


def test_a_condition_that_does_not_hold_is_not_applicable_with_its_reason():
    slow = Condition(lambda batch: (batch.a < 2)[None], "too fast")
    atom = found(VerifierGraph([rule("a.a", lambda batch: batch.b[None], conditions=(slow,))]).evaluate(BATCH))
    assert atom["m/s1/a.a/x@0"][0] == "pass"
    assert atom["m/s2/a.a/x@0"] == ("not_applicable", "INFO", None, "too fast")


@pytest.mark.parametrize(
    "value, outcome, severity",
    [
        (-0.1, "fail", "WARNING"),
        (0.0, "pass", "INFO"),
        (1.0, "pass", "INFO"),
        (1.1, "fail", "WARNING"),
        (2.0, "fail", "WARNING"),
        (2.1, "fail", "CRITICAL"),
        (-1.1, "fail", "CRITICAL"),
    ],
)
def test_limits_are_strict_on_both_sides(value, outcome, severity):
    limits = Limits(low=0.0, high=1.0, critical_low=-1.0, critical_high=2.0)
    made = Rule(
        code="a.a", title="", scope=Scope.FIELD, slots=(Slot("x", 0),), passed="", failed="",
        quantity=lambda batch: batch.a[None], limits=limits,
    )  # fmt: skip
    (atom,) = found(VerifierGraph([made]).evaluate(Batch(np.array([value]), np.array([0.0])))).values()
    assert atom[:2] == (outcome, severity)


def test_evidence_survives_arrow_and_refuses_foreign_rows():
    graph = VerifierGraph(RULES)
    evidence = graph.evaluate(BATCH)
    table = evidence.to_arrow(7)
    again = Evidence.from_arrow(table, graph.layout)
    assert found(again) == found(evidence)
    assert evidence.differences(again) == []
    assert table.column("sample").to_pylist() == [7, 8, 9] * 3
    with pytest.raises(RunError, match="no multiple of the 3 atoms"):
        Evidence.from_arrow(table.slice(1), graph.layout)
    with pytest.raises(RunError, match="not in the order"):
        Evidence.from_arrow(table.take([1, 0, *range(2, 9)]), graph.layout)
    altered = graph.evaluate(Batch(BATCH.a + 0.25, BATCH.b))
    assert evidence.differences(altered) == ["observed differs on 3 atoms, first sample 0, first.a on x"]


def test_an_atom_id_has_one_reading():
    assert atom_id("a/b", "s@1", "f.r", None, 0) == "a%2Fb/s%401/f.r/@0"
    assert atom_id("a", "b/s@1", "f.r", "x/y (m)", 2) == "a/b%2Fs%401/f.r/x%2Fy (m)@2"


def test_a_finding_carries_its_variant_and_detail():
    from adjudge.evidence.rule import Variant

    made = Rule(
        code="v.ok", title="fine", scope=Scope.SAMPLE, slots=(Slot(None, 0),), passed="fine", failed="broken: {why}",
        variants=(Variant("v.gone", "there", "gone: {why}"),),
        check=lambda _: Finding(
            np.array([[False, True, True]]), np.array([[False, True, True]]),
            variant=np.array([[1, 1, 0]], dtype=np.int8), details={(0, 1): "lost", (0, 2): "bent"},
        ),
    )  # fmt: skip
    evidence = VerifierGraph([made]).evaluate(BATCH)
    messages = [(atom.rule, atom.message) for i in range(3) for atom in atoms(evidence, i, "m", "s")]
    assert messages == [("v.ok", "fine"), ("v.gone", "gone: lost"), ("v.ok", "broken: bent")]


def test_atoms_may_share_a_detail():
    failed = np.array([[True, False, True]])
    finding = Finding(failed, failed, shared=[(0, np.array([0, 2]), "bent")])
    made = Rule(
        code="v.ok",
        title="fine",
        scope=Scope.SAMPLE,
        slots=(Slot(None, 0),),
        passed="fine",
        failed="broken: {why}",
        check=lambda _: finding,
    )
    evidence = VerifierGraph([made]).evaluate(BATCH)
    messages = [atom.message for i in range(3) for atom in atoms(evidence, i, "m", "s")]
    assert messages == ["broken: bent", "fine", "broken: bent"]
