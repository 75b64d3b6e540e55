"""Every metric on cases small enough to be worked out by hand, with every rule about null."""

from __future__ import annotations

import pytest

CLICK = {"type": "click", "x": 0.5, "y": 0.5}
BOXED = {"type": "click", "element": {"id": 3, "bbox": [0.4, 0.4, 0.6, 0.6]}}
DONE = {"type": "done"}
TYPE = {"type": "type", "text": "hello world"}
DRAG = {"type": "drag", "x": 0.1, "y": 0.1, "end_x": 0.9, "end_y": 0.9}

# (name, recorded, predicted, configuration, expected)
CASES = [
    # Types: missing and unparsed are wrong.
    ("all types right", [DONE, DONE], ["DONE()", "DONE()"], {}, {"action_type_accuracy": 1.0, "num_steps": 2}),
    ("missing is wrong", [DONE, DONE], ["DONE()", None], {}, {"action_type_accuracy": 0.5, "missing_steps": 1}),
    ("unparsed is wrong", [DONE, DONE], ["DONE()", "eh"], {}, {"action_type_accuracy": 0.5, "unparsed_steps": 1}),
    ("an unknown type is wrong", [DONE], ["Action: FLY()"], {}, {"action_type_accuracy": 0.0, "unparsed_steps": 0}),
    ("upper case in an action", [DONE], [{"type": "DONE"}], {}, {"action_type_accuracy": 1.0}),
    # Distances: normalised, over click steps with coordinates on both sides.
    (
        "3-4-5",
        [CLICK],
        ["CLICK(x=0.53, y=0.54)"],
        {},
        {
            "mean_coord_error": 0.05,
            "coord_error_count": 1,
            "click_hit_rate": 1.0,
            "click_distance_50th_percentile": 0.05,
        },
    ),
    ("on the radius", [CLICK], ["CLICK(x=0.55, y=0.5)"], {}, {"click_hit_rate": 1.0}),
    ("past the radius", [CLICK], ["CLICK(x=0.5501, y=0.5)"], {}, {"click_hit_rate": 0.0}),
    ("another radius", [CLICK], ["CLICK(x=0.6, y=0.5)"], {"click_radius": 0.1}, {"click_hit_rate": 1.0}),
    (
        "mean of two",
        [CLICK, CLICK],
        ["CLICK(x=0.6, y=0.5)", "CLICK(x=0.5, y=0.7)"],
        {},
        {"mean_coord_error": 0.15, "coord_error_count": 2},
    ),
    (
        "no click has a point",
        [CLICK, DONE],
        ["DONE()", "DONE()"],
        {},
        {"mean_coord_error": None, "coord_error_count": 0, "click_hit_rate": None, "click_hit_rate_all": 0.0},
    ),
    (
        "no click is recorded",
        [DONE],
        ["CLICK(x=0.5, y=0.5)"],
        {},
        {"mean_coord_error": None, "coord_error_count": 0, "click_hit_rate": None, "click_hit_rate_all": None},
    ),
    (
        "one attempt of four scores 1 of those, 0.25 of all",
        [CLICK] * 4,
        ["CLICK(x=0.5, y=0.5)", None, "DONE()", "eh"],
        {},
        {"click_hit_rate": 1.0, "coord_error_count": 1, "click_hit_rate_all": 0.25},
    ),
    (
        "another type with a point still has a distance",
        [CLICK],
        ["DOUBLE_CLICK(x=0.6, y=0.5)"],
        {},
        {"mean_coord_error": 0.1, "coord_error_count": 1, "action_type_accuracy": 0.0},
    ),
    ("the box centre is the target", [BOXED], ["CLICK(x=0.5, y=0.6)"], {}, {"mean_coord_error": 0.1}),
    (
        "the recorded point before the box centre",
        [{**BOXED, "x": 0.5, "y": 0.6}],
        ["CLICK(x=0.5, y=0.6)"],
        {},
        {"mean_coord_error": 0.0},
    ),
    (
        "the nearest of several boxes",
        [{"type": "click", "element": {"bbox": [[0, 0, 0.1, 0.1], [0.8, 0.8, 1, 1]]}}],
        ["CLICK(x=0.9, y=0.8)"],
        {},
        {"mean_coord_error": 0.1, "bbox_hit_rate": 1.0},
    ),
    # Boxes: edges inclusive, no point is a miss.
    ("edge of the box", [BOXED], ["CLICK(x=0.6, y=0.4)"], {}, {"bbox_hit_rate": 1.0, "click_hit_rate": 0.0}),
    ("outside the box", [BOXED], ["CLICK(x=0.61, y=0.5)"], {}, {"bbox_hit_rate": 0.0}),
    (
        "no point is a miss",
        [BOXED, BOXED, BOXED],
        ["CLICK(x=0.5, y=0.5)", "DONE()", None],
        {},
        {"bbox_hit_rate": 1 / 3, "coord_error_count": 1},
    ),
    ("no boxes", [CLICK], ["CLICK(x=0.5, y=0.5)"], {}, {"bbox_hit_rate": None, "click_steps_without_box": 1}),
    ("no prediction has a point", [BOXED, DONE], ["CLICK([3])", "DONE()"], {}, {"bbox_hit_rate": None}),
    (
        "a point anywhere in the file makes it a rate",
        [BOXED, DONE],
        ["CLICK([3])", "CLICK(x=0.1, y=0.1)"],
        {},
        {"bbox_hit_rate": 0.0},
    ),
    # Full correctness by type.
    (
        "drag both ends",
        [DRAG],
        ["DRAG(x=0.1, y=0.12, end_x=0.9, end_y=0.88)"],
        {},
        {"episode_success_rate": 1.0, "drag_hit_rate": 1.0},
    ),
    (
        "drag one end",
        [DRAG],
        ["DRAG(x=0.1, y=0.1, end_x=0.9, end_y=0.8)"],
        {},
        {"episode_success_rate": 0.0, "drag_hit_rate": 0.0},
    ),
    ("drag the other end", [DRAG], ["DRAG(x=0.2, y=0.1, end_x=0.9, end_y=0.9)"], {}, {"episode_success_rate": 0.0}),
    ("no drags", [CLICK], ["CLICK(x=0.5, y=0.5)"], {}, {"drag_hit_rate": None}),
    ("text equal", [TYPE], ['TYPE("hello world")'], {}, {"episode_success_rate": 1.0}),
    ("text other", [TYPE], ['TYPE("hello  world")'], {}, {"episode_success_rate": 0.0, "success_by_types_only": 1.0}),
    ("text by words", [TYPE], ['TYPE(" hello  world")'], {"text": "normalized"}, {"episode_success_rate": 1.0}),
    ("text in another case", [TYPE], ['TYPE("Hello world")'], {"text": "normalized"}, {"episode_success_rate": 0.0}),
    ("select text", [{"type": "select", "text": "A"}], ['SELECT([3], "A")'], {}, {"episode_success_rate": 1.0}),
    ("select other", [{"type": "select", "text": "A"}], ['SELECT([3], "B")'], {}, {"episode_success_rate": 0.0}),
    ("key", [{"type": "key", "key": "ctrl+c"}], ['KEY("Ctrl+C")'], {}, {"episode_success_rate": 1.0}),
    ("key other", [{"type": "key", "key": "ctrl+c"}], ['KEY("ctrl+v")'], {}, {"episode_success_rate": 0.0}),
    ("scroll", [{"type": "scroll", "direction": "down"}], ['SCROLL("down")'], {}, {"episode_success_rate": 1.0}),
    ("scroll other", [{"type": "scroll", "direction": "down"}], ['SCROLL("up")'], {}, {"episode_success_rate": 0.0}),
    ("answer", [{"type": "answer", "text": "42"}], ['ANSWER("41")'], {}, {"episode_success_rate": 0.0}),
    ("wait", [{"type": "wait"}], ["WAIT()"], {}, {"episode_success_rate": 1.0}),
    (
        "a click that misses",
        [CLICK],
        ["CLICK(x=0.7, y=0.5)"],
        {},
        {"episode_success_rate": 0.0, "success_by_types_only": 1.0},
    ),
    ("a hover that misses", [{**CLICK, "type": "hover"}], ["HOVER(x=0.7, y=0.5)"], {}, {"episode_success_rate": 0.0}),
    ("a click nothing can hit", [{"type": "click"}], ["CLICK(x=0.7, y=0.5)"], {}, {"episode_success_rate": 0.0}),
    # Progress and scores.
    (
        "step score counts a missed click, the full score a wrong text too",
        [CLICK, TYPE, DONE, DONE],
        ["CLICK(x=0.9, y=0.5)", 'TYPE("no")', "DONE()", "WAIT()"],
        {},
        {
            "mean_episode_progress": 0.75,
            "mean_episode_step_score": 0.5,
            "mean_episode_full_score": 0.25,
            "action_type_accuracy": 0.75,
            "step_score": 0.5,
            "fully_correct_rate": 0.25,
        },
    ),
    # Out of the declared space: the step fails, the point is neither used nor clamped.
    (
        "outside the space",
        [CLICK, CLICK, BOXED],
        ["CLICK(x=512, y=384)", "CLICK(x=0.5, y=0.5)", "CLICK(x=0.5, y=0.5)"],
        {},
        {
            "out_of_space_steps": 1,
            "coord_error_count": 2,
            "mean_coord_error": 0.0,
            "click_hit_rate_all": 2 / 3,
            "action_type_accuracy": 1.0,
            "mean_episode_step_score": 2 / 3,
        },
    ),
    # Element accuracy exists in SoM mode only.
    ("coordinate mode has no element accuracy", [BOXED], ["CLICK(x=0.5, y=0.5)"], {}, {"element_accuracy": None}),
    (
        "SoM",
        [BOXED, {**TYPE, "element": {"id": 4}}, {**CLICK, "element": {"id": "7"}}, DONE],
        ["CLICK([3])", 'TYPE([5], "hello world")', "CLICK([8])", "DONE()"],
        {"dsl_mode": "som"},
        {
            "element_accuracy": 1 / 3,
            "mean_coord_error": None,
            "click_hit_rate": None,
            "click_hit_rate_all": None,
            "bbox_hit_rate": None,
            "drag_hit_rate": None,
            "coord_error_count": 0,
            "mean_episode_step_score": 0.75,
            "mean_episode_full_score": 0.75,
        },
    ),
    (
        "SoM with points",
        [BOXED],
        ["CLICK(x=0.5, y=0.5)"],
        {"dsl_mode": "som"},
        {"element_accuracy": 0.0, "coord_error_count": 0, "mean_coord_error": None, "episode_success_rate": 0.0},
    ),
    ("SoM drag", [{**DRAG, "element": {"id": 1}}], ["DRAG([1])"], {"dsl_mode": "som"}, {"episode_success_rate": 1.0}),
    ("SoM without elements", [DONE], ["DONE()"], {"dsl_mode": "som"}, {"element_accuracy": None}),
    # Spaces.
    (
        "per mille",
        [{"type": "click", "x": 500, "y": 500}] * 3,
        ["CLICK(x=550, y=500)"] * 3,
        {"space": "per_mille"},
        {"mean_coord_error": 0.05, "click_hit_rate": 1.0},
    ),
    (
        "xywh",
        [{"type": "click", "element": {"bbox": [0.7, 0.7, 0.1, 0.1]}}],
        ["CLICK(x=0.8, y=0.7)"],
        {"bbox": "xywh"},
        {"bbox_hit_rate": 1.0},
    ),
    (
        "pixels without a screen size",
        [{"type": "click", "element": {"bbox": [100, 100, 200, 200]}}, {"type": "click", "x": 5, "y": 5}],
        ["CLICK(x=200, y=150)", "CLICK(x=5, y=5)"],
        {"space": "pixel"},
        {
            "bbox_hit_rate": 1.0,
            "mean_coord_error": None,
            "coord_error_count": 0,
            "click_hit_rate": None,
            "click_hit_rate_all": None,
            "fully_correct_rate": 0.5,
        },
    ),
]


