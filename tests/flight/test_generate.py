import itertools
import json
import math

import numpy as np
import pytest

from adjudge.errors import ConfigError, OutputError
from adjudge.protocols.flight.baselines import BASELINES, predict
from adjudge.protocols.flight.fields import ANGLES, FIELDS, TASKS
from adjudge.protocols.flight.generate import MODELS, generate
from adjudge.protocols.flight.simulate import PROFILES, fly


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


@pytest.fixture(scope="module", params=sorted(TASKS))
def made(request, tmp_path_factory):
    return request.param, generate(tmp_path_factory.mktemp("demo"), task=request.param, seed=3)


@pytest.fixture(scope="module")
def responses(tmp_path_factory):
    data = generate(tmp_path_factory.mktemp("demo"), flights=12, seconds=60)
    return {name: [output["response"] for output in read(path)] for name, path in data.outputs.items()}


def test_files_and_records(made):
    task, data = made
    shown, steps = TASKS[task].shown, TASKS[task].steps
    reference = read(data.reference)
    assert len(reference) == 6 * (40 - shown - steps + 1)
    ids = [record["id"] for record in reference]
    assert len(set(ids)) == len(ids)
    assert {record["flight_id"] for record in reference} == {f"F0{flight}" for flight in range(1, 7)}
    assert [record["id"] for record in read(data.tasks)] == ids
    for record in reference:
        gold = record["next_second"] if task == "S1" else record["T+1"]
        assert list(gold) == list(FIELDS)
        states = [record["current_state"]] if task == "S1" else record["current_state"]
        assert len(states) == shown
        if task != "S1":
            assert {len(values) for values in gold.values()} == {steps}
    assert list(data.outputs) == ["falcon-a", "kestrel-b", "magpie-h", "parrot-p", "owl-c"]
    for name, path in data.outputs.items():
        outputs = read(path)
        assert list(outputs[0]) == ["id", "question", "response", "model", "timestamp"]
        assert {output["model"] for output in outputs} == {name}
        answered = [output["id"] for output in outputs]
        assert len(set(answered)) == len(answered)
        assert set(answered) <= set(ids)
    assert data.confidence.name == f"confidence_{task}.json"
    results = json.loads(data.confidence.read_text(encoding="utf-8"))["results"]
    assert [result["model_name"] for result in results] == list(MODELS)
    assert all(0 < result["c_score"] < 1 for result in results)


def test_shown_and_gold_are_consecutive_seconds(made):
    task, data = made
    records = read(data.reference)
    for record, following in itertools.pairwise(records):
        if record["flight_id"] != following["flight_id"]:
            continue
        last = following["current_state"] if task == "S1" else following["current_state"][-1]
        if task == "S1":
            assert record["next_second"] == last
        else:
            assert {field: values[0] for field, values in record["T+1"].items()} == last


@pytest.mark.parametrize("task", sorted(TASKS))
def test_the_same_seed_gives_the_same_bytes_and_another_changes_every_number(tmp_path, task):
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        generate(tmp_path / name, task=task, seed=seed, flights=6, seconds=12)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    one, other = (read(tmp_path / name / "reference.jsonl") for name in ("a", "c"))
    same = total = 0
    for left, right in zip(one, other, strict=True):
        states = [(left["current_state"], right["current_state"])]
        if task != "S1":
            states = list(zip(left["current_state"], right["current_state"], strict=True))
        for mine, yours in states:
            total += len(FIELDS)
            # Small numbers of few decimals may coincide; a state as a whole may not.
            same += sum(mine[field] == yours[field] for field in FIELDS)
            assert mine["Latitude (WGS84 deg)"] != yours["Latitude (WGS84 deg)"]
            assert mine["GPS Altitude (WGS84 ft)"] != yours["GPS Altitude (WGS84 ft)"]
    assert same < 0.1 * total
    manners = [
        [output["response"][:6] for output in read(tmp_path / name / "outputs_parrot-p.jsonl")] for name in ("a", "c")
    ]
    assert manners[0] != manners[1]
    for name in files(tmp_path / "a").keys() - {"library.yaml"}:
        assert (tmp_path / "a" / name).read_bytes() != (tmp_path / "c" / name).read_bytes()


