"""What a reader of a gui run sees: where the agent misses, how far, beside whom, and in which mode it was judged."""

from __future__ import annotations

import json

import pytest

from adjudge.engine.verify import verify
from adjudge.report.text import summary

CLICK = {"type": "click", "x": 0.5, "y": 0.5, "element": {"id": 7, "bbox": [0.4, 0.4, 0.6, 0.6]}}


@pytest.fixture
def missed(judge):
    recorded = {"a": [CLICK, {"type": "type", "text": "hi"}, {"type": "done"}], "b": [CLICK, {"type": "done"}]}
    said = {"a": ["CLICK(x=0.9, y=0.5)", 'TYPE("ho")', "WAIT()"], "b": ["CLICK(x=0.51, y=0.5)", None]}
    return judge(recorded, said, backend="agent")


def test_the_primary_metrics_are_headlines(missed):
    primary = ["action_type_accuracy", "mean_coord_error", "click_hit_rate", "episode_success_rate"]
    assert missed.metrics["headline"][:4] == primary


def test_where_the_agent_misses_comes_first_and_adds_up(missed):
    table = missed.metrics["sections"][0]
    rows = {row[0]: row[2:8] for row in table["rows"]}
    assert table["place"] == "first"
    assert rows == {
        "click": [2, 1, 1, 0, 0, 0],
        "type": [1, 0, 1, 0, 0, 0],
        "done": [2, 0, 0, 1, 0, 1],
        "all": [5, 1, 2, 1, 0, 1],
    }
    assert all(row[2] == sum(row[3:8]) for row in table["rows"])
    assert summary(missed).index("Where the agent misses: 4 of 5 steps") < summary(missed).index("Estimates")


def test_a_missed_click_says_box_point_and_distance(missed):
    [row] = missed.metrics["sections"][1]["rows"]
    assert row[:5] == ["a#0", "", "(0.5, 0.5)", "[0.4, 0.4, 0.6, 0.6]", "(0.9, 0.5)"]
    assert row[5] == pytest.approx(0.4)
    failed = [atom for atom in missed.atoms(missed.find("a#0")[0]) if atom.failed]
    messages = {atom.rule: atom.message for atom in failed}
    assert messages["gui.click_hit"] == (
        "the point is 0.4 from the target; the radius is 0.05. "
        "the point is (0.9, 0.5), the target (0.5, 0.5), the box [0.4, 0.4, 0.6, 0.6]"
    )
    assert "the box [0.4, 0.4, 0.6, 0.6]" in messages["gui.bbox_hit"]
    assert verify(missed).problems == []


def test_agents_that_know_nothing_stand_beside(missed):
    table = missed.metrics["sections"][2]
    assert [row[0] for row in table["rows"]] == ["agent", "never acts", "always says click"]
    assert table["rows"][1][1] == missed.metrics["baselines"]["null_agent"]["action_type_accuracy"]


def test_the_histogram_counts_every_distance_and_ends_a_bar_at_the_radius(judge):
    points = [(0.5, 0.5), (0.55, 0.5), (0.5501, 0.5), (0.9, 0.5)]
    recorded = {f"e{k}": [CLICK] for k in range(len(points))}
    run = judge(recorded, {f"e{k}": [f"CLICK(x={x}, y={y})"] for k, (x, y) in enumerate(points)})
    [chart] = [chart for chart in run.charts if chart["name"] == "click distances"]
    rows = chart["spec"]["data"]["values"]
    assert sum(row["clicks"] for row in rows) == 4
    assert sum(row["clicks"] for row in rows if row["result"] == "hit") == 2
    assert [row["to"] for row in rows if row["result"] == "hit"][-1] == pytest.approx(0.05)


def test_the_strip_chart_says_how_many_episodes_it_shows(judge):
    many = {f"e{k:02d}": [{"type": "done"}] for k in range(30)}
    run = judge(many, {name: ["DONE()"] for name in many})
    [chart] = [chart for chart in run.charts if chart["name"] == "episodes"]
    assert chart["spec"]["title"]["subtitle"] == "first 24 of 30 episodes by name"


@pytest.mark.parametrize(
    "mode, said, words",
    [("coord", "CLICK([7])", "LOOK LIKE SOM"), ("som", "CLICK(x=0.5, y=0.5)", "LOOK LIKE COORDINATES")],
)
def test_answers_of_the_other_mode_are_a_warning_on_top(judge, mode, said, words):
    run = judge({"a": [CLICK, {"type": "done"}]}, {"a": [said, "DONE()"]}, dsl_mode=mode)
    assert any(words in note for note in run.manifest.notes)
    assert words in summary(run).split("Where the agent misses")[0]
    right = judge(
        {"a": [CLICK, {"type": "done"}]}, {"a": [said, "DONE()"]}, dsl_mode="som" if mode == "coord" else "coord"
    )
    assert not any("LOOK LIKE" in note for note in right.manifest.notes)


def test_scenarios_that_differ_only_in_case_are_different(judge):
    episodes = [
        {"episode_id": name, "scenario": scenario, "steps": [{"step": 0, "action": {"type": "done"}}]}
        for name, scenario in (("a", "Login"), ("b", "login"))
    ]
    run = judge(episodes, {"a": ["DONE()"], "b": ["WAIT()"]})
    slices = run.metrics["metrics_by_scenario"]
    assert {name: part["action_type_accuracy"] for name, part in slices.items()} == {"Login": 1.0, "login": 0.0}
    assert verify(run).problems == []
    assert json.dumps(slices)
