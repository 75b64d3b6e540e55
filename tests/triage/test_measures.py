"""Measures against scikit-learn and against figures worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import (
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    log_loss,
    matthews_corrcoef,
    roc_auc_score,
)

from adjudge.errors import ConfigError
from adjudge.stats.proportions import wilson

KEY = "m|no-tools"


@pytest.fixture
def noisy(record):
    """400 records of a classifier that abstains, fails and is unsure, from a fixed seed."""
    random = np.random.default_rng(5)
    rows = []
    for number in range(400):
        label = "fake" if random.random() < 0.4 else "real"
        other = "real" if label == "fake" else "fake"
        word = random.choice([label, label, label, other, "uncertain"])
        rows.append(record(number, label, str(word), round(float(random.uniform(0.3, 0.99)), 3)))
    return rows


def test_against_scikit_learn(judge, noisy, trial):
    block = trial(judge(noisy))
    answered = [row for row in noisy if row["prediction"] != "uncertain"]
    truth, said = [r["label"] for r in answered], [r["prediction"] for r in answered]
    right = np.array([r["label"] == r["prediction"] for r in answered])
    confidence = np.array([r["confidence"] for r in answered])
    assert block["f1_fake"] == pytest.approx(f1_score(truth, said, pos_label="fake"))
    assert block["f1_real"] == pytest.approx(f1_score(truth, said, pos_label="real"))
    assert block["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, said))
    assert block["mcc"] == pytest.approx(matthews_corrcoef(truth, said))
    assert block["brier"] == pytest.approx(brier_score_loss(right, confidence))
    assert block["log_loss"] == pytest.approx(log_loss(right, confidence))
    assert block["auroc_confidence"] == pytest.approx(roc_auc_score(right, confidence))


def test_every_rate_has_a_wilson_interval(judge, noisy):
    run = judge(noisy)
    estimates = run.estimates
    fakes = sum(row["label"] == "fake" for row in noisy)
    caught = sum(row["label"] == row["prediction"] == "fake" for row in noisy)
    expected = wilson(caught, fakes)
    found = estimates["fake_catch_rate", f"configuration={KEY}"]
    assert (found.value, found.low, found.high, found.n) == (expected.value, expected.low, expected.high, fakes)
    for name in ("f1_fake", "f1_real", "balanced_accuracy", "balanced_accuracy_all", "mcc", "ece", "brier", "aurc"):
        estimate = estimates[name, f"configuration={KEY}"]
        assert estimate.low < estimate.value < estimate.high, name
        assert "bootstrap" in estimate.method, name


def test_a_confidence_on_an_edge_belongs_to_the_bin_it_opens(judge, cells):
    run = judge(cells((6, "fake", "fake", 0.3), (4, "real", "fake", 0.3), (5, "real", "real", 0.25)))
    table = run.metrics["configurations"][KEY]["reliability"]
    assert [row["n"] for row in table] == [0, 0, 5, 10, 0, 0, 0, 0, 0, 0]
    block = run.metrics["configurations"][KEY]["per_trial"]["0"]
    assert block["ece"] == pytest.approx((5 * 0.75 + 10 * abs(0.6 - 0.3)) / 15)
    assert block["ece_right_closed"] == pytest.approx(abs(11 - (10 * 0.3 + 5 * 0.25)) / 15)


def test_bins_that_differ_by_convention_are_said(judge, cells):
    run = judge(cells((6, "fake", "fake", 0.3), (4, "real", "fake", 0.3), (3, "real", "fake", 0.25)))
    assert any("ece_right_closed" in note for note in run.metrics["notes"])
    calm = judge(cells((6, "fake", "fake", 0.35), (4, "real", "fake", 0.35)))
    assert not any("ece_right_closed" in note for note in calm.metrics["notes"])


def test_three_trials(judge, record):
    # Sample 0 is right in all three trials, sample 1 in one, sample 2 abstains once, sample 3 is always wrong.
    words = {0: "fff", 1: "frr", 2: "rur", 3: "fff"}
    labels = {0: "fake", 1: "fake", 2: "real", 3: "real"}
    full = {"f": "fake", "r": "real", "u": "uncertain"}
    rows = [
        record(number, labels[number], full[said[t]], 0.6 + 0.1 * t, trial=t)
        for number, said in words.items()
        for t in range(3)
    ]
    run = judge(rows)
    block = run.metrics["configurations"][KEY]
    accuracy = [block["per_trial"][str(t)]["accuracy"] for t in range(3)]
    assert accuracy == [0.75, 0.25, 0.5]
    assert block["summary"]["mean"]["accuracy"] == 0.5
    assert block["summary"]["std"]["accuracy"] == pytest.approx(0.25)
    assert block["summary"]["flip_rate"] == 0.5
    pooled = run.estimates["accuracy", f"configuration={KEY}"]
    assert (pooled.value, pooled.n) == (0.5, 12)
    assert "4 clusters" in pooled.method
    assert run.estimates["accuracy", f"trial={KEY}|0"].value == 0.75
    assert run.metrics["buckets"][f"{KEY}|1"]["abstained"] == 1


def test_trials_repeat_samples_so_intervals_do_not_shrink(judge, noisy):
    once = judge(noisy).estimates
    thrice = judge([{**row, "trial": t} for row in noisy for t in range(3)]).estimates
    for name in ("accuracy", "ece", "brier", "f1_fake", "aurc"):
        a, b = once[name, f"configuration={KEY}"], thrice[name, f"configuration={KEY}"]
        assert b.value == pytest.approx(a.value, rel=0.002), name
        assert (b.high - b.low) == pytest.approx(a.high - a.low, rel=0.25), name


def test_missing_records_count_as_wrong_and_stay_in_n(judge, record, trial, tmp_path, write_lines):
    manifest = write_lines(
        tmp_path / "m.jsonl", [{"id": f"s{n:04d}", "label": "fake" if n < 6 else "real"} for n in range(10)]
    )
    run = judge([record(n, "fake" if n < 6 else "real", "fake") for n in range(8)], manifest=[manifest])
    block = trial(run)
    assert (block["total"], block["missing_count"], block["missing_rate"]) == (10, 2, 0.2)
    assert block["accuracy"] == 0.6
    assert block["coverage_real"] == 0.5
    assert run.metrics["buckets"]["all"]["missing"] == 2
    assert run.record("s0009")["verdict"] == "missing"


def test_a_trial_that_lacks_a_sample_misses_it(judge, record, tmp_path, write_lines, trial):
    manifest = write_lines(tmp_path / "m.jsonl", [{"id": f"s{n:04d}", "label": "fake"} for n in range(3)])
    rows = [record(n, "fake", "fake", trial=t) for t in range(2) for n in range(3) if (t, n) != (1, 2)]
    run = judge(rows, manifest=[manifest])
    assert [trial(run, number=t)["missing_count"] for t in range(2)] == [0, 1]


def test_slices(judge, record):
    rows = [
        record(n, "fake", "fake" if n < 6 else "real", meta={"source": "web" if n < 4 else "app"}) for n in range(8)
    ]
    rows.append(record(8, "real", "real"))
    run = judge(rows, slices=["meta.source"])
    estimates = run.estimates
    assert run.metrics["slices"]["meta.source"] == {"values": {"app": 4, "web": 4, "(none)": 1}, "left_out": 0}
    assert estimates["accuracy", f"slice={KEY},meta.source=web"].value == 1.0
    assert estimates["accuracy", f"slice={KEY},meta.source=app"].value == 0.5
    assert estimates["accuracy", f"slice={KEY},meta.source=(none)"].value == 1.0


def test_renamed_classes_rename_the_metrics(judge, record, trial):
    rows = [record(n, "spam" if n < 3 else "ham", "spam" if n < 2 else "ham") for n in range(6)]
    block = trial(judge(rows, positive="spam", negative="ham"))
    assert block["recall_spam"] == block["spam_catch_rate"] == 2 / 3
    assert block["ham_pass_rate"] == 1.0
    assert block["support"] == {"ham": 3, "spam": 3}
    assert "recall_fake" not in block


def test_prevalence(judge, cells, trial):
    rows = cells((8, "fake", "fake", 0.8), (2, "fake", "real", 0.8), (1, "real", "fake", 0.8), (9, "real", "real", 0.8))
    block = trial(judge(rows, prevalence=0.01))
    assert block["precision_fake_at_prevalence"] == pytest.approx(0.01 * 0.8 / (0.01 * 0.8 + 0.99 * 0.1))
    assert block["precision_real_at_prevalence"] == pytest.approx(0.99 * 0.9 / (0.99 * 0.9 + 0.01 * 0.2))


@pytest.mark.parametrize("fakes, prevalence, warned", [(5, None, True), (5, 0.05, False), (25, None, False)])
def test_unbalanced_classes_are_said(judge, cells, fakes, prevalence, warned):
    run = judge(cells((fakes, "fake", "fake", 0.8), (45, "real", "real", 0.8)), prevalence=prevalence)
    assert any("far from balanced" in note for note in run.metrics["notes"]) == warned


def test_latency_by_cache_state(judge, record):
    def at(number, seconds, hit, **stages):
        timings = {"total_seconds": seconds, **stages}
        return record(number, "fake", "fake", timings=timings, latency_seconds=seconds + 1, cache={"hit": hit})

    rows = [at(n, float(n), False, vision_llm_seconds=0.5, agent_graph_seconds=0.1) for n in range(1, 101)]
    run = judge([*rows, at(101, 0.01, True)])
    latency = run.metrics["configurations"][KEY]["latency"]
    miss = latency["by_cache"]["miss"]
    assert miss["total_seconds"] == {"n": 100, "mean": 50.5, "p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
    assert miss["vision_llm_seconds"]["p50"] == 0.5
    assert miss["agent_graph_seconds"]["n"] == 100
    assert miss["latency_seconds"]["p50"] == 51.0
    assert latency["by_cache"]["hit"]["total_seconds"]["n"] == 1
    assert (miss["model_seconds"]["n"], miss["tool_seconds"]["n"]) == (0, 0)
    assert latency["comparable"] is False
    assert latency["why"] == "1 records came from a cache and 100 did not"
    alone = judge(rows).metrics["configurations"][KEY]["latency"]
    assert (alone["comparable"], alone["why"], alone["possibly_cached"]) == (True, None, 0)


def test_components_as_collect_measures_them(judge, record):
    tools = [{"tool": "ela", "seconds": 0.25}, {"tool": "noise", "seconds": 0.5}]
    rows = [
        record(n, "fake", "fake", timings={"total_seconds": 9.0, "model_seconds": float(n)}, cache={"hit": False})
        | ({"tool_usage": ["ela", "noise"], "tool_details": tools} if n % 2 else {})
        for n in range(1, 11)
    ]
    run = judge(rows)
    miss = run.metrics["configurations"][KEY]["latency"]["by_cache"]["miss"]
    assert miss["model_seconds"] == {"n": 10, "mean": 5.5, "p50": 5.0, "p90": 9.0, "p95": 10.0, "p99": 10.0}
    assert (miss["tool_seconds"]["n"], miss["tool_seconds"]["mean"]) == (5, 0.75)
    charts = {chart["name"]: chart["spec"]["data"]["values"] for chart in run.charts if "data" in chart["spec"]}
    assert [row["group"] for row in charts["latency_components"]] == [
        f"{KEY}, model (n = 10)",
        f"{KEY}, tool (n = 5)",
    ]
    assert run.record("s0003")["timings"]["model_seconds"] == 3.0


def test_unknown_cache_state_is_only_possibly_cached(judge, record):
    rows = [record(n, "fake", "fake", timings={"vision_llm_seconds": 0.1 if n < 3 else 3.0}) for n in range(5)]
    run = judge(rows)
    latency = run.metrics["configurations"][KEY]["latency"]
    assert (latency["comparable"], latency["possibly_cached"]) == (False, 3)
    assert list(latency["by_cache"]) == ["unknown"]


def test_provenance(judge, record):
    whole = {
        "models": {"agent": "a", "vision": "v", "structuring": "s"},
        "prompt_hashes": {"system": "x"},
        "cache": {"hit": False},
        "timestamp": 1.0,
        "run_config": {"temperature": 0.2},
    }
    run = judge(
        [record(0, "fake", "fake", **whole), record(1, "real", "real", models={"agent": "a"}, prompt_hashes={})]
    )
    found = run.metrics["configurations"][KEY]["provenance"]
    assert found["carried"] == {
        "models.agent": 2, "models.vision": 1, "models.structuring": 1, "prompt_hashes": 1, "cache": 1, "timestamp": 1,
        "temperature": 1,
    }  # fmt: skip
    assert "models.agent" not in found["missing"]
    assert found["temperatures"] == [{"value": 0.2, "records": 1}, {"value": None, "records": 1}]
    atoms = [{a.rule: a for a in run.atoms(run.find(s)[0])}["provenance.recorded"] for s in ("s0000", "s0001")]
    assert [(a.outcome, a.observed) for a in atoms] == [("pass", 7.0), ("fail", 1.0)]


def test_tools(judge, record, trial):
    tools = [{"tool": "ela", "seconds": 0.1}, {"tool": "noise", "seconds": 0.2}]
    rows = [record(0, "fake", "fake", tool_usage=["ela", "noise"], tool_details=tools), record(1, "real", "real")]
    block = trial(judge(rows))
    assert block["avg_tool_count"] == 1.0
    assert block["avg_tool_seconds_total"] == (0.1 + 0.2) / 2


@pytest.mark.parametrize(
    "label, said, verdict, cited",
    [
        ("fake", {"prediction": "fake"}, "right", 5),
        ("fake", {"prediction": "real"}, "wrong", ["triage.slip"]),
        ("real", {"prediction": "fake"}, "wrong", ["triage.false_flag"]),
        ("real", {"prediction": "uncertain"}, "abstained", ["triage.answered"]),
        ("real", {"prediction": "no idea"}, "unparsed", ["triage.verdict_word"]),
        ("real", {"prediction": "real", "error": "late"}, "errored", ["triage.error"]),
    ],
)
def test_every_verdict_cites_its_evidence(judge, record, label, said, verdict, cited):
    run = judge([{**record(0, label, None), **said}, record(1, "fake", "fake")])
    found = run.record("s0000")
    assert found["verdict"] == verdict
    rules = [atom["rule"] for atom in found["evidence"] if atom["id"] in found["cites"]]
    assert (len(rules) if cited == 5 else rules) == cited


def test_metrics_are_json_without_nan(judge, noisy):
    text = (judge(noisy).path / "metrics.json").read_text()
    json.loads(text, parse_constant=pytest.fail)


def test_what_no_record_says_is_told_apart_from_what_some_say(judge, record):
    rows = [
        record(n, "fake", "fake", models={"agent": "a"} if n < 3 else None, timestamp="2026-01-01") for n in range(10)
    ]
    notes = judge(rows).metrics["notes"]
    items = "models.vision, models.structuring, prompt_hashes, cache, temperature"
    assert f"no record of m|no-tools carries {items}" in notes
    assert "only some records carry models.agent: m|no-tools (3 of 10)" in notes
    assert not any("timestamp" in note for note in notes)


def test_the_title_says_what_the_judgements_are(judge, record):
    from adjudge.report.view import title

    rows = [
        record(n, "fake", "fake", model=model, use_tools=tools, trial=trial)
        for n in range(4)
        for model in ("hawk", "wren")
        for tools in (False, True)
        for trial in range(3)
    ]
    assert title(judge(rows)) == "triage · 48 judgements · 2 models × 2 modes × 3 trials on 4 samples"
    assert title(judge(rows[:6])) == "triage · 6 judgements · 2 modes × 3 trials on 1 sample"


@pytest.mark.parametrize("key", ["meta.sorce", "sorce", "meta.source.kind"])
def test_a_slice_that_no_record_has_is_refused_with_the_near_ones(judge, record, key):
    rows = [record(n, "fake", "fake", meta={"source": "web", "size": 3}) for n in range(4)]
    with pytest.raises(ConfigError, match=rf"no record has '{key}' to slice by; .*meta\.source"):
        judge(rows, slices=[key])
    assert judge(rows, slices=["meta.source"]).metrics["slices"]["meta.source"]["values"] == {"web": 4}


def test_a_slice_that_only_the_manifest_has(judge, record, tmp_path, write_lines):
    manifest = write_lines(tmp_path / "m.jsonl", [{"id": "s0000", "label": "fake", "meta": {"source": "web"}}])
    run = judge([record(0, "fake", "fake")], slices=["source"], manifest=[manifest])
    assert run.metrics["slices"]["source"]["values"] == {"web": 1}
    with pytest.raises(ConfigError, match=r"did you mean meta\.source"):
        judge([record(0, "fake", "fake")], slices=["sauce"], manifest=[manifest])