@pytest.mark.parametrize("recorded, predicted, config, expected", [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_by_hand(measured, recorded, predicted, config, expected):
    found = measured({"e": recorded}, {"e": predicted}, **config)
    assert {name: found[name] for name in expected} == {
        name: value if value is None else pytest.approx(value, abs=1e-12) for name, value in expected.items()
    }


def test_pixels_are_normalised_by_the_screen(measured):
    episodes = [
        {
            "episode_id": "e",
            "screen": {"width": 1000, "height": 500},
            "steps": [{"step": 0, "action": {"type": "click", "x": 500, "y": 250}}],
        }
    ]
    found = measured(episodes, {"e": ["CLICK(x=530, y=270)"]}, space="pixel")
    assert found["mean_coord_error"] == pytest.approx(0.05)
    assert found["click_hit_rate"] == 1.0


def test_episodes_are_averaged_apart_from_steps(measured):
    episodes = {"long": [{"type": "wait"}] * 9, "short": [{"type": "done"}]}
    found = measured(episodes, {"long": ["WAIT()"] * 9, "short": ["WAIT()"]})
    assert found["action_type_accuracy"] == 0.9
    assert found["mean_episode_progress"] == 0.5
    assert found["episode_success_rate"] == 0.5
    assert (found["num_episodes"], found["num_steps"]) == (2, 10)


MILESTONES = [
    ({"name": "m", "step": 0, "type": "click"}, "CLICK(x=0.9, y=0.9)", 1.0),
    ({"name": "m", "step": 0, "type": "click"}, "WAIT()", 0.0),
    ({"name": "m", "step": 0, "type": "click"}, None, 0.0),
    ({"name": "m", "step": 0, "type": "click", "max_distance": 0.1}, "CLICK(x=0.6, y=0.5)", 1.0),
    ({"name": "m", "step": 0, "type": "click", "max_distance": 0.1}, "CLICK(x=0.61, y=0.5)", 0.0),
    ({"name": "m", "step": 0, "type": "click", "max_distance": 0.1}, "CLICK([3])", 0.0),
    ({"name": "m", "step": 0, "type": "click", "element": 3}, "CLICK([3])", 1.0),
    ({"name": "m", "step": 0, "type": "click", "element": 3}, "CLICK(x=0.41, y=0.41)", 1.0),
    ({"name": "m", "step": 0, "type": "click", "element": 3}, "CLICK(x=0.3, y=0.5)", 0.0),
    ({"name": "m", "step": 0, "type": "wait"}, "WAIT()", 1.0),
]


@pytest.mark.parametrize("milestone, predicted, rate", MILESTONES)
def test_milestones(measured, milestone, predicted, rate):
    episode = {"episode_id": "e", "milestones": [milestone]}
    episode["steps"] = [{"step": 0, "action": BOXED}, {"step": 1, "action": DONE}]
    assert measured([episode], {"e": [predicted, "DONE()"]})["weak_episode_success_rate"] == rate


def test_all_milestones_must_be_reached_and_an_episode_without_any_is_left_out(measured):
    milestones = [{"name": "a", "step": 0, "type": "done"}, {"name": "b", "step": 1, "type": "done"}]
    steps = [{"step": 0, "action": DONE}, {"step": 1, "action": DONE}]
    episodes = [
        {"episode_id": "half", "milestones": milestones, "steps": steps},
        {"episode_id": "all", "milestones": milestones, "steps": steps},
        {"episode_id": "none", "steps": steps},
    ]
    said = {"half": ["DONE()", "WAIT()"], "all": ["DONE()", "DONE()"], "none": ["DONE()", "DONE()"]}
    assert measured(episodes, said)["weak_episode_success_rate"] == 0.5
    assert measured([episodes[2]], {"none": said["none"]})["weak_episode_success_rate"] is None


def test_state_success_comes_from_outcomes_alone(measured):
    episodes = [
        {"episode_id": name, "success": True, "steps": [{"step": 0, "action": DONE}]} for name in ("a", "b", "c")
    ]
    said = [{"episode_id": n, "step": 0, "raw": "DONE()", "state": {"success": True}} for n in ("a", "b", "c")]
    without = measured(episodes, said)
    assert without["state_success_rate"] is None
    assert without["self_reported_success_rate"] == 1.0
    outcomes = [{"episode_id": "a", "success": True}, {"episode_id": "b", "success": False, "checker": "db"}]
    found = measured(episodes, said, outcomes=outcomes)
    assert found["state_success_rate"] == pytest.approx(1 / 3)
    assert found["missing_outcomes"] == 1


def test_the_last_self_report_of_an_episode_counts(measured):
    said = [
        {"episode_id": "a", "step": 0, "raw": "WAIT()", "state": {"success": True}},
        {"episode_id": "a", "step": 1, "raw": "DONE()", "state": {"success": False, "note": "gave up"}},
        {"episode_id": "b", "step": 0, "raw": "DONE()"},
    ]
    found = measured({"a": [{"type": "wait"}, DONE], "b": [DONE]}, said)
    assert found["self_reported_success_rate"] == 0.0
    assert measured({"b": [DONE]}, said[2:])["self_reported_success_rate"] is None


def test_slices_by_type_scenario_and_platform(judge):
    episodes = [
        {"episode_id": "a", "scenario": "login", "platform": "web", "steps": [{"step": 0, "action": CLICK}]},
        {"episode_id": "b", "scenario": "shop", "steps": [{"step": 0, "action": DONE}, {"step": 1, "action": CLICK}]},
    ]
    found = judge(episodes, {"a": ["CLICK(x=0.5, y=0.5)"], "b": ["WAIT()", "CLICK(x=0.9, y=0.5)"]}).metrics
    by_type = found["metrics_by_action_type"]
    assert by_type["click"]["num_steps"] == 2
    assert by_type["click"]["action_type_accuracy"] == 1.0
    assert by_type["click"]["click_hit_rate"] == 0.5
    assert by_type["click"]["mean_coord_error"] == pytest.approx(0.2)
    assert by_type["done"]["action_type_accuracy"] == 0.0
    assert by_type["done"]["click_hit_rate"] is None
    assert found["metrics_by_scenario"]["shop"]["action_type_accuracy"] == 0.5
    assert found["metrics_by_scenario"]["shop"]["num_episodes"] == 1
    assert found["metrics_by_scenario"]["login"]["episode_success_rate"] == 1.0
    assert list(found["metrics_by_platform"]) == ["web"]


def test_every_rate_has_an_interval_around_it(measured):
    episodes = {f"e{k}": [CLICK, DONE] for k in range(12)}
    said = {f"e{k}": [f"CLICK(x={0.5 + 0.01 * k}, y=0.5)", "DONE()" if k % 3 else "WAIT()"] for k in range(12)}
    found = measured(episodes, said)
    for name in ("action_type_accuracy", "click_hit_rate", "mean_coord_error", "episode_success_rate"):
        low, high = found[f"{name}_ci"]
        assert low < found[name] < high
    assert found["bbox_hit_rate_ci"] is None


def test_intervals_are_clustered_by_episode(measured):
    """The same right and wrong steps, bunched in episodes or spread over them."""
    wait = {"type": "wait"}
    bunched = {f"e{k}": [wait] * 10 for k in range(10)}
    said_bunched = {f"e{k}": ["WAIT()" if k < 5 else "DONE()"] * 10 for k in range(10)}
    spread = {f"e{k}": ["WAIT()"] * 5 + ["DONE()"] * 5 for k in range(10)}
    first, second = measured(bunched, said_bunched), measured(bunched, spread)
    assert first["action_type_accuracy"] == second["action_type_accuracy"] == 0.5
    width = [m["action_type_accuracy_ci"][1] - m["action_type_accuracy_ci"][0] for m in (first, second)]
    assert width[0] > 1.5 * width[1]


def test_baselines(judge):
    episodes = {"a": [CLICK, CLICK, {"type": "wait"}, DONE], "b": [DONE]}
    found = judge(episodes, {"a": ["CLICK(x=0.5, y=0.5)"], "b": ["DONE()"]}).metrics
    null, majority = found["baselines"]["null_agent"], found["baselines"]["majority_type_agent"]
    assert null["action_type_accuracy"] == pytest.approx(3 / 5)
    assert null["mean_episode_progress"] == pytest.approx((0.5 + 1) / 2)
    assert null["episode_success_rate"] == 0.5
    assert majority["type"] == "click"
    assert majority["action_type_accuracy"] == pytest.approx(2 / 5)
    assert majority["episode_success_rate"] == 0.0


def test_a_scenario_that_the_null_agent_passes_is_flagged(judge):
    steps = [{"step": 0, "action": CLICK}, {"step": 1, "action": DONE}]
    episodes = [
        {
            "episode_id": "a",
            "scenario": "weak",
            "steps": steps,
            "milestones": [{"name": "m", "step": 1, "type": "done"}],
        },
        {
            "episode_id": "b",
            "scenario": "sound",
            "steps": steps,
            "milestones": [{"name": "m", "step": 0, "type": "click"}],
        },
        {"episode_id": "c", "scenario": "idle", "steps": [{"step": 0, "action": {"type": "wait"}}]},
    ]
    found = judge(episodes, {"a": ["CLICK(x=0.5, y=0.5)"]}).metrics
    assert [item["scenario"] for item in found["broken_scenarios"]] == ["idle", "weak"]
    assert any("broken evaluator" in note and "'weak'" in note for note in found["notes"])
    assert found["baselines"]["null_agent"]["weak_episode_success_rate"] == 0.5


def test_buckets_add_up_and_predictions_for_no_step_are_reported(judge):
    said = [
        {"episode_id": "a", "step": 0, "raw": "DONE()"},
        {"episode_id": "a", "step": 1, "raw": "?"},
        {"episode_id": "a", "step": 9, "raw": "DONE()"},
    ]
    run = judge({"a": [DONE, DONE, DONE]}, said)
    assert run.metrics["buckets"]["all"] == {
        "passed": 1,
        "failed": 0,
        "abstained": 0,
        "unparsed": 1,
        "errored": 0,
        "missing": 1,
        "n": 3,
    }
    assert run.metrics["metrics"]["unmatched_predictions"] == 1
    assert run.metrics["unmatched"]["first"] == ["a#9"]
    assert any("a#9" in note for note in run.metrics["notes"])
