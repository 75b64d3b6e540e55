"""Declared metrics: families, titles, what a run stores of them, and declarations that are refused."""

import pytest

from adjudge.stats.estimate import Metric, count, declaration, headline, share, stored

METRICS = (
    share("recall_*", "recall of {}", headline=True),
    share("accuracy", headline=True),
    share("recall_at_5", "recall at five"),
    Metric("mae_*", unit="ft", low=0.0, better="lower"),
    Metric("mae_worst_*", unit="m", low=0.0, better="lower", headline=True),
    count("only_in_*"),
)


@pytest.mark.parametrize(
    "name, title, unit, better",
    [
        ("accuracy", "accuracy", "%", "higher"),
        ("recall_fake", "recall of fake", "%", "higher"),
        ("recall_at_5", "recall at five", "%", "higher"),  # the metric of that name, not the family
        ("mae_p95", "mae p95", "ft", "lower"),
        ("mae_worst_field", "mae worst field", "m", "lower"),  # the family with the longer name
        ("only_in_gold", "only in gold", "", "lower"),
    ],
)
def test_a_name_finds_its_declaration(name, title, unit, better):
    metric = declaration(METRICS, name)
    assert (metric.name, metric.title, metric.unit, metric.better) == (name, title, unit, better)


@pytest.mark.parametrize("name", ["recall_", "recall", "precision", "xaccuracy", "accuracy_", ""])
def test_a_name_that_nothing_declares(name):
    assert declaration(METRICS, name) is None


def test_what_stars_stand_for_may_hold_dots():
    assert declaration([share("grade_a.*", "grade A in {}")], "grade_a.safety_first").title == "grade A in safety first"


def test_what_is_stored_with_a_run():
    assert stored(METRICS, ["mae_p95", "unknown", "mae_p95", "accuracy"]) == {
        "mae_p95": {"title": "mae p95", "unit": "ft", "low": 0.0, "high": None, "better": "lower"},
        "accuracy": {"title": "accuracy", "unit": "%", "low": 0.0, "high": 1.0, "better": "higher"},
    }


def test_headlines_come_in_the_order_of_the_declarations():
    names = ["mae_worst_field", "accuracy", "recall_real", "mae_p95", "recall_at_5", "recall_fake", "accuracy"]
    assert headline(METRICS, names) == ["recall_real", "recall_fake", "accuracy", "mae_worst_field"]


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"name": ""}, "at most one"),
        ({"name": "a_*_*"}, "at most one"),
        ({"name": "a", "better": "up"}, "better is 'up'"),
        ({"name": "a", "low": 1.0, "high": 1.0}, "not below"),
    ],
)
def test_a_wrong_declaration_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Metric(**wrong)
