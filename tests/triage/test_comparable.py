"""What triage lets `adjudge compare` pair: the rates it gives are those of the run itself."""

from __future__ import annotations

import pytest

import adjudge
from adjudge.protocols.base import protocol
from adjudge.report.comparison import text

A, B = "wren-mini|tools", "hawk-1|tools"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("triage")
    return adjudge.evaluate("triage", protocol("triage").example(folder / "example", 0), out=folder / "run")


def test_the_compared_rates_are_the_estimates_of_the_run(run):
    comparison = adjudge.compare(f"{run.path}::{A}", f"{run.path}::{B}")
    found = {metric.name: metric for metric in comparison.pairs[0].metrics}
    assert found.pop("latency_seconds").clusters is not None
    names = ["fake_catch_rate", "real_pass_rate", "coverage", "accuracy", "accuracy_answered", "f1_fake"]
    assert list(found) == names
    asked = ["f1_real", *(f"{kind}_{label}" for kind in ("precision", "recall") for label in ("fake", "real"))]
    more = adjudge.compare(f"{run.path}::{A}", f"{run.path}::{B}", metrics=asked)
    found |= {metric.name: metric for metric in more.pairs[0].metrics}
    assert list(found) == names + asked
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
    assert both.tests == alone.tests + 6
    first = [metric.p for metric in both.pairs[0].metrics]
    assert first == [metric.p for metric in alone.pairs[0].metrics]
    assert both.pairs[0].metrics[2].p_holm > alone.pairs[0].metrics[2].p_holm


def test_the_text_of_several_pairs_has_a_paragraph_and_a_row_for_each(run):
    said = text(adjudge.compare(run.path, factor="tools").to_dict())
    paragraphs = [part for part in said.split("\n\n") if " against " in part and ", on 1,200 samples: " in part]
    assert [part.split(",")[0] for part in paragraphs] == [
        "hawk-1|tools against hawk-1|no-tools",
        "wren-mini|tools against wren-mini|no-tools",
    ]
    latency = next(part for part in said.split("\n\n") if part.startswith("latency_seconds"))
    assert "hawk-1|tools against" in latency
    assert "wren-mini" not in latency


def test_model_and_tools_together_are_two_factors(run):
    with pytest.raises(adjudge.NotComparable, match="more than one factor varies"):
        adjudge.compare(f"{run.path}::{A}", f"{run.path}::hawk-1|no-tools")
