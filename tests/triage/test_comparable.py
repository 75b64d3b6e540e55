"""What triage lets `adjudge compare` pair: the rates it gives are those of the run itself."""

from __future__ import annotations

import pytest

import adjudge
from adjudge.protocols.base import protocol
from adjudge.protocols.triage.comparable import factors

A, B = "wren-mini|tools", "hawk-1|tools"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("triage")
    return adjudge.evaluate("triage", protocol("triage").example(folder / "example", 0), out=folder / "run")


def test_the_compared_rates_are_the_estimates_of_the_run(run):
    comparison = adjudge.compare(f"{run.path}::{A}", f"{run.path}::{B}")
    found = {metric.name: metric for metric in comparison.pairs[0].metrics}
    assert found.pop("latency_seconds").clusters is not None
    assert list(found) == ["fake_catch_rate", "real_pass_rate", "coverage", "accuracy"]
    for name, metric in found.items():
        assert metric.clusters is not None
        for value, configuration in ((metric.a, A), (metric.b, B)):
            assert value == pytest.approx(run.metrics["metrics"][f"{configuration}/{name}"])


def test_mixed_caches_leave_latency_out(run):
    cached, fresh = "wren-mini|no-tools", "hawk-1|no-tools"
    comparison = adjudge.compare(f"{run.path}::{cached}", f"{run.path}::{fresh}")
    assert comparison.pairs[0].latency.compared is False
    assert f"{cached} mixes cached and uncached answers" in comparison.pairs[0].latency.why


def test_model_and_tools_together_are_two_factors(run):
    with pytest.raises(adjudge.NotComparable, match="more than one factor varies"):
        adjudge.compare(f"{run.path}::{A}", f"{run.path}::hawk-1|no-tools")


def test_factors_by_the_name_of_a_configuration():
    assert factors(["m|tools", "m|no-tools"]) == {
        "m|tools": {"model": "m", "tools": True},
        "m|no-tools": {"model": "m", "tools": False},
    }
