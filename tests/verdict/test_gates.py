"""Gates: what their texts mean, and what comes of every estimate."""

from __future__ import annotations

import pytest

from adjudge.errors import ConfigError
from adjudge.stats.estimate import Estimate
from adjudge.verdict.gates import Gate, judge

HALF = Estimate(value=0.5, low=0.4, high=0.6, n=10, method="wilson")
NO_VALUE = Estimate.null("nothing was answered", n=3)
NO_DATA = Estimate.null("there are no records")
NO_ENDS = Estimate(value=0.5, n=10, method="value, no interval")


@pytest.mark.parametrize(
    "text, metric, on, op, bound",
    [
        ("accuracy >= 0.9", "accuracy", "value", ">=", 0.9),
        (" a/b.low<=-1e-3 ", "a/b", "low", "<=", -0.001),
        ("mean.value > .5", "mean", "value", ">", 0.5),
        ("p.95.high < +2", "p.95", "high", "<", 2.0),
        ("compliance.range == 1", "compliance.range", "value", "==", 1.0),
    ],
)
def test_a_text_names_the_metric_its_end_and_the_bound(text, metric, on, op, bound):
    assert Gate.parse(text) == Gate(text.strip(), metric, op, bound, on)


@pytest.mark.parametrize("text", ["accuracy", "accuracy => 1", ">= 1", "a >= b", "a >= 1 or so", "a >= 1e", ""])
def test_another_text_is_refused(text):
    with pytest.raises(ConfigError, match="gate"):
        Gate.parse(text)


@pytest.mark.parametrize(
    "text, estimate, observed, outcome, why",
    [
        ("m >= 0.5", HALF, 0.5, "pass", None),
        ("m > 0.5", HALF, 0.5, "fail", None),
        ("m <= 0.5", HALF, 0.5, "pass", None),
        ("m < 0.5", HALF, 0.5, "fail", None),
        ("m == 0.5", HALF, 0.5, "pass", None),
        ("m == 0.4", HALF, 0.5, "fail", None),
        ("m.low >= 0.5", HALF, 0.4, "fail", None),
        ("m.high >= 0.5", HALF, 0.6, "pass", None),
        ("m >= 0.5", NO_VALUE, None, "unknown", "nothing was answered"),
        ("m >= 0.5", NO_DATA, None, "unknown", "there are no records"),
        ("m.low >= 0.5", NO_ENDS, None, "unknown", "the estimate has no low end"),
        ("other >= 0.5", HALF, None, "unknown", "there is no estimate 'other'"),
    ],
)
def test_what_comes_of_a_gate(text, estimate, observed, outcome, why):
    gate = Gate.parse(text)
    results, passed = judge([gate], {"m": estimate})
    said = {"metric": gate.metric, "op": gate.op, "bound": gate.bound, "on": gate.on}
    assert results == {text: {**said, "observed": observed, "outcome": outcome, "why": why}}
    assert passed is (outcome == "pass")


@pytest.mark.parametrize("estimate, outcome", [(NO_VALUE, "pass"), (NO_DATA, "unknown")])
def test_what_is_undefined_may_pass_by_declaration_but_never_without_data(estimate, outcome):
    gate = Gate("kappa", "m", ">=", 0.75, undefined="pass")
    assert judge([gate], {"m": estimate})[0]["kappa"]["outcome"] == outcome


def test_all_gates_must_pass():
    good, bad = Gate.parse("m >= 0.5"), Gate.parse("m >= 0.9")
    assert judge([good, bad], {"m": HALF})[1] is False
    assert judge([good], {"m": HALF})[1] is True