def test_flights_do_not_depend_on_the_task(tmp_path):
    single = read(generate(tmp_path / "S1", task="S1").reference)
    triple = read(generate(tmp_path / "M3", task="M3").reference)
    assert single[0]["current_state"] == triple[0]["current_state"][0]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_simulated_flights_obey_physics(profile):
    states = fly(np.random.default_rng(4), profile, 60)
    offsets = [state["GPS Altitude (WGS84 ft)"] - state["Baro Altitude (ft)"] for state in states]
    assert 590 < abs(np.mean(offsets)) < 1610
    assert np.ptp(offsets) < 10
    for before, state in itertools.pairwise(states):
        east, north = state["GPS Velocity E (m/s)"], state["GPS Velocity N (m/s)"]
        assert state["GPS Ground Speed (kt)"] == pytest.approx(1.943844 * math.hypot(east, north), abs=0.06)
        track = math.degrees(math.atan2(east, north)) - state["GPS Ground Track (deg true)"]
        assert abs((track + 180) % 360 - 180) < 0.06
        assert state["Vertical Speed (fpm)"] == pytest.approx(196.850394 * state["GPS Velocity U (m/s)"], abs=0.51)
        north_step = (state["Latitude (WGS84 deg)"] - before["Latitude (WGS84 deg)"]) * 111_320
        assert north_step == pytest.approx(north, abs=0.03)
        climbed = state["Baro Altitude (ft)"] - before["Baro Altitude (ft)"]
        assert climbed == pytest.approx(state["Vertical Speed (fpm)"] / 60, abs=6)
        turned = state["Magnetic Heading (deg)"] - before["Magnetic Heading (deg)"]
        assert abs((turned - state["Turn Rate (deg/sec)"] + 180) % 360 - 180) < 1.2
        assert all(0 <= state[field] < 360 for field in ANGLES)
        if state["Indicated Airspeed (kt)"] > 60:
            speed = state["Indicated Airspeed (kt)"] / 1.943844 * (1 + 2e-5 * state["Baro Altitude (ft)"])
            rate = math.degrees(9.80665 * math.tan(math.radians(state["Roll (deg)"])) / speed)
            assert state["Turn Rate (deg/sec)"] == pytest.approx(rate, abs=0.15)
            load = 1 / math.cos(math.radians(state["Roll (deg)"]))
            assert state["Normal Acceleration (G)"] == pytest.approx(load, abs=0.08)


def test_taxi_is_slow_and_ends_in_the_air():
    states = fly(np.random.default_rng(0), PROFILES[5], 40)
    speeds = [state["Indicated Airspeed (kt)"] for state in states]
    assert speeds[0] < 20
    assert speeds[-1] > 60
    assert states[-1]["Vertical Speed (fpm)"] > 300


def test_good_models_answer_with_every_field(responses):
    for text in responses["falcon-a"]:
        assert list(json.loads(text)) == list(FIELDS)
    for text in responses["kestrel-b"]:
        sentence, fenced = text.split("```json\n")
        assert sentence.endswith("\n\n")
        assert list(json.loads(fenced.removesuffix("\n```"))) == list(FIELDS)


def test_hallucinator_has_its_oddities(responses):
    answers = [json.loads(text) for text in responses["magpie-h"]]
    assert any(len(answer) < len(FIELDS) for answer in answers)
    assert any("N/A" in answer.values() for answer in answers)
    assert any(isinstance(value, list) for answer in answers for value in answer.values())
    descents = [answer.get("Vertical Speed (fpm)") for answer in answers]
    assert any(isinstance(descent, float) and descent < -3000 for descent in descents)


def test_prose_model_speaks_in_many_ways(responses):
    texts = responses["parrot-p"]
    assert any(text.startswith("You gave me this state") and text.count("Slip/Skid") == 2 for text in texts)
    assert any(",\n}\n```" in text for text in texts)
    assert any("{'Latitude" in text for text in texts)
    assert any("{" not in text for text in texts)
    assert any(text.startswith("```json") and not text.endswith("```") and "}" not in text for text in texts)
    assert all(parsed(text) is None for text in texts)


def test_cautious_model_abstains_and_meets_errors(responses):
    texts = responses["owl-c"]
    abstained = [text for text in texts if text in ("", '{"abstain": true}')]
    assert "" in abstained
    assert '{"abstain": true}' in abstained
    assert 0.15 < len(abstained) / len(texts) < 0.5
    assert any("429" in text for text in texts)
    assert len(texts) < len(responses["falcon-a"])


@pytest.mark.parametrize("task", ["M1", "M3"])
def test_answers_have_the_shape_of_the_task(tmp_path, task):
    data = generate(tmp_path, task=task, seconds=20)
    for output in read(data.outputs["falcon-a"]):
        for value in json.loads(output["response"]).values():
            assert isinstance(value, list) == (task == "M3")
            assert task == "M1" or len(value) == 3


@pytest.mark.parametrize("baseline", sorted(BASELINES))
def test_baselines_answer_generated_tasks(made, baseline, tmp_path):
    _, data = made
    assert predict(data.tasks, baseline, tmp_path / "out.jsonl") == len(read(data.reference))


def test_wrong_calls(tmp_path):
    with pytest.raises(ConfigError, match="unknown task"):
        generate(tmp_path / "x", task="S9")
    for wrong in ({"seed": -1}, {"flights": 0}, {"seconds": 1}, {"task": "M3", "seconds": 5}):
        with pytest.raises(ConfigError, match="cannot generate"):
            generate(tmp_path / "x", **wrong)
    assert not (tmp_path / "x").exists()
    generate(tmp_path / "x", seconds=4, flights=1)
    with pytest.raises(OutputError, match="exists already"):
        generate(tmp_path / "x", seconds=4, flights=1)
    generate(tmp_path / "x", seconds=4, flights=1, force=True)
