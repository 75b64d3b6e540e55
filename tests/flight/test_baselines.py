import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.errors import ConfigError, InputError, OutputError
from adjudge.protocols.flight.baselines import BASELINES, kinematic, linear, persistence, predict
from adjudge.protocols.flight.fields import ANGLES, FIELDS, TASKS

LEVEL = {
    "Latitude (WGS84 deg)": 47.5,
    "Longitude (WGS84 deg)": -122.25,
    "GPS Altitude (WGS84 ft)": 1500.0,
    "GPS Ground Track (deg true)": 90.0,
    "Magnetic Heading (deg)": 75.5,
    "GPS Velocity E (m/s)": 50.0,
    "GPS Velocity N (m/s)": 0.0,
    "GPS Velocity U (m/s)": 0.0,
    "GPS Ground Speed (kt)": 97.2,
    "Roll (deg)": 0.0,
    "Pitch (deg)": 2.5,
    "Turn Rate (deg/sec)": 0.0,
    "Slip/Skid": 0.0,
    "Normal Acceleration (G)": 1.0,
    "Lateral Acceleration (G)": 0.0,
    "Vertical Speed (fpm)": 0.0,
    "Indicated Airspeed (kt)": 95.0,
    "Baro Altitude (ft)": 1400.0,
    "Pressure Altitude (ft)": 1380.0,
}


def flown(second, *, east=30.0, north=40.0, climb=0.0, turn=0.0):
    """The exact state of a steady flight after so many seconds, around 47.5° N."""
    angle = math.radians(turn) * second
    if turn:
        rate = math.radians(turn)
        x = (east * math.sin(angle) + north * (1 - math.cos(angle))) / rate
        y = (north * math.sin(angle) - east * (1 - math.cos(angle))) / rate
    else:
        x, y = east * second, north * second
    turned_e = east * math.cos(angle) + north * math.sin(angle)
    turned_n = north * math.cos(angle) - east * math.sin(angle)
    return {
        **LEVEL,
        "Latitude (WGS84 deg)": 47.5 + y / 111_320,
        "Longitude (WGS84 deg)": -122.25 + x / (111_320 * math.cos(math.radians(47.5))),
        "GPS Altitude (WGS84 ft)": 1500 + climb / 60 * second,
        "Baro Altitude (ft)": 1400 + climb / 60 * second,
        "Pressure Altitude (ft)": 1380 + climb / 60 * second,
        "Vertical Speed (fpm)": climb,
        "Turn Rate (deg/sec)": turn,
        "GPS Velocity E (m/s)": turned_e,
        "GPS Velocity N (m/s)": turned_n,
        "GPS Ground Track (deg true)": math.degrees(math.atan2(turned_e, turned_n)) % 360,
        "Magnetic Heading (deg)": (75.5 + turn * second) % 360,
    }


def close(found, truth, metres=0.2):
    for field in FIELDS:
        gap = found[field] - truth[field]
        if field in ANGLES:
            gap = (gap + 180) % 360 - 180
        bound = metres / 70_000 if field.startswith(("Latitude", "Longitude")) else 1e-5
        assert abs(gap) <= bound, (field, found[field], truth[field])


velocity = st.floats(-80, 80)
climbs = st.floats(-1500, 1500)


@given(velocity, velocity, climbs)
def test_straight_flight_is_predicted_exactly_by_kinematic_and_linear(east, north, climb):
    truth = [flown(second, east=east, north=north, climb=climb) for second in range(6)]
    for second, state in enumerate(kinematic(truth[:3], 3), 3):
        close(state, truth[second])
    for second, state in enumerate(linear(truth[:3], 3), 3):
        close(state, truth[second])
    close(kinematic(truth[:1], 1)[0], truth[1])
    close(linear(truth[:1], 1)[0], truth[1])


@given(velocity, st.floats(1, 80), climbs, st.floats(-6, 6).filter(lambda turn: abs(turn) > 1e-3))
def test_steady_turn_is_predicted_by_kinematic(east, north, climb, turn):
    truth = [flown(second, east=east, north=north, climb=climb, turn=turn) for second in range(4)]
    for second, state in enumerate(kinematic(truth[:1], 3), 1):
        close(state, truth[second], metres=0.6)


