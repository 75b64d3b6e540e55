"""What triage lets `adjudge compare` pair: the rates it gives are those of the run itself."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

import adjudge
from adjudge.protocols.base import protocol
from adjudge.report.comparison import text
from adjudge.stats import selective

A, B = "wren-mini|tools", "hawk-1|tools"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("triage")
    config = protocol("triage").example(folder / "example", 0)
    return adjudge.evaluate("triage", {**config, "resamples": 100}, out=folder / "run", report=False)


def test_the_compared_rates_are_the_estimates_of_the_run(run):
    comparison = adjudge.compare(f"{run.path}::{A}", f"{run.path}::{B}")
    found = {metric.name: metric for metric in comparison.pairs[0].metrics}
    assert found.pop("latency_seconds").clusters is not None
    tested = ["fake_catch_rate", "fake_slip_rate", "real_pass_rate", "real_false_flag_rate", "coverage", "accuracy"]
    tested += ["accuracy_answered", "f1_fake", "f1_real", "balanced_accuracy", "mcc", "ece", "brier", "aurc"]
    assert list(found) == tested
    more = adjudge.compare(f"{run.path}::{A}", f"{run.path}::{B}", metrics=["all"])
    found |= {metric.name: metric for metric in more.pairs[0].metrics if metric.name != "latency_seconds"}
    estimated = {name for name, where in run.estimates if where == f"configuration={A}"}
    assert estimated - found.keys() == {"ece_right_closed", "ece_equal_mass", "flip_rate"}
    for name, metric in found.items():
        assert metric.clusters is not None
        for value, configuration in ((metric.a, A), (metric.b, B)):
            assert value == pytest.approx(run.metrics["metrics"][f"{configuration}/{name}"])


def test_mixed_caches_leave_latency_out(run):
    cached, fresh = "wren-mini|no-tools", "hawk-1|no-tools"
    comparison = adjudge.compare(f"{run.path}::{cached}", f"{run.path}::{fresh}")
    assert comparison.pairs[0].latency.compared is False
    assert f"{cached} mixes cached and uncached answers" in comparison.pairs[0].latency.why


def test_one_run_by_factor_pairs_what_differs_in_it_alone(run):
    comparison = adjudge.compare(run.path, factor="tools")
    assert [(pair.a, pair.b) for pair in comparison.pairs] == [
        ("hawk-1|no-tools", "hawk-1|tools"),
        ("wren-mini|no-tools", "wren-mini|tools"),
    ]
    hawk, wren = comparison.pairs
    assert (hawk.verdict, wren.verdict) == ("better", "better")
    assert (hawk.latency.compared, wren.latency.compared) == (True, False)
    assert comparison.varied == {"tools": [False, True, False, True]}
    assert (comparison.rankings, comparison.n) == ([], 1200)
    assert {metric.name: metric.verdict for metric in hawk.metrics}["latency_seconds"] == "worse"
    models = adjudge.compare(run.path, factor="model")
    assert [(pair.a, pair.b) for pair in models.pairs] == [
        ("hawk-1|no-tools", "wren-mini|no-tools"),
        ("hawk-1|tools", "wren-mini|tools"),
    ]


def test_the_correction_is_over_both_pairs(run):
    both = adjudge.compare(run.path, factor="tools")
    alone = adjudge.compare(f"{run.path}::hawk-1|no-tools", f"{run.path}::hawk-1|tools", factor="tools")
    assert both.tests == alone.tests + len(both.pairs[1].metrics)
    first = [metric.p for metric in both.pairs[0].metrics]
    assert first == [metric.p for metric in alone.pairs[0].metrics]
    assert both.pairs[0].metrics[0].p_holm > alone.pairs[0].metrics[0].p_holm


def test_the_text_of_several_pairs_has_a_paragraph_for_each_and_one_table(run):
    said = text(adjudge.compare(run.path, factor="tools").to_dict())
    paragraphs = [part for part in said.split("\n\n") if ", on 400 samples × 3 trials: " in part]
    assert [part.split(",")[0] for part in paragraphs] == ["hawk-1: tools − no-tools", "wren-mini: tools − no-tools"]
    rows = {line.split("  ")[0].strip(): line for line in said.splitlines()}
    assert "hawk-1: tools − no-tools" in rows["metric"]
    assert "n/a" in rows["latency_seconds, s"]
    assert "worse" in rows["latency_seconds [cache=miss], s"]


def test_model_and_tools_together_are_two_factors(run):
    with pytest.raises(adjudge.NotComparable, match="more than one factor varies"):
        adjudge.compare(f"{run.path}::{A}", f"{run.path}::hawk-1|no-tools")


def test_latency_by_cache_state_where_states_are_mixed(run):
    comparison = adjudge.compare(run.path, factor="tools")
    wren = comparison.pairs[1]
    (latency,) = [metric for metric in wren.metrics if metric.name == "latency_seconds"]
    assert (latency.slice, wren.latency.compared) == ("cache=miss", False)
    rows = run.columns(["sample", "trial", "configuration", "cache", "latency_seconds"]).to_pylist()
    times = {
        (row["sample"], row["trial"], row["configuration"]): row["latency_seconds"]
        for row in rows
        if row["cache"] == "miss" and row["latency_seconds"] is not None
    }
    gaps = [
        times[sample, trial, wren.b] - seconds
        for (sample, trial, name), seconds in times.items()
        if name == wren.a and (sample, trial, wren.b) in times
    ]
    assert (latency.n, latency.difference.value) == (len(gaps), pytest.approx(sum(gaps) / len(gaps)))


def test_a_metric_that_is_none_gets_the_near_ones(run):
    with pytest.raises(
        adjudge.ConfigError, match=r"there is no metric 'slip_rate' to compare \(did you mean 'fake_slip_rate'"
    ):
        adjudge.compare(f"{run.path}::{A}", f"{run.path}::{B}", metrics=["slip_rate"])


def resampled(values, statistic, draws=4000):
    """A plain paired bootstrap by sample: the oracle of the intervals."""
    random = np.random.default_rng(5)
    _, sample = np.unique(values["sample"], return_inverse=True)
    rows_of = [np.flatnonzero(sample == number) for number in range(sample.max() + 1)]
    gaps = []
    for _ in range(draws):
        rows = np.concatenate([rows_of[number] for number in random.integers(0, len(rows_of), len(rows_of))])
        gaps.append(statistic(values, B, rows) - statistic(values, A, rows))
    return np.quantile(gaps, [0.025, 0.975])


def of_mcc(values, name, rows):
    answered = rows[np.isin(values[name]["answer"][rows], ["fake", "real"])]
    return matthews_corrcoef(values["label"][answered], values[name]["answer"][answered])


def of_aurc(values, name, rows):
    own = values[name]
    use = rows[np.isin(own["answer"][rows], ["fake", "real"])]
    return selective.areas(own["confidence"][use], own["answer"][use] == values["label"][use]).aurc


@pytest.mark.parametrize("metric, statistic", [("mcc", of_mcc), ("aurc", of_aurc)])
def test_intervals_are_those_of_a_plain_bootstrap(run, metric, statistic):
    columns = ["sample", "trial", "configuration", "label", "answer", "confidence"]
    table = run.columns(columns).to_pandas().sort_values(["sample", "trial"])
    sides = {name: rows.reset_index(drop=True) for name, rows in table.groupby("configuration", observed=True)}
    values = {key: sides[A][key].to_numpy().astype(str) for key in ("sample", "label")}
    for name in (A, B):
        answers = sides[name]["answer"].to_numpy().astype(str)
        values[name] = {"answer": answers, "confidence": sides[name]["confidence"].to_numpy()}
    (found,) = adjudge.compare(f"{run.path}::{A}", f"{run.path}::{B}", metrics=[metric]).pairs[0].metrics
    low, high = resampled(values, statistic, draws=600)
    width = high - low
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high), abs=0.15 * width)
