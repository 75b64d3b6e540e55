"""Measures of a small table of scores, each against the same number made by hand from the flights' counts."""

from __future__ import annotations

import numpy as np
import pytest

from adjudge.protocols.anomaly.batch import ScoreTable, Sequence
from adjudge.protocols.anomaly.judge import decide
from adjudge.protocols.anomaly.metrics import Measures, _f1, slices
from adjudge.stats import bootstrap

OPTIONS = {"seed": 3, "resamples": 200, "level": 0.9}
ROWS = 30
CUT = 0.7


def measures_of(*, score=None, threshold=CUT):
    """One validation flight; four test flights, each clean and under an attack on its last ten rows."""
    items = [Sequence("v", "val", None, None, None)]
    items += [
        Sequence(flight, "test", attack, size, 1) for flight in "abcd" for attack, size in ((None, None), ("bias", 2.0))
    ]
    n = ROWS * len(items)
    label = np.repeat([item.attack is not None for item in items], ROWS) & (np.arange(n) % ROWS >= 20)
    random = np.random.default_rng(8).random(n) if score is None else score(label)
    table = ScoreTable(items, np.arange(0, n + 1, ROWS), np.arange(n) % ROWS * 0.1, random, label.astype(np.int8), [])
    return Measures(table, decide(table, threshold, 1), threshold, OPTIONS)


def by_flight(measures, mask):
    """Rows of test in a mask, by flight."""
    rows = mask[ROWS:].reshape(4, -1)
    return rows.sum(axis=1)


@pytest.fixture(scope="module")
def measures():
    return measures_of()


@pytest.fixture(scope="module")
def whole(measures):
    return {name: estimate for name, _, estimate in measures.slice("", measures.test)}


def test_rates_are_bootstrapped_over_flights(measures, whole):
    over, attacked = measures.table.score > CUT, measures.table.label == 1
    for name, top, bottom in (
        ("recall", over & attacked, attacked),
        ("precision", over & attacked, over),
        ("fpr", over & ~attacked, ~attacked),
    ):
        expected = bootstrap.ratio_of_sums(
            by_flight(measures, top), by_flight(measures, bottom), unit="flight", stream=f"{name}/", **OPTIONS
        )
        assert whole[name] == expected, name


def test_f1_is_that_of_the_summed_counts(measures, whole):
    over, attacked = measures.table.score > CUT, measures.table.label == 1
    tp, fp, fn = (
        int(by_flight(measures, mask).sum()) for mask in (over & attacked, over & ~attacked, ~over & attacked)
    )
    assert whole["f1"].value == pytest.approx(2 * tp / (2 * tp + fp + fn), abs=1e-15)
    assert whole["f1"].low < whole["f1"].value < whole["f1"].high
    assert whole["f1"].n == tp + fn


def test_exceedance_is_of_clean_flights_before_the_n_rule(measures):
    clean = np.array(measures.table.clean("test"))
    rows = np.concatenate([np.arange(ROWS) + ROWS * index for index in clean])
    exceeded = measures.exceedance("").estimate
    assert exceeded.value == pytest.approx((measures.table.score[rows] > CUT).mean(), abs=1e-15)
    assert exceeded.n == rows.size
    assert measures_of(threshold=None).exceedance("").estimate.value is None


def test_average_precision_has_an_interval_for_the_whole_and_none_for_slices(measures, whole):
    assert whole["average_precision"].low < whole["average_precision"].value < whole["average_precision"].high
    [of_attack, _] = slices(measures.table)
    everything = {name: estimate for name, _, estimate in measures.slice(of_attack.name, of_attack.chosen[1:])}
    assert everything["average_precision"].value is not None
    assert everything["average_precision"].low is None


def test_false_alarms_are_counted_by_the_hour_on_clean_flights_alone(measures, whole):
    clean = measures.decisions.take(np.array(measures.table.clean("test"), dtype=np.intp))
    hours = 4 * ROWS * 0.1 / 3600
    assert whole["false_alarms_per_hour"].value == pytest.approx(clean.events.sum() / hours, rel=1e-12)


def test_attacks_that_are_seen_in_their_first_row_take_no_time():
    measures = measures_of(score=lambda label: label.astype(float))
    seen = {name: estimate for name, _, estimate in measures.slice("", measures.test)}
    assert seen["detection_latency_ms.restricted_mean"].value == 0.0
    assert seen["detection_latency_ms.median"].value == 0.0
    assert seen["detection_latency_ms.detected_fraction"].value == 1.0
    assert seen["oracle_f1"].value == 1.0


def test_attacks_that_are_never_seen_have_no_median_and_their_whole_length_as_mean():
    measures = measures_of(score=lambda label: 0.0 * label)
    missed = {name: estimate for name, _, estimate in measures.slice("", measures.test)}
    assert missed["detection_latency_ms.median"].why == "none of 4 attacks is detected"
    assert missed["detection_latency_ms.restricted_mean"].value == pytest.approx(900.0)
    assert missed["detection_latency_ms.detected_fraction"].value == 0.0
    assert missed["precision"].why == "nothing to divide by: no alarm"


def test_without_a_threshold_every_decision_is_null():
    undecided = {name: estimate for name, _, estimate in measures_of(threshold=None).slice("", np.arange(1, 9))}
    for name in ("recall", "precision", "fpr", "f1", "detection_latency_ms.median", "false_alarms_per_hour"):
        assert undecided[name].why == "there is no threshold: no clean validation scores"
    assert undecided["auroc"].value is not None


def test_f1_of_counts_is_0_where_all_is_wrong_and_undefined_where_nothing_is_there():
    sums = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert _f1(sums)[:3].tolist() == [0.0, 0.0, 1.0]
    assert np.isnan(_f1(sums)[3])
