"""Bad input gets a sentence that names the file, the line, what was found and what to do."""

from __future__ import annotations

import pytest

from adjudge.errors import ConfigError, InputError

DONE = {"type": "done"}


def episode(*actions, **more):
    return {"episode_id": "e", "steps": [{"step": k, "action": a} for k, a in enumerate(actions)], **more}


def click(x, y, **more):
    return {"type": "click", "x": x, "y": y, **more}


BAD_EPISODES = [
    (episode(click(512, 384)), {}, ["episodes.jsonl:1", "'e', step 0", "512, 384", "normalized", "pixel or per_mille"]),
    (episode(click(0.5, 1.2)), {}, ["outside the space normalized", "pixel or per_mille"]),
    (episode(click(-0.2, 0.5)), {}, ["fit no space"]),
    (episode(click(1200, 5)), {"space": "per_mille"}, ["0 to 1000", "pixel"]),
    (
        episode(click(1200, 5), screen={"width": 1000, "height": 500}),
        {"space": "pixel"},
        ["0 to 1000 and 500", "fit no space"],
    ),
    (episode(click(0.5, 0.5, element={"bbox": [0.6, 0.1, 0.2, 0.9]})), {}, ["x2 < x1", "--bbox xywh"]),
    (episode(click(0.5, 0.5, element={"bbox": [0.6, 0.1, -0.2, 0.1]})), {"bbox": "xywh"}, ["negative width"]),
    (episode(click(0.5, 0.5, element={"bbox": [0.6, 0.1, 7, 9]})), {}, ["0.6, 0.1, 7, 9", "pixel or per_mille"]),
    (episode(click(0.5, 0.5, element={"bbox": [0.6, 0.1, 0.2]})), {}, ["3 numbers, expected 4"]),
    (episode(click(0.5, 0.5, element={"bbox": [[0, 0, 1, 1], 0.2]})), {}, ["mixes numbers and boxes"]),
    (episode({"type": "click", "x": 0.5}), {}, ["one coordinate of a point without the other"]),
    (episode({"type": "clik"}), {}, ["'clik' is unknown", "Did you mean 'click'?", "--types clik"]),
    (episode(), {}, ["has no steps"]),
    (episode(DONE, screen={"width": 0, "height": 10}), {}, ["screen of 0"]),
    (episode(DONE, milestones=[{"name": "m", "step": 4, "type": "done"}]), {}, ["'m' is about step 4"]),
    (episode(DONE, milestones=[{"name": "m", "step": 0, "type": "dne"}]), {}, ["'dne' is unknown"]),
    ({"episode_id": "e", "steps": [{"step": 3, "action": DONE}] * 2}, {}, ["step 3 twice"]),
    (
        {"episode_id": "e", "steps": [{"step": "x", "action": DONE}]},
        {},
        ["`steps[0].step` is text, expected a whole number", "expected an episode"],
    ),
    ({"steps": []}, {}, ["neither `episode_id`"]),
    ({"episode_id": "e", "step": 0}, {}, ["neither `steps` nor `action`"]),
]


@pytest.mark.parametrize("bad, config, words", BAD_EPISODES)
def test_episodes(judge, bad, config, words):
    with pytest.raises(InputError) as error:
        judge([bad], {"e": ["DONE()"]}, **config)
    for word in words:
        assert word in str(error.value)
    assert error.value.line == 1


def test_an_episode_twice_names_both_places(judge):
    with pytest.raises(InputError, match=r"episodes.jsonl:2: episode 'e' stands here a second time; first at .*:1"):
        judge([episode(DONE), episode(DONE)], {"e": ["DONE()"]})


BAD_PREDICTIONS = [
    ([{"episode_id": "e", "step": 0, "action": click(512, 384)}], ["predictions.jsonl:1", "outside the space"]),
    ([{"episode_id": "e", "step": 0, "action": {"type": "click", "y": 0.1}}], ["without the other"]),
    ([{"episode_id": "e", "step": 0}], ["neither `action` nor `raw`"]),
    ([{"episode_id": "e", "step": 0, "raw": "", "action": DONE}], ["both `action` and `raw`"]),
    ([{"episode_id": "e", "step": 0, "raw": "DONE()"}] * 2, ["predictions.jsonl:2", "step 0 is predicted a second"]),
    ([{"episode_id": "E", "step": 0, "raw": "DONE()"}], ["'E' is not among the episodes", "--unmatched report"]),
    ([{"episode_id": "e", "step": 7, "raw": "DONE()"}], ["no prediction is for a recorded step"]),
    (
        [{"episode_id": "e", "step": 0, "raw": 3}],
        ["predictions.jsonl:1: `raw` is a whole number, expected text; expected a prediction"],
    ),
]


@pytest.mark.parametrize("bad, words", BAD_PREDICTIONS)
def test_predictions(judge, bad, words):
    with pytest.raises(InputError) as error:
        judge([episode(DONE, DONE)], bad)
    for word in words:
        assert word in str(error.value)


