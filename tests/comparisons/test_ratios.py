"""Ratios such as F1: paired by sample, each with a base of its own."""

from __future__ import annotations

import numpy as np
import pytest

from adjudge.comparisons.comparison import compare
from adjudge.comparisons.outcomes import Outcome
from adjudge.errors import RunError

HIT = {"where": {"label": "fake", "answer": "fake"}, "weight": 2.0}
F1 = {
    "name": "f1",
    "kind": "ratio",
    "hits": [HIT],
    "base": [HIT, {"where": {"label": "real", "answer": "fake"}}, {"where": {"label": "fake", "answer": "real"}}],
}
ANSWERED = {
    "name": "accuracy_answered",
    "kind": "ratio",
    "hits": [{"where": {"label": word, "answer": word}} for word in ("fake", "real")],
    "base": [{"where": {"answer": ["fake", "real"]}}],
}


@pytest.fixture
def runs(make_run):
    def make(a, b, labels, trials=1, top=None, names=("a", "b")):
        labelled = np.repeat(labels, trials)
        return [
            make_run(
                name,
                {"m": (np.array(said) == labelled).tolist()},
                labels=labels,
                trials=trials,
                columns={"answer": {"m": list(said)}},
                top={"comparable": [F1, ANSWERED], **(top or {})},
            )
            for name, said in zip(names, (a, b), strict=True)
        ]

    return make


def answers(random, labels, wrong, abstain):
    flipped = np.where(np.array(labels) == "fake", "real", "fake")
    said = np.where(random.random(len(labels)) < wrong, flipped, labels)
    return np.where(random.random(len(labels)) < abstain, "uncertain", said).tolist()


def test_values_and_differences_are_those_of_the_counts(runs):
    random = np.random.default_rng(0)
    labels = ["fake", "real"] * 150
    a, b = answers(random, labels, 0.3, 0.2), answers(random, labels, 0.1, 0.1)
    comparison = compare(*runs(a, b, labels))
    f1, answered = comparison.pairs[0].metrics
    for value, said in ((f1.a, a), (f1.b, b)):
        pairs = list(zip(labels, said, strict=True))
        tp, fp, fn = (pairs.count(cell) for cell in (("fake", "fake"), ("real", "fake"), ("fake", "real")))
        assert value == pytest.approx(2 * tp / (2 * tp + fp + fn))
    right = [sum(x == y for x, y in zip(labels, said, strict=True)) for said in (a, b)]
    given = [sum(y != "uncertain" for y in said) for said in (a, b)]
    assert (answered.a, answered.b) == pytest.approx((right[0] / given[0], right[1] / given[1]))
    assert f1.difference.value == pytest.approx(f1.b - f1.a)
    assert f1.difference.low < f1.difference.value < f1.difference.high
    assert (f1.verdict, answered.verdict) == ("better", "better")
    assert f1.test == "swap, 20000 patterns"
    assert f1.discordant is None
    # Rows that are in neither base are no pairs of the ratio.
    assert answered.n == sum((x, y) != ("uncertain", "uncertain") for x, y in zip(a, b, strict=True))


def test_trials_of_a_sample_are_one_unit(runs):
    random = np.random.default_rng(1)
    labels = ["fake", "real"] * 40
    a, b = answers(random, labels, 0.3, 0.0), answers(random, labels, 0.15, 0.0)
    once = compare(*runs(a, b, labels)).pairs[0].metrics[0]
    more = runs(np.repeat(a, 3), np.repeat(b, 3), labels, trials=3, names=("c", "d"))
    thrice = compare(*more).pairs[0].metrics[0]
    assert (thrice.n, thrice.clusters) == (3 * once.n, once.n)
    assert thrice.p == pytest.approx(once.p, abs=0.02)
    width = [metric.difference.high - metric.difference.low for metric in (once, thrice)]
    assert width[1] == pytest.approx(width[0], rel=0.15)
    assert thrice.detectable.value == pytest.approx(once.detectable.value, rel=0.05)


def test_identical_runs_are_equivalent_and_nothing_flipped(runs):
    random = np.random.default_rng(2)
    labels = ["fake", "real"] * 30
    a = answers(random, labels, 0.3, 0.2)
    pair = compare(*runs(a, a, labels)).pairs[0]
    assert pair.identical
    assert {metric.verdict for metric in pair.metrics} == {"equivalent"}
    assert (pair.flipped.lost, pair.flipped.gained) == (0, 0)


def test_within_the_margin_is_equivalent(runs):
    labels = ["fake", "real"] * 400
    a = ["real" if n % 10 == 0 else word for n, word in enumerate(labels)]
    b = ["real" if n % 10 == 2 else word for n, word in enumerate(labels)]
    both = runs(a, b, labels)
    f1 = compare(*both, margin=0.05, metrics=["f1"]).pairs[0].metrics[0]
    assert (f1.verdict, f1.margin) == ("equivalent", 0.05)
    strict = compare(*both, margin=0.001, metrics=["f1"]).pairs[0].metrics[0]
    assert strict.verdict == "inconclusive"


def test_null_where_one_side_has_no_base(runs):
    labels = ["fake", "real"] * 5
    f1 = compare(*runs(["uncertain"] * 10, labels, labels), metrics=["accuracy_answered"]).pairs[0].metrics[0]
    assert (f1.a, f1.b, f1.difference.value, f1.p) == (None, 1.0, None, None)
    assert (f1.verdict, f1.why) == ("inconclusive", "the statistic is undefined for one of the two")


def test_what_is_left_to_a_request_is_compared_only_then(runs):
    labels = ["fake", "real"] * 20
    both = runs(labels, labels[::-1], labels, top={"comparable": [ANSWERED, {**F1, "on_request": True}]})
    assert [metric.name for metric in compare(*both).pairs[0].metrics] == ["accuracy_answered"]
    assert [metric.name for metric in compare(*both, metrics=["f1"]).pairs[0].metrics] == ["f1"]


def test_a_ranking_by_a_ratio(runs, make_run):
    random = np.random.default_rng(3)
    labels = ["fake", "real"] * 100
    a, b = runs(answers(random, labels, 0.4, 0.0), answers(random, labels, 0.02, 0.0), labels)
    middle = answers(random, labels, 0.2, 0.0)
    c = make_run(
        "c",
        {"m": [True] * 200},
        labels=labels,
        columns={"answer": {"m": middle}},
        top={"comparable": [F1, ANSWERED]},
    )
    first = compare(a, b, c).rankings[0]
    assert (first.metric, [place.name for place in first.places]) == ("f1", ["b", "c", "a"])


@pytest.mark.parametrize(
    "listed, said",
    [
        ({"name": "x", "kind": "ratio", "hits": [HIT]}, "needs `hits` and `base`"),
        ({"name": "x", "kind": "mean"}, "needs a `column`"),
        ({**F1, "base": [{"where": {"nowhere": "x"}}]}, "reads answer, nowhere, which samples.parquet does not have"),
    ],
)
def test_wrong_declarations(make_run, listed, said):
    both = [make_run(name, {"m": [True, False]}, top={"comparable": [listed]}) for name in "ab"]
    with pytest.raises(RunError, match=said):
        compare(*both)


def test_a_column_that_must_hold_the_same_as_another():
    import pyarrow as pa

    rows = pa.table({"x": pa.array(["a", "b", None, "c"]).dictionary_encode(), "y": ["a", "c", "a", None]})
    same = Outcome(name="same", column="x", same_as="y", kind="binary")
    assert np.array_equal(same.values(rows), [1.0, 0.0, np.nan, np.nan], equal_nan=True)
