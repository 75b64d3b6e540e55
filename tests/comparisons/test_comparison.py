"""compare(): tests by data type, corrections, verdicts, flips, slices, trials, rankings; recomputed by other means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from adjudge.comparisons.comparison import compare
from adjudge.errors import ConfigError, NotComparable

PASSING = {"name": "accuracy", "column": "bucket", "kind": "binary", "equals": "passed"}
SCORE = {"name": "score", "column": "score", "kind": "mean", "span": 10.0}


def two(make_run, first, second, **options):
    return make_run("a", {"old": first}, **options), make_run("b", {"new": second}, **options)


def metric(comparison, name="pass_rate", where=""):
    (found,) = [item for item in comparison.pairs[0].metrics if (item.name, item.slice) == (name, where)]
    return found


@pytest.mark.parametrize(
    "counts, margin, verdict",
    [
        pytest.param((600, 20, 60, 320), None, "better", id="better"),
        pytest.param((600, 60, 20, 320), None, "worse", id="worse"),
        pytest.param((600, 21, 20, 359), 0.02, "equivalent", id="equivalent"),
        pytest.param((600, 21, 20, 359), None, "inconclusive", id="no margin was stated"),
        pytest.param((60, 3, 6, 31), 0.02, "inconclusive", id="too few"),
        pytest.param((60_000, 200, 400, 39_400), 0.01, "equivalent", id="told apart, but by less than matters"),
    ],
)
def test_verdicts_of_a_binary_outcome(make_run, pairs, counts, margin, verdict):
    found = metric(compare(*two(make_run, *pairs(*counts)), margin=margin))
    both, only_a, only_b, _ = counts
    n = sum(counts)
    assert found.verdict == verdict
    assert found.p == pytest.approx(binomtest(only_b, only_a + only_b).pvalue, rel=1e-9)
    assert (found.a, found.b) == ((both + only_a) / n, (both + only_b) / n)
    assert found.difference.value == pytest.approx((only_b - only_a) / n)
    assert found.difference.method == "newcombe paired score difference"
    assert [test.method for test in found.tests] == [
        "mcnemar exact",
        "mcnemar mid-p",
        "mcnemar chi2, continuity corrected",
    ]
    assert (found.needs is None) == (verdict != "inconclusive")


def test_what_is_needed_would_find_it_and_what_could_be_found_fits_n(make_run, pairs):
    found = metric(compare(*two(make_run, *pairs(60, 3, 6, 31))))
    assert found.needs.to_find == pytest.approx(0.03)
    psi, delta, za, zb = 0.09, 0.03, 1.959964, 0.841621
    expected = (za * math.sqrt(psi) + zb * math.sqrt(psi - delta**2)) ** 2 / delta**2
    assert found.needs.n == math.ceil(expected)
    assert found.detectable.value > 0.03


def test_identical_runs_are_equivalent_however_few_and_nothing_flipped(make_run):
    comparison = compare(*two(make_run, [True, False, True], [True, False, True]))
    assert comparison.pairs[0].identical
    assert metric(comparison).verdict == "equivalent"
    assert comparison.pairs[0].flipped.samples == []


def test_equal_results_of_different_answers_are_not_identical(make_run):
    a = make_run("a", {"old": [True] * 5}, columns={"answer": {"old": list("abcde")}})
    b = make_run("b", {"new": [True] * 5}, columns={"answer": {"new": list("abcdx")}})
    comparison = compare(a, b, margin=0.02)
    assert not comparison.pairs[0].identical
    assert metric(comparison).verdict == "inconclusive"


def test_equal_results_of_different_texts_are_not_identical(make_run):
    a, b = make_run("a", {"old": [True] * 5}), make_run("b", {"new": [True] * 5}, says=" I think")
    assert not compare(a, b).pairs[0].identical


def test_an_interval_of_no_width_is_no_proof_of_equivalence(make_run):
    options = {"top": {"comparable": [SCORE]}}
    a = make_run("a", {"old": [True] * 5}, columns={"score": {"old": [3.0] * 5}}, **options)
    b = make_run("b", {"new": [True] * 5}, columns={"score": {"new": [3.0] * 5}}, says="!", **options)
    found = metric(compare(a, b, margin=0.1), "score")
    assert found.verdict == "inconclusive"
    assert "no width" in found.why


def test_three_clusters_inside_the_margin_are_too_few(make_run):
    flights, gaps = [f"f{i // 10}" for i in range(30)], [-1.4] * 10 + [0.0] * 10 + [1.4] * 10
    options = {"top": {"comparable": [{**SCORE, "cluster": "flight"}]}}
    a = make_run(
        "a", {"old": [True] * 30}, columns={"score": {"old": [5.0] * 30}, "flight": {"old": flights}}, **options
    )
    columns = {"score": {"new": [5.0 + gap for gap in gaps]}, "flight": {"new": flights}}
    b = make_run("b", {"new": [True] * 30}, columns=columns, **options)
    found = metric(compare(a, b, margin=0.2), "score")
    assert -2.0 < found.difference.low < found.difference.high < 2.0
    assert found.verdict == "inconclusive"  # t = 2 / (1.4 / √3) = 2.47 on 2 degrees of freedom, p = 0.066
    assert metric(compare(a, b, margin=0.25), "score").verdict == "equivalent"  # t = 3.09, p = 0.045


@pytest.mark.parametrize(
    "margin, to_find",
    [
        pytest.param(None, 0.01, id="the observed difference"),
        pytest.param(0.015, 0.015, id="the margin, being larger"),
        pytest.param(0.02, 0.01, id="the margin would be found already, so the observed difference"),
    ],
)
def test_what_the_needed_samples_would_find(make_run, pairs, margin, to_find):
    found = metric(compare(*two(make_run, *pairs(1000, 70, 90, 840)), margin=margin))
    assert found.verdict == "inconclusive"
    assert found.needs.to_find == pytest.approx(to_find)
    assert found.needs.n > 2000


def test_row_order_changes_nothing(make_run, pairs):
    first, second = pairs(30, 5, 12, 13)
    score = np.random.default_rng(1).normal(size=60).tolist()
    options = {"top": {"comparable": [PASSING, SCORE]}}
    a = make_run("a", {"old": first}, columns={"score": {"old": score}}, **options)
    b = make_run("b", {"new": second}, columns={"score": {"new": score[::-1]}}, **options)
    c = make_run("c", {"new": second}, columns={"score": {"new": score[::-1]}}, shuffle=7, **options)
    straight, shuffled = compare(a, b), compare(a, c)
    assert straight.pairs[0].metrics == shuffled.pairs[0].metrics
    assert straight.pairs[0].flipped == shuffled.pairs[0].flipped


def test_means_are_tested_by_pairs_and_a_missing_value_is_no_zero(make_run):
    rng = np.random.default_rng(2)
    base = rng.normal(5, 2, size=80)
    first, second = base.tolist(), (base + 0.3 + rng.normal(0, 0.5, size=80)).tolist()
    second[0] = None
    a = make_run("a", {"old": [True] * 80}, columns={"score": {"old": first}}, top={"comparable": [SCORE]})
    b = make_run("b", {"new": [True] * 80}, columns={"score": {"new": second}}, top={"comparable": [SCORE]})
    found = metric(compare(a, b), "score")
    gaps = np.array(second[1:], dtype=float) - np.array(first[1:])
    assert (found.n, found.left_out, found.verdict) == (79, 1, "better")
    assert found.difference.value == pytest.approx(gaps.mean())
    half = 1.9905 * gaps.std(ddof=1) / math.sqrt(79)
    assert (found.difference.low, found.difference.high) == pytest.approx(
        (gaps.mean() - half, gaps.mean() + half), abs=0.15 * half
    )
    assert found.tests[0].method.startswith("sign flip")


def test_a_lower_latency_is_better_and_a_mixed_one_is_refused(make_run):
    quick, slow = [0.9 + 0.001 * i for i in range(40)], [1.5 + 0.002 * i for i in range(40)]
    same = {"columns": {"latency_seconds": {"old": slow}, "cache": {"old": [False] * 40}}}
    a = make_run("a", {"old": [True] * 40}, **same)
    b = make_run("b", {"new": [True] * 40}, columns={"latency_seconds": {"new": quick}, "cache": {"new": [False] * 40}})
    c = make_run("c", {"new": [True] * 40}, columns={"latency_seconds": {"new": quick}, "cache": {"new": [True] * 40}})
    assert metric(compare(a, b), "latency_seconds").verdict == "better"
    refused = compare(a, c)
    assert refused.pairs[0].latency.compared is False
    assert refused.pairs[0].latency.why == "old was not cached, new was cached"
    assert [item.name for item in refused.pairs[0].metrics] == ["pass_rate"]
    with pytest.raises(NotComparable, match="latency is not comparable: old was not cached, new was cached"):
        compare(a, c, metrics=["latency_seconds"])
    forced = compare(a, c, metrics=["latency_seconds"], force=True)
    assert (forced.forced, forced.pairs[0].metrics[0].name) == (True, "latency_seconds")


def test_clusters_widen_the_interval_and_decide_the_test(make_run):
    # Ten flights of 20 samples; the second system gains all of two flights and loses nothing.
    first = [False] * 40 + [True] * 160
    second = [True] * 200
    flights = {"flight": {"old": [f"f{i // 20}" for i in range(200)]}}
    a = make_run("a", {"old": first}, columns=flights)
    b = make_run("b", {"new": second}, columns={"flight": {"new": flights["flight"]["old"]}})
    found = metric(compare(a, b))
    assert found.clusters == 10
    assert found.p == pytest.approx(0.5)  # two flights of one sign among ten: (2/4)
    assert found.tests[1].p < 1e-11  # McNemar, which takes the 40 samples as independent, stands beside it
    assert found.difference.low <= 0.0
    assert found.verdict == "inconclusive"


def test_trials_pair_by_trial_and_cluster_by_sample(make_run):
    first, second = [True, False] * 10, [True, True] * 10
    a, b = two(make_run, first, second, trials=2)
    found = metric(compare(a, b))
    assert (found.n, found.clusters) == (20, 10)
    flip = compare(a, b).pairs[0].flipped.samples[0]
    assert (flip.sample, flip.trial, flip.change) == ("q000000", "1", "gained")


def test_corrections_run_over_all_metrics_and_slices(make_run, pairs):
    first, second = pairs(40, 2, 12, 26)
    labels = ["fake" if index % 2 else "real" for index in range(80)]
    answered = {"name": "coverage", "column": "bucket", "kind": "binary", "equals": ["passed", "failed"]}
    caught = {**PASSING, "name": "catch_rate", "where": {"label": "fake"}}
    a, b = two(make_run, first, second, labels=labels, top={"comparable": [PASSING, answered, caught]})
    comparison = compare(a, b, slices=["label"])
    found = comparison.pairs[0].metrics
    assert [(item.name, item.slice) for item in found] == [
        (name, where) for where in ("", "label=fake", "label=real") for name in ("accuracy", "coverage", "catch_rate")
    ]
    assert comparison.tests == 8  # catch_rate among real samples has no pairs and is no test
    smallest = min(item.p for item in found if item.p is not None)
    assert metric(comparison, "accuracy").p == smallest
    assert metric(comparison, "accuracy").p_holm == pytest.approx(min(1.0, 8 * smallest))
    assert metric(comparison, "catch_rate").n == 40
    assert metric(comparison, "catch_rate", "label=real").difference.why == "no pairs"
    with pytest.raises(ConfigError, match="it is an outcome and cannot be a slice"):
        compare(a, b, slices=["bucket"])
    with pytest.raises(ConfigError, match="has no column 'colour' to slice by"):
        compare(a, b, slices=["colour"])


def test_a_difference_lost_to_the_correction_is_inconclusive(make_run, pairs):
    first, second = pairs(40, 2, 11, 27)
    more = [{**PASSING, "name": f"again{index}"} for index in range(4)]
    a, b = two(make_run, first, second, top={"comparable": [PASSING, *more]})
    assert metric(compare(a, b, metrics=["accuracy"]), "accuracy").verdict == "better"
    assert metric(compare(a, b), "accuracy").verdict == "inconclusive"


def test_margins_by_name_and_by_range(make_run):
    top = {"comparable": [PASSING, SCORE, {**SCORE, "name": "raw", "span": None}]}
    rows = {"old": [True] * 5}, {"new": [True, True, True, True, False]}
    a = make_run("a", rows[0], columns={"score": {"old": [1.0, 2, 3, 4, 5]}}, top=top)
    b = make_run("b", rows[1], columns={"score": {"new": [1.0, 2, 3, 4, 6]}}, top=top)
    found = compare(a, b, margin=0.02, margins={"accuracy": 0.1}).pairs[0].metrics
    assert [item.margin for item in found] == [0.1, 0.2, None]
    with pytest.raises(ConfigError, match="a margin is given for 'speed'"):
        compare(a, b, margins={"speed": 1.0})
    with pytest.raises(ConfigError, match="expected a number above 0"):
        compare(a, b, margin=-0.1)
    with pytest.raises(ConfigError, match=r"alpha is 1\.5"):
        compare(a, b, alpha=1.5)


def test_flips_carry_the_evidence_of_the_side_that_fails(make_run):
    a, b = two(make_run, [True, False, True, False], [False, True, True, False])
    flipped = compare(a, b).pairs[0].flipped
    assert (flipped.lost, flipped.gained) == (1, 1)
    lost, gained = flipped.samples
    assert (lost.sample, lost.fails, lost.bucket_a, lost.bucket_b) == ("q000000", "new", "passed", "failed")
    assert (gained.sample, gained.fails, gained.change) == ("q000001", "old", "gained")
    assert [(item.id, item.message) for item in lost.evidence] == [
        ("new/q000000/quiz.answer/@1", "the answer is wrong")
    ]
    assert [item.id for item in gained.evidence] == ["old/q000001/quiz.answer/@1"]
    assert [flip.evidence is None for flip in compare(a, b, evidence=1).pairs[0].flipped.samples] == [False, True]


def test_on_the_intersection_everything_is_recomputed(make_run):
    a = make_run("a", {"old": [True] * 8 + [False] * 2}, ids=list("abcdefghij"))
    b = make_run("b", {"new": [True] * 6 + [False] * 4}, ids=list("abcdefgxyz"))
    comparison = compare(a, b)
    assert (comparison.status, comparison.n) == ("COMPARABLE_ON_INTERSECTION", 7)
    found = metric(comparison)
    assert (found.n, found.a, found.b) == (7, 1.0, 6 / 7)


def test_force_compares_what_is_shared_and_is_recorded(make_run):
    a = make_run("a", {"old": [True] * 4}, labels=["fake"] * 4)
    b = make_run("b", {"new": [True, True, True, False]}, labels=["real"] * 4)
    with pytest.raises(NotComparable) as refused:
        compare(a, b)
    assert len(refused.value.reasons) == 1
    forced = compare(a, b, force=True)
    assert (forced.status, forced.forced, forced.reasons) == ("NOT_COMPARABLE", True, refused.value.reasons)
    assert metric(forced).b == 0.75
    assert compare(a, a, force=True).forced is False


def test_nothing_shared_cannot_be_forced(make_run):
    a = make_run("a", {"old": [True] * 4}, ids=list("abcd"))
    b = make_run("b", {"new": [True] * 4}, ids=list("wxyz"))
    with pytest.raises(NotComparable, match="share no sample"):
        compare(a, b, force=True)


def test_three_systems_are_ranked_with_their_ties(make_run):
    right = np.zeros((3, 200), dtype=bool)
    right[0, :150], right[1, :147], right[2, :60] = True, True, True
    run = make_run("r", {"best": right[0], "near": right[1], "far": right[2]})
    comparison = compare(run)
    assert [(pair.a, pair.b) for pair in comparison.pairs] == [("best", "far"), ("best", "near"), ("far", "near")]
    (ranking,) = comparison.rankings
    assert [(place.rank, place.name, place.tie_groups) for place in ranking.places] == [
        (1, "best", ["a"]),
        (1, "near", ["a"]),
        (3, "far", ["b"]),
    ]
    assert comparison.tests == 3


def test_a_lower_value_ranks_first_where_lower_is_better(make_run):
    top = {"comparable": [{**PASSING, "name": "false_alarm", "higher_is_better": False}]}
    run = make_run("r", {"m1": [True] * 30, "m2": [False] * 30, "m3": [True] * 15 + [False] * 15}, top=top)
    comparison = compare(run)
    assert [place.name for place in comparison.rankings[0].places] == ["m2", "m3", "m1"]
    assert comparison.pairs[0].metrics[0].verdict == "better"
    assert comparison.pairs[0].flipped.gained == 30


def test_trials_stored_as_models_are_one_system_of_their_configuration(make_run):
    def run(name, first, second):
        models = {f"{name}|0": first, f"{name}|1": second}
        columns = {
            "configuration": dict.fromkeys(models, [name] * 20),
            "trial": {f"{name}|0": [0] * 20, f"{name}|1": [1] * 20},
        }
        return make_run(name, models, columns=columns)

    a = run("old", [True] * 15 + [False] * 5, [True] * 14 + [False] * 6)
    b = run("new", [True] * 20, [True] * 20)
    comparison = compare(a, b)
    found = metric(comparison)
    assert (comparison.pairs[0].a, comparison.pairs[0].b) == ("old", "new")
    assert (found.n, found.clusters, found.a) == (40, 20, 29 / 40)
    assert comparison.pairs[0].flipped.samples[0].evidence[0].id == "old|1/q000014/quiz.answer/@1"