def test_predictions_for_unknown_episodes_can_be_reported(judge):
    said = [{"episode_id": name, "step": 0, "raw": "DONE()"} for name in ("e", "other", "third")]
    run = judge([episode(DONE)], said, unmatched="report")
    assert run.metrics["metrics"]["unmatched_predictions"] == 2
    assert run.metrics["unmatched"]["first"] == ["other#0", "third#0"]
    assert run.metrics["metrics"]["num_episodes"] == 1
    assert run.metrics["metrics"]["num_steps"] == 1


def test_an_outcome_for_an_unknown_episode(judge):
    with pytest.raises(InputError, match=r"outcomes.jsonl:1: episode 'f' is not among"):
        judge([episode(DONE)], {"e": ["DONE()"]}, outcomes=[{"episode_id": "f", "success": True}])


def test_types_can_be_added(judge):
    run = judge([episode({"type": "zoom"})], {"e": ["ZOOM()"]}, types=["zoom"])
    assert run.metrics["metrics"]["episode_success_rate"] == 1.0


def test_a_text_outside_the_space_fails_its_step_and_says_where_it_would_fit(judge):
    run = judge([episode(*[click(0.5, 0.4)] * 4)], {"e": ["CLICK(x=512, y=384)"] + ["CLICK(x=0.5, y=0.4)"] * 3})
    [row] = run.find("e#0")
    assert (row["verdict"], row["bucket"], row["said_x"], row["distance"]) == ("incorrect", "failed", 512.0, None)
    [atom] = [atom for atom in run.atoms(row) if atom.rule == "gui.space"]
    assert atom.failed
    assert "512, 384 lie outside the space normalized" in atom.message
    assert "they would fit pixel or per_mille" in atom.message
    assert run.find("e#1")[0]["verdict"] == "correct"


def test_a_file_that_is_mostly_in_another_space_stops_the_run(judge):
    with pytest.raises(InputError, match=r"3 of 4 predictions .* --space normalized; they fit pixel or per_mille"):
        judge([episode(*[click(0.5, 0.4)] * 4)], {"e": ["CLICK(x=512, y=384)"] * 3 + ["CLICK(x=0.5, y=0.4)"]})


def test_fractions_declared_as_pixels_stop_the_run(judge):
    with pytest.raises(InputError, match=r"2 of 2 episodes .* --space pixel; they fit normalized"):
        judge([episode(click(0.5, 0.4), click(0.1, 0.9))], {"e": ["CLICK(x=5, y=3)", "DONE()"]}, space="pixel")


def test_unparsed_text_is_a_bucket_with_the_span(judge):
    run = judge([episode(DONE, DONE)], {"e": ['ok TYPE(text="CLICK([3])', "DONE()"]})
    [row] = run.find("e#0")
    assert (row["bucket"], row["status"]) == ("unparsed", "unparsed")
    [atom] = [atom for atom in run.atoms(row) if atom.rule == "gui.parse"]
    assert "a string is not closed (characters 3 to 24)" in atom.message
    assert [a.outcome for a in run.atoms(row) if a.rule == "gui.action_type"] == ["not_applicable"]


@pytest.mark.parametrize(
    "config, words",
    [
        ({"space": "percent"}, "space is 'percent', expected one of normalized, pixel, per_mille"),
        ({"bbox": "yxyx"}, "bbox is 'yxyx'"),
        ({"dsl_mode": "marks"}, "dsl_mode is 'marks'"),
        ({"click_radius": 0}, "click_radius is 0"),
        ({"resamples": 5}, "resamples is 5"),
        ({"about": {"colour": "red"}}, "about has 'colour'"),
        ({"radius": 1}, "gui has no setting 'radius'. Did you mean 'click_radius'"),
    ],
)
def test_configuration(judge, config, words):
    with pytest.raises(ConfigError, match=words):
        judge([episode(DONE)], {"e": ["DONE()"]}, **config)


def row(step, **more):
    return {"episode_id": "e", "step": step, "type": "done", **more}


BAD_ROWS = [
    (
        [row(0), episode(DONE)],
        r"episodes.jsonl:1: episode 'e' stands whole at .*episodes.jsonl:2 and here as a single step",
    ),
    (
        [row(0, scenario="a"), row(1), row(2, scenario="b")],
        r":3: episode 'e' has another scenario here than in its step 0",
    ),
    (
        [row(1, screen={"width": 9, "height": 9}), row(0, screen={"width": 9, "height": 8})],
        r":1: episode 'e' has another screen here than in its step 0",
    ),
    ([row(4), row(4)], r":1: episode 'e' has step 4 twice"),
    ([row(0, goal="x"), row(1, goal="y")], "has another goal here"),
    (
        [row(0, milestones=[{"name": "m", "step": 7, "type": "done"}])],
        r":1: episode 'e': milestone 'm' is about step 7",
    ),
    ([row(2**63)], r":1: `step` is 9223372036854775808, which is no 64-bit number"),
]


@pytest.mark.parametrize("rows, words", BAD_ROWS)
def test_episodes_as_single_steps(judge, rows, words):
    with pytest.raises(InputError, match=words):
        judge(rows, {"e": ["DONE()"]})


def test_a_second_outcome(judge):
    twice = [{"episode_id": "e", "success": True}] * 2
    with pytest.raises(InputError, match=r"outcomes.jsonl:2: episode 'e' has a second outcome"):
        judge([episode(DONE)], {"e": ["DONE()"]}, outcomes=twice)