def test_linear_from_one_state_uses_the_rates_it_carries_and_no_more():
    state = {**LEVEL, "Turn Rate (deg/sec)": 3.0, "Vertical Speed (fpm)": -600.0, "GPS Velocity N (m/s)": 10.0}
    (after,) = linear([state], 1)
    assert after["Magnetic Heading (deg)"] == 78.5
    assert after["GPS Ground Track (deg true)"] == 93.0
    assert after["GPS Altitude (WGS84 ft)"] == 1490
    assert after["Baro Altitude (ft)"] == 1390
    assert after["Pressure Altitude (ft)"] == 1370
    assert after["Latitude (WGS84 deg)"] == pytest.approx(47.5 + 10 / 111_320, abs=1e-6)
    assert after["Longitude (WGS84 deg)"] == pytest.approx(-122.25 + 50 / 75_207, abs=1e-6)
    unchanged = set(FIELDS) - {field for field in FIELDS if "WGS84" in field} - ANGLES
    unchanged -= {"Baro Altitude (ft)", "Pressure Altitude (ft)"}
    assert len(unchanged) == 12
    assert {field: after[field] for field in unchanged} == {field: state[field] for field in unchanged}


def test_linear_continues_every_field():
    before = {field: value - 0.25 for field, value in LEVEL.items()}
    for step, state in enumerate(linear([LEVEL, before, LEVEL], 3), 1):
        assert state == pytest.approx({field: value + 0.25 * step for field, value in LEVEL.items()})


def test_linear_crosses_north_and_the_date_line():
    headings, longitudes = [357.0, 359.0, 1.0, 3.0, 5.0, 7.0], [179.999, 179.9996, -179.9998, -179.9992, -179.9986]
    track = [
        {**LEVEL, "Magnetic Heading (deg)": heading, "Longitude (WGS84 deg)": longitude}
        for heading, longitude in zip(headings, longitudes, strict=False)
    ]
    for last in (1, 2):
        after = linear([LEVEL, track[last - 1], track[last]], 3)
        assert [state["Magnetic Heading (deg)"] for state in after] == pytest.approx(headings[last + 1 : last + 4])
        expected = longitudes[last + 1 : last + 4]
        assert [state["Longitude (WGS84 deg)"] for state in after][: len(expected)] == pytest.approx(expected)
    back = linear([LEVEL, track[2], track[1]], 2)
    assert [state["Magnetic Heading (deg)"] for state in back] == [357.0, 355.0]
    assert [state["Longitude (WGS84 deg)"] for state in back] == pytest.approx([179.999, 179.9984])


def test_a_speed_does_not_fall_below_zero():
    slowing = [{**LEVEL, "GPS Ground Speed (kt)": speed, "Indicated Airspeed (kt)": speed} for speed in (9.0, 6.0, 2.0)]
    after = linear(slowing, 3)
    assert [state["GPS Ground Speed (kt)"] for state in after] == [0, 0, 0]
    assert [state["Indicated Airspeed (kt)"] for state in after] == [0, 0, 0]


def test_persistence_repeats_the_last_state():
    other = {field: value + 1 for field, value in LEVEL.items()}
    exact = {**LEVEL, "Latitude (WGS84 deg)": 47.1234567}
    assert persistence([other, other, exact], 3) == [exact, exact, exact]


@pytest.mark.parametrize("angle", [360.0, -1e-17, 0.0, 720.0])
def test_north_is_zero(angle):
    for name, baseline in BASELINES.items():
        (answer,) = baseline([{**LEVEL, "Magnetic Heading (deg)": angle}], 1)
        assert answer["Magnetic Heading (deg)"] == 0.0, name


states = st.fixed_dictionaries(
    {
        field: st.floats(-90, 90)
        if field.startswith("Latitude")
        else st.floats(-180, 180)
        if field.startswith("Longitude")
        else st.floats(0, 360)
        if field in ANGLES
        else st.floats(-1e8, 1e8)
        for field in FIELDS
    }
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(BASELINES)), st.lists(states, min_size=3, max_size=3), st.sampled_from([1, 3]))
def test_any_state_gives_finite_numbers_with_wrapped_angles(name, shown, steps):
    for given_states in (shown, shown[:1]):
        answers = BASELINES[name](given_states, steps)
        assert len(answers) == steps
        for answer in answers:
            assert list(answer) == list(FIELDS)
            assert all(math.isfinite(value) for value in answer.values())
            assert all(0 <= answer[field] < 360 for field in ANGLES)
            assert -90 <= answer["Latitude (WGS84 deg)"] <= 90
            assert -180 <= answer["Longitude (WGS84 deg)"] <= 180


