"""Measures of score runs against outside references: calibration, clusters, the null rater, the ranking."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

import adjudge
from adjudge.errors import InputError
from adjudge.protocols.score import measure
from adjudge.stats.proportions import wilson


def records(n, seed, **more):
    """Scores of one model with confidences that are too high."""
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.uniform(0.05, 1.0, n), 3)
    right = rng.random(n) < 0.8 * confidence
    return [
        {"id": f"q{i}", "model": "m", "score": "CI"[int(not right[i])], "confidence": float(confidence[i]), **more}
        for i in range(n)
    ]


def test_calibration_is_that_of_the_scored_attempts_with_a_confidence(write, judge, value):
    rows = records(400, 1)
    others = [{"id": "e", "model": "m", "error": "x", "confidence": 0.9}, {"id": "n", "model": "m", "score": "C"}]
    run = judge(write([*rows, *others]))
    confidence = np.array([row["confidence"] for row in rows])
    right = np.array([row["score"] == "C" for row in rows])
    assert value(run, "brier", "m") == pytest.approx(brier_score_loss(right, confidence), abs=1e-12)
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = [abs(right[bins == b].sum() - confidence[bins == b].sum()) for b in range(10)]
    assert value(run, "ece", "m") == pytest.approx(sum(gaps) / 400, abs=1e-12)
    estimate = run.estimates["brier", "model=m"]
    assert estimate.n == 400
    assert estimate.low < estimate.value < estimate.high


def test_the_risk_coverage_area_of_distinct_confidences(write, judge, value):
    rows = [{"id": f"q{i}", "model": "m", "score": i % 3 != 0, "confidence": (i + 1) / 50} for i in range(40)]
    run = judge(write(rows))
    wrong = np.array([i % 3 == 0 for i in range(40)])[::-1]  # the most confident first
    assert value(run, "aurc", "m") == pytest.approx(float(np.mean(np.cumsum(wrong) / np.arange(1, 41))), abs=1e-12)


def test_clusters_widen_the_interval_and_nothing_else(write, judge):
    rows = [{"id": f"q{i}", "model": "m", "score": int(i // 10 % 2)} for i in range(200)]
    alone = judge(write(rows)).estimates["pass_rate", "model=m"]
    clustered = judge(write([{**row, "cluster": f"c{i // 10}"} for i, row in enumerate(rows)], "clustered.jsonl"))
    together = clustered.estimates["pass_rate", "model=m"]
    reference = wilson(100, 200)
    assert (alone.value, alone.low, alone.high) == (reference.value, reference.low, reference.high)
    assert together.value == alone.value
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_trials_of_an_item_are_a_cluster(write, judge):
    rows = [{"id": f"q{i}", "model": "m", "trial": t, "score": int(i % 2)} for i in range(50) for t in (1, 2, 3)]
    estimate = judge(write(rows)).estimates["pass_rate", "model=m"]
    assert estimate.value == 0.5
    independent = wilson(75, 150)
    assert estimate.high - estimate.low > 1.5 * (independent.high - independent.low)


def test_the_null_rater_answers_the_most_frequent_target_of_each_task(write, judge, value):
    targets = {"a": "XXXXY", "b": "YYYZZ"}
    rows = [
        {"id": f"q{i}", "task": task, "model": "m", "trial": t, "score": 1, "target": target}
        for task, letters in targets.items()
        for i, target in enumerate(letters)
        for t in (1, 2)
    ]
    run = judge(write(rows))
    assert value(run, "constant_answer_rate", "m") == 0.7
    assert run.estimates["constant_answer_rate", "model=m"].n == 10


def test_models_are_ranked_with_ties(write, judge):
    rng = np.random.default_rng(3)
    rows = [
        {"id": f"q{i}", "model": model, "score": int(rng.random() < skill)}
        for i in range(300)
        for model, skill in (("good", 0.9), ("also good", 0.88), ("poor", 0.4))
    ]
    run = judge(write(rows))
    (ranking,) = [section for section in run.metrics["sections"] if section["name"] == "ranking"]
    letters = {row[1]: set(row[3].split()) for row in ranking["rows"]}
    assert letters["good"] & letters["also good"]
    assert not letters["poor"] & (letters["good"] | letters["also good"])
    assert ranking["rows"][-1][1] == "poor"
    assert not adjudge.verify(run).problems


def test_a_graded_mean_is_resampled_from_its_seed(write, judge):
    rows = [{"id": f"q{i}", "model": "m", "score": (i % 7) / 6} for i in range(70)]
    path = write(rows)
    first, again, other = (judge(path, seed=seed).estimates["mean_score", "model=m"] for seed in (1, 1, 2))
    assert first.value == pytest.approx(0.5, abs=1e-15)
    assert (first.low, first.high) == (again.low, again.high)
    assert (first.low, first.high) != (other.low, other.high)
    assert first.low < 0.5 < first.high


def test_a_limit_judges_the_first_records_and_calls_none_of_the_others_missing(write, judge):
    rows = [{"id": f"q{i}", "model": model, "score": 1} for i in range(20) for model in ("a", "b")]
    counts = judge(write(rows), limit=5).metrics["buckets"]
    assert (counts["all"]["n"], counts["all"]["missing"]) == (5, 0)


def test_a_missing_attempt_stands_in_the_slice_and_the_cluster_of_its_item(write, judge, value):
    rows = [
        {
            "id": f"q{i}",
            "model": model,
            "score": 1,
            "target": "AB"[i % 2],
            "cluster": f"c{i // 4}",
            "meta": {"of": "xy"[i % 2]},
        }
        for model in "ab"
        for i in range(20)
        if model == "a" or i % 4
    ]
    run = judge(write(rows), slices=["meta.of"])
    assert value(run, "pass_rate", "b", "slice=b,meta.of=x") == 0.5
    assert run.estimates["pass_rate", "model=b"].method.endswith("5 clusters")
    assert value(run, "constant_answer_rate", "b") == 0.5


def test_a_comparison_takes_a_sample_without_a_cluster_as_one(write, judge):
    rows = [
        {"id": f"q{i}", "model": model, "score": int(i % 3 > 0), **({"cluster": "c"} if i < 2 else {})}
        for model in "ab"
        for i in range(50)
    ]
    assert adjudge.compare(judge(write(rows)).path).pairs[0].metrics[0].clusters == 49


def test_a_plain_margin_is_a_share_of_the_range(write, judge):
    rows = [{"id": f"q{i}", "model": model, "score": i / 60} for model in "ab" for i in range(50)]
    run = judge(write(rows), range=[0.0, 2.0])
    assert adjudge.compare(run.path, margin=0.1).pairs[0].metrics[0].margin == 0.2


def test_the_range_is_a_flag_from_python_too(write):
    run = adjudge.evaluate("score", logs=write([{"id": "a", "model": "m", "error": "x"}]), range=[0.0, 5.0])
    assert run.estimates["mean_score_high", "model=m"].value == 5.0


def test_labels_of_items_that_were_tried_several_times_are_not_counted_several_times(write, judge):
    rng = np.random.default_rng(5)
    once = [{"id": f"q{i}", "model": "m", "score": int(rng.random() < 0.6)} for i in range(120)]
    labels = write([{"id": f"q{i}", "label": int(rng.random() < 0.6)} for i in range(40)], "labels.jsonl")
    again = [{**row, "trial": trial} for row in once for trial in (1, 2, 3, 4)]
    runs = [judge(write(rows, name), truth=[labels]) for rows, name in ((once, "1.jsonl"), (again, "4.jsonl"))]
    for name in ("pass_rate_ppi", "label_agreement"):
        first, second = (run.estimates[name, "model=m"] for run in runs)
        assert second.high - second.low > 0.9 * (first.high - first.low)


def test_what_is_in_no_slice_is_said(write, judge):
    rows = [{"id": f"q{i}", "model": "m", "score": 1, "meta": {"k": f"v{i}"} if i < 60 else {}} for i in range(70)]
    notes = judge(write(rows), slices=["meta.k"]).metrics["notes"]
    assert "--slice meta.k: of its 60 values the 50 most frequent are measured" in notes
    assert "--slice meta.k: 10 of 70 attempts do not have it and are in no slice" in notes


@pytest.mark.parametrize("label", [0.4, "P", "N", 2])
def test_a_label_that_is_neither_right_nor_wrong_is_refused(write, judge, label):
    log = write([{"id": "a", "model": "m", "score": 1}])
    with pytest.raises(InputError, match="neither right"):
        judge(log, truth=[write([{"id": "a", "label": label}], "labels.jsonl")])


def test_a_single_trial_is_no_repetition(write, judge):
    rows = [{"id": f"q{i}", "model": "m", "trial": t, "score": 1} for i in range(3) for t in (1, 2)]
    run = judge(write(rows))
    assert ("flip_rate", "model=m") in run.estimates
    assert not [name for name, where in run.estimates if name == "flip_rate" and where.startswith("trial=")]


def test_an_interval_that_is_not_by_cluster_says_so(write, judge, monkeypatch):
    monkeypatch.setattr(measure, "_MOST_CLUSTERS", 10)
    rows = [
        {"id": f"q{i}", "model": "m", "trial": t, "score": i % 2, "confidence": 0.5} for i in range(20) for t in (1, 2)
    ]
    run = judge(write(rows))
    warnings = {name: run.estimates[name, "model=m"].warnings for name in ("ece", "brier", "aurc")}
    assert [any("too narrow" in text for text in warnings[name]) for name in warnings] == [True, False, True]
