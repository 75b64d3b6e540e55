"""The recording fed back as the prediction is fully correct, in every format that is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

WIDTH, HEIGHT = 1000, 500
shares = st.integers(0, 100).map(lambda k: k / 100)
words = st.text("abc xyz", min_size=1, max_size=8)
keys = st.sampled_from(["enter", "tab", "c", "F5"])
directions = st.sampled_from(["up", "down", "left", "right"])
boxes = st.tuples(shares, shares, shares, shares).map(
    lambda b: [min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3])]
)


@st.composite
def plain(
    draw, kinds=("click", "double_click", "right_click", "hover", "drag", "type", "key", "scroll", "wait", "done")
):
    """An action by what it is about, from which every format is spelled."""
    kind = draw(st.sampled_from(kinds))
    action = {"kind": kind, "id": draw(st.integers(1, 30)), "box": draw(boxes)}
    if kind in {"click", "double_click", "right_click", "hover", "drag"}:
        action["point"] = (
            draw(st.none() | st.tuples(shares, shares)) if kind != "drag" else (draw(shares), draw(shares))
        )
    if kind == "drag":
        action["end"] = (draw(shares), draw(shares))
    if kind in {"type", "key", "scroll"}:
        action["argument"] = draw({"type": words, "key": keys, "scroll": directions}[kind])
    return action


def ours(action):
    spelled = {"type": action["kind"], "element": {"id": action["id"], "bbox": action["box"]}}
    if action.get("point"):
        spelled |= dict(zip(("x", "y"), action["point"], strict=True))
    if "end" in action:
        spelled |= dict(zip(("end_x", "end_y"), action["end"], strict=True))
    if "argument" in action:
        spelled[{"type": "text", "key": "key", "scroll": "direction"}[action["kind"]]] = action["argument"]
    return spelled


def older(action):
    spelled = ours(action)
    element = spelled.pop("element")
    spelled |= {"bbox": element["bbox"], "element_index": element["id"]}
    if action["kind"] == "scroll":
        spelled["scroll_direction"] = spelled.pop("direction")
    spelled["type"] = {"key": "key_press"}.get(action["kind"], action["kind"])
    return spelled


def pixels(point):
    return {"x": point[0] * WIDTH, "y": point[1] * HEIGHT}


def current(action, normalised):
    left, top, right, bottom = action["box"]
    bounds = {
        **pixels((left, top)),
        "width": (right - left) * WIDTH,
        "height": (bottom - top) * HEIGHT,
    }
    spelled = {"type": action["kind"], "element": {"element_id": f"e{action['id']}", "bounds": bounds}}
    start = "start_coordinates" if action["kind"] == "drag" else "coordinates"
    if action.get("point"):
        name = {"coordinates": "normalized_coordinates", "start_coordinates": "normalized_start"}[start]
        spelled |= {name: list(action["point"])} if normalised else {start: pixels(action["point"])}
    if "end" in action:
        spelled |= {"normalized_end": list(action["end"])} if normalised else {"end_coordinates": pixels(action["end"])}
    if "argument" in action:
        name = {"type": "text", "key": "key", "scroll": "scroll_direction"}[action["kind"]]
        spelled[name] = action["argument"]
        if action["kind"] == "key":
            spelled["modifiers"] = ["ctrl"]
    return spelled


def episode_of(shape, actions):
    if shape == "ours":
        steps = [{"step": k, "action": ours(action)} for k, action in enumerate(actions)]
        return {"episode_id": "e", "screen": {"width": WIDTH, "height": HEIGHT}, "steps": steps}
    if shape == "older":
        return {"id": "e", "goal": "g", "steps": [{"action": older(action)} for action in actions]}
    steps = [
        {
            "step_index": k,
            "observation": {"screen_size": [WIDTH, HEIGHT]},
            "action": current(action, shape == "current, normalised"),
        }
        for k, action in enumerate(actions)
    ]
    return {"episode_id": "e", "instruction": "i", "steps": steps}


def predictions_of(episode, *, whole):
    if whole:
        return [episode]
    name = episode.get("episode_id", episode.get("id"))
    return [{"episode_id": name, "step": k, "action": step["action"]} for k, step in enumerate(episode["steps"])]


@pytest.mark.parametrize("shape", ["ours", "older", "current", "current, normalised"])
@pytest.mark.parametrize("mode", ["coord", "som"])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    actions=st.lists(plain(), min_size=1, max_size=5),
    space=st.sampled_from(["normalized", "pixel", "per_mille"]),
    whole=st.booleans(),
)
def test_a_recording_fed_back_is_fully_correct(judge, shape, mode, actions, space, whole):
    if shape in {"ours", "older"}:
        space = "normalized"  # what they write is what is declared
    episode = episode_of(shape, actions)
    run = judge([episode], predictions_of(episode, whole=whole), space=space, dsl_mode=mode)
    wrong = [row for row in run.samples.to_pylist() if row["verdict"] != "correct"]
    assert not wrong
    assert run.metrics["metrics"]["episode_success_rate"] == 1.0


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.sampled_from(["CLICK", "TYPE", "SELECT", "SCROLL DOWN"]), words), min_size=1, max_size=5)
)
def test_a_mind2web_sample_fed_back_is_fully_correct(judge, rows):
    samples = [
        {
            "annotation_id": "a",
            "step": k,
            "operation": name,
            "value": value,
            "bbox": [[10 * k, 20, 30, 40], [1, 2, 3, 4]],
        }
        for k, (name, value) in enumerate(rows)
    ]
    said = [
        {"annotation_id": "a", "step": s["step"]}
        | {f"predicted_{name}": s[name] for name in ("operation", "value", "bbox")}
        for s in samples
    ]
    run = judge(samples, said, space="pixel", bbox="xywh")
    assert run.metrics["metrics"]["episode_success_rate"] == 1.0


def test_rows_of_csv_fed_back_are_fully_correct(tmp_path, evaluated):
    header = "episode_id,step,type,x,y,text,direction,element_id,bbox,scenario\n"
    rows = [
        'e,0,click,0.5,0.5,,,7,"[0.4, 0.4, 0.6, 0.6]",login\n',
        "e,1,type,,,hello,,7,,\n",
        "e,2,scroll,,,,down,,,\n",
        "e,3,done,,,,,,,\n",
    ]
    path = tmp_path / "steps.csv"
    path.write_text(header + "".join(rows), encoding="utf-8")
    run = evaluated(episodes=[str(path)], predictions=[str(path)], space="normalized", bbox="xyxy")
    assert run.metrics["metrics"]["episode_success_rate"] == 1.0
    assert run.metrics["metrics"]["num_steps"] == 4
    assert list(run.metrics["metrics_by_scenario"]) == ["login"]


def test_pixels_of_a_prediction_need_the_screen_of_the_recording(judge):
    recorded = {"e": [{"type": "click", "x": 0.5, "y": 0.5}]}
    action = {"type": "click", "coordinates": {"x": 500, "y": 250}}
    with pytest.raises(Exception, match="the prediction is in pixels and the recording has no screen size"):
        judge(recorded, [{"episode_id": "e", "step": 0, "action": action}])


def test_a_recording_given_as_its_own_prediction_is_noted(judge):
    recorded = {"e": [{"type": "click", "x": 0.5, "y": 0.5}, {"type": "type", "text": "a"}], "f": [{"type": "done"}]}
    own = [
        {"episode_id": name, "step": k, "action": action}
        for name, actions in recorded.items()
        for k, action in enumerate(actions)
    ]
    assert any("to the last digit" in note for note in judge(recorded, own).manifest.notes)
    own[0]["action"] = {**own[0]["action"], "x": 0.51}
    assert not any("to the last digit" in note for note in judge(recorded, own).manifest.notes)


@pytest.mark.parametrize(
    "text, expected",
    [
        ('Thought: x\nState: {"success": true}\nAction: DONE()', True),
        ('State: {"success": false}\nState: {"success": true, "why": "x"}\nAction: DONE()', True),
        ('STATE : {"success": false}\nDONE()', False),
        ("State: done\nAction: DONE()", None),
        ('the State: {"success": true} of things\nDONE()', None),
        ('State: {"success": "yes"}\nDONE()', None),
        ('State: {"success": true\nDONE()', None),
        ("DONE()", None),
    ],
)
def test_the_state_that_a_text_reports(measured, text, expected):
    numbers = measured({"e": [{"type": "done"}]}, {"e": [text]})
    assert numbers["self_reported_success_rate"] == (None if expected is None else float(expected))


def test_milestones_and_scenario_of_openadapt_episodes(judge):
    step = {"step_index": 0, "action": {"type": "click", "normalized_coordinates": [0.5, 0.5]}}
    episode = {
        "episode_id": "e",
        "instruction": "i",
        "scenario": "login",
        "task_id": "t1",
        "steps": [step],
        "milestones": [{"name": "m", "step": 0, "type": "click", "max_distance": 0.1}],
    }
    numbers = judge([episode], [{"episode_id": "e", "step": 0, "raw": "CLICK(x=0.5, y=0.55)"}]).metrics
    assert numbers["metrics"]["weak_episode_success_rate"] == 1.0
    assert list(numbers["metrics_by_scenario"]) == ["login"]
    older_shape = {"id": "e", "goal": "g", "workflow_id": "w", "milestones": episode["milestones"]}
    older_shape["steps"] = [{"action": {"type": "click", "x": 0.5, "y": 0.5}}]
    missed = judge([older_shape], [{"episode_id": "e", "step": 0, "raw": "CLICK(x=0.9, y=0.9)"}]).metrics
    assert missed["metrics"]["weak_episode_success_rate"] == 0.0
    assert list(missed["metrics_by_scenario"]) == ["w"]
    assert json.dumps(missed)