def task_line(task="S1", sample_id="a", **changes):
    shown = LEVEL if task == "S1" else [LEVEL] * 3
    return {"id": sample_id, "task": task, "question": "what next?", "current_state": shown, **changes}


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.parametrize("task", ["S1", "M1", "M3"])
@pytest.mark.parametrize("baseline", sorted(BASELINES))
def test_outputs(tmp_path, task, baseline):
    tasks = write(tmp_path / "tasks.jsonl", task_line(task), task_line(task, "b"))
    assert predict(tasks, baseline, tmp_path / "out.jsonl") == 2
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == ["a", "b"]
    assert list(lines[0]) == ["id", "question", "response", "model", "timestamp"]
    assert lines[0]["question"] == "what next?"
    assert lines[0]["model"] == f"baseline/{baseline}"
    assert lines[0]["timestamp"] is None
    answer = json.loads(lines[0]["response"])
    assert list(answer) == list(FIELDS)
    for value in answer.values():
        values = value if isinstance(value, list) else [value]
        assert isinstance(value, list) == TASKS[task].arrays
        assert len(values) == TASKS[task].steps
        assert all(round(number, 6) == number for number in values)
    predict(tasks, baseline, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()


def test_numeric_strings_are_numbers(tmp_path):
    as_text = {field: f" {value} " for field, value in LEVEL.items()}
    write(tmp_path / "text.jsonl", task_line(current_state=as_text))
    predict(tmp_path / "text.jsonl", "kinematic", tmp_path / "a.jsonl")
    predict(write(tmp_path / "number.jsonl", task_line()), "kinematic", tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


@pytest.mark.parametrize(
    "record, says",
    [
        ([1], "found list, expected an object"),
        (task_line(sample_id=None), "'id' is None"),
        (task_line(task="S1", sample_id="b", current_state=[LEVEL]), "'current_state' holds list"),
        ({**task_line(), "id": "b", "task": "X"}, "'task' is 'X', expected one of S1, M1, M3"),
        ({**task_line("M3", "b"), "current_state": [LEVEL]}, "is a list of 1, expected a list of 3 states for M3"),
        ({**task_line("M3", "b"), "current_state": LEVEL}, "is dict, expected a list of 3"),
        (task_line(sample_id="b", current_state={}), "lacks 'Latitude (WGS84 deg)'"),
        (task_line(sample_id="b", current_state={**LEVEL, "Slip/Skid": True}), "'Slip/Skid' is True"),
        (task_line(sample_id="b", current_state={**LEVEL, "Slip/Skid": "N/A"}), "'Slip/Skid' is 'N/A'"),
        (task_line(sample_id="b", current_state={**LEVEL, "Slip/Skid": "nan"}), "expected a finite number"),
        (task_line(sample_id="b", current_state={**LEVEL, "Slip/Skid": 10**400}), "expected a finite number"),
        (task_line(sample_id="a"), "id 'a' stands already in line 1"),
    ],
)
def test_bad_tasks_are_refused_with_their_line(tmp_path, record, says):
    path = write(tmp_path / "tasks.jsonl", task_line(), record)
    with pytest.raises(InputError) as caught:
        predict(path, "linear", tmp_path / "out.jsonl")
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert not (tmp_path / "out.jsonl").exists()


def test_bad_files_and_flags(tmp_path):
    tasks = write(tmp_path / "tasks.jsonl", task_line())
    with pytest.raises(ConfigError, match="unknown baseline 'guess'; expected one of persistence, linear, kinematic"):
        predict(tasks, "guess", tmp_path / "out.jsonl")
    with pytest.raises(InputError, match="No such file"):
        predict(tmp_path / "none.jsonl", "linear", tmp_path / "out.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="no tasks"):
        predict(tmp_path / "empty.jsonl", "linear", tmp_path / "out.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"id": ', encoding="utf-8")
    with pytest.raises(InputError, match=r"bad.jsonl:1: not JSON"):
        predict(tmp_path / "bad.jsonl", "linear", tmp_path / "out.jsonl")
    (tmp_path / "deep.jsonl").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InputError, match=r"deep.jsonl:1: not JSON"):
        predict(tmp_path / "deep.jsonl", "linear", tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
    predict(tasks, "linear", tmp_path / "out.jsonl")
    with pytest.raises(OutputError, match="exists already"):
        predict(tasks, "kinematic", tmp_path / "out.jsonl")
    predict(tasks, "kinematic", tmp_path / "out.jsonl", force=True)
    assert "baseline/kinematic" in (tmp_path / "out.jsonl").read_text(encoding="utf-8")
