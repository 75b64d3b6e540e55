"""What gui lets `adjudge compare` pair: the rates it gives are those of the runs, and copies are equivalent."""

from __future__ import annotations

import pytest

import adjudge
from adjudge.protocols.gui.comparable import DATASET_COLUMNS
from adjudge.protocols.gui.example import AGENTS, generate


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gui")
    generate(folder / "data", seed=3)
    found = {}
    for agent in AGENTS:
        config = {
            "episodes": [str(folder / "data" / "episodes.jsonl")],
            "predictions": [str(folder / "data" / f"predictions_{agent}.jsonl")],
            "space": "normalized",
            "bbox": "xyxy",
            "resamples": 100,
            "model": agent,
        }
        found[agent] = adjudge.evaluate("gui", config, out=folder / agent, report=False)
    found["again"] = adjudge.evaluate("gui", config, out=folder / "again", report=False)
    found["last"] = found[agent]
    return found


def test_the_compared_rates_are_the_estimates_of_the_runs(runs):
    first, second = (runs[agent] for agent in list(AGENTS)[:2])
    comparison = adjudge.compare(first.path, second.path)
    assert comparison.status == "COMPARABLE"
    found = {metric.name: metric for metric in comparison.pairs[0].metrics}
    assert list(found) == ["fully_correct_rate", "action_type_accuracy", "mean_coord_error"]
    for name in ("fully_correct_rate", "action_type_accuracy"):
        for value, run in ((found[name].a, first), (found[name].b, second)):
            assert value == pytest.approx(run.metrics["metrics"][name]), name
        assert found[name].clusters == first.metrics["metrics"]["num_episodes"]


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_has_the_rates_of_its_run(runs, agent):
    comparison = adjudge.compare(runs[agent].path, runs["again"].path)
    for metric in comparison.pairs[0].metrics[:2]:
        assert metric.a == pytest.approx(runs[agent].metrics["metrics"][metric.name]), metric.name


def test_a_copy_is_equivalent_and_nothing_flipped(runs):
    pair = adjudge.compare(runs["last"].path, runs["again"].path).pairs[0]
    assert pair.identical
    assert {metric.verdict for metric in pair.metrics} == {"equivalent"}
    assert (pair.flipped.lost, pair.flipped.gained) == (0, 0)


def test_the_recording_belongs_to_the_data_set(runs, judge):
    assert set(DATASET_COLUMNS) <= set(runs["last"].column_names)
    said = {"e": ["CLICK(x=0.5, y=0.5)"]}
    one = judge({"e": [{"type": "click", "x": 0.5, "y": 0.5}]}, said)
    other = judge({"e": [{"type": "click", "x": 0.9, "y": 0.5}]}, said)
    with pytest.raises(adjudge.NotComparable, match="carry different labels"):
        adjudge.compare(one.path, other.path)
