"""The six kinematic rules, each as a table: shown state and answer in; outcome, severity and observed value out.

The observed values are worked out by hand from the specification, with the limits of `ga-light/1+kinematics`.
"""

import json

import pytest

from adjudge.evidence.atoms import atoms
from adjudge.protocols.base import Partition
from adjudge.protocols.flight import fields as f
from adjudge.protocols.flight.plan import FlightPlan
from adjudge.readers.blocks import block_of

# At 60° north, where a degree of longitude is half a degree of latitude: straight, level, and not moving over ground.
STATE = dict.fromkeys(f.FIELDS, 0.0) | {
    f.LATITUDE: 60.0,
    f.LONGITUDE: 10.0,
    f.GPS_ALTITUDE: 3000.0,
    f.HEADING: 90.0,
    f.GROUND_SPEED: 194.3844,  # 100 m/s
    f.NORMAL_ACCELERATION: 1.0,
    f.AIRSPEED: 95.0,
    f.BARO_ALTITUDE: 3000.0,
    f.PRESSURE_ALTITUDE: 3000.0,
}
PASS, WARNING, CRITICAL = ("pass", "INFO"), ("fail", "WARNING"), ("fail", "CRITICAL")
TURN_AT_45 = 5.618796  # deg/s: 9.80665 · tan 45° / 100 m/s = 0.0980665 rad/s


@pytest.fixture(scope="module")
def plans():
    config = {"outputs": ["outputs"], "reference": ["reference"], "library": "ga-light/1+kinematics"}
    return {task: FlightPlan({**config, "task": task}) for task in f.TASKS}


@pytest.fixture
def observe(plans):
    """The atoms of one kinematic rule, by step."""

    def found(rule, answer, shown, task="S1"):
        plan = plans[task]
        states = shown if task == "S1" else [shown] * 3
        records = (
            {"id": "s", "model": "m", "response": json.dumps(answer)},
            {"id": "s", "current_state": states, "next_second": STATE},
        )
        tables = {
            item.role: item.read(block_of([(1, json.dumps(record).encode())]))
            for item, record in zip(plan.inputs(), records, strict=True)
        }
        (judged,) = plan.judge(Partition({}, ("m",), ("outputs", "reference"), tables=tables))
        return [atom for atom in atoms(judged.evidence, 0, "m", "s") if atom.rule == f"physics_constraint.{rule}"]

    return found


@pytest.mark.parametrize(
    "rule, shown, answer, result, observed",
    [
        # |VS − 196.85 · Vu|, 300 / 900 fpm
        ("climb_rate_agreement", {}, {f.VERTICAL_SPEED: 393.7, f.VELOCITY_U: 2.0}, PASS, 0.0),
        ("climb_rate_agreement", {}, {f.VERTICAL_SPEED: 690.0, f.VELOCITY_U: 2.0}, PASS, 296.3),
        ("climb_rate_agreement", {}, {f.VERTICAL_SPEED: 700.0, f.VELOCITY_U: 2.0}, WARNING, 306.3),
        ("climb_rate_agreement", {}, {f.VERTICAL_SPEED: -600.0, f.VELOCITY_U: 2.0}, CRITICAL, 993.7),
        ("climb_rate_agreement", {f.VERTICAL_SPEED: 9000.0}, {}, PASS, 0.0),
        # |altitude step − mean VS / 60|, 20 / 60 ft
        ("altitude_step_agreement", {}, {f.GPS_ALTITUDE: 3010.0, f.VERTICAL_SPEED: 1200.0}, PASS, 0.0),
        ("altitude_step_agreement", {f.VERTICAL_SPEED: -1200.0}, {f.GPS_ALTITUDE: 2990.0}, PASS, 0.0),
        ("altitude_step_agreement", {}, {f.GPS_ALTITUDE: 3025.0}, WARNING, 25.0),
        ("altitude_step_agreement", {}, {f.GPS_ALTITUDE: 2949.0, f.VERTICAL_SPEED: 1200.0}, CRITICAL, 61.0),
        # |position step − mean velocity|, 15 / 60 m: 0.001° are 111.32 m to the north, 55.66 m to the east
        ("position_step_agreement", {f.VELOCITY_E: 55.66}, {f.VELOCITY_E: 55.66, f.LONGITUDE: 10.001}, PASS, 0.0),
        ("position_step_agreement", {f.VELOCITY_N: 122.64}, {f.VELOCITY_N: 100.0, f.LATITUDE: 60.001}, PASS, 0.0),
        ("position_step_agreement", {}, {f.LONGITUDE: 10.001}, WARNING, 55.66),
        ("position_step_agreement", {}, {f.VELOCITY_E: 24.0, f.VELOCITY_N: -32.0}, WARNING, 20.0),
        (
            "position_step_agreement",
            {f.VELOCITY_N: -80.0},
            {f.VELOCITY_N: -80.0, f.LATITUDE: 60.0005},
            CRITICAL,
            135.66,
        ),
        # arc(heading step, turn rate), 5 / 15°
        ("heading_step_agreement", {f.HEADING: 359.0}, {f.HEADING: 1.0, f.TURN_RATE: 2.0}, PASS, 0.0),
        ("heading_step_agreement", {f.HEADING: 1.0}, {f.HEADING: 359.0, f.TURN_RATE: 2.0}, PASS, 4.0),
        ("heading_step_agreement", {}, {f.HEADING: 93.0, f.TURN_RATE: -3.0}, WARNING, 6.0),
        ("heading_step_agreement", {f.TURN_RATE: 20.0}, {f.HEADING: 106.0}, CRITICAL, 16.0),
        # |turn rate − g · tan(roll) / V|, 6 / 15 deg/s
        ("coordinated_turn", {}, {f.ROLL: 45.0, f.TURN_RATE: TURN_AT_45}, PASS, 0.0),
        ("coordinated_turn", {}, {f.ROLL: -45.0, f.TURN_RATE: -TURN_AT_45}, PASS, 0.0),
        ("coordinated_turn", {}, {f.ROLL: 45.0, f.GROUND_SPEED: 97.1922}, WARNING, 2 * TURN_AT_45),
        ("coordinated_turn", {}, {f.ROLL: -45.0, f.TURN_RATE: 2.0}, WARNING, TURN_AT_45 + 2.0),
        ("coordinated_turn", {}, {f.ROLL: 45.0, f.TURN_RATE: -10.0}, CRITICAL, TURN_AT_45 + 10.0),
        # |normal acceleration − 1 / cos(roll)|, 0.5 / 1.5 G
        ("load_factor", {}, {f.ROLL: 60.0, f.NORMAL_ACCELERATION: 2.0}, PASS, 0.0),
        ("load_factor", {}, {f.ROLL: -60.0, f.NORMAL_ACCELERATION: 1.6}, PASS, 0.4),
        ("load_factor", {}, {f.ROLL: 60.0, f.NORMAL_ACCELERATION: 1.0}, WARNING, 1.0),
        ("load_factor", {}, {f.NORMAL_ACCELERATION: 0.4}, WARNING, 0.6),
        ("load_factor", {}, {f.ROLL: 60.0, f.NORMAL_ACCELERATION: 3.6}, CRITICAL, 1.6),
    ],
)
def test_a_rule_observes_what_the_formula_says(observe, rule, shown, answer, result, observed):
    (atom,) = observe(rule, STATE | answer, STATE | shown)
    assert (atom.outcome, atom.severity) == result
    assert atom.observed == pytest.approx(observed, abs=1e-5)


@pytest.mark.parametrize(
    "rule, shown, answer, why",
    [
        ("altitude_step_agreement", {f.GPS_ALTITUDE: None}, {}, "the shown state has no value to compare with"),
        ("altitude_step_agreement", {f.VERTICAL_SPEED: None}, {}, "the shown state has no value to compare with"),
        ("position_step_agreement", {f.VELOCITY_E: None}, {}, "the shown state has no value to compare with"),
        ("heading_step_agreement", {f.HEADING: None}, {}, "the shown state has no value to compare with"),
        ("coordinated_turn", {}, {f.ROLL: 61.0}, "roll is over 60°"),
        ("coordinated_turn", {}, {f.GROUND_SPEED: 29.0}, "ground speed is under 30 kt"),
        ("load_factor", {}, {f.ROLL: -61.0}, "roll is over 60°"),
        ("load_factor", {}, {f.AIRSPEED: 29.0}, "airspeed is under 30 kt"),
    ],
)
def test_a_rule_that_cannot_be_applied_says_why(observe, rule, shown, answer, why):
    (atom,) = observe(rule, STATE | answer, STATE | shown)
    assert (atom.outcome, atom.observed, atom.why) == ("not_applicable", None, why)


@pytest.mark.parametrize("rule", ["climb_rate_agreement", "coordinated_turn", "load_factor"])
def test_a_rule_about_one_state_needs_no_shown_one(observe, rule):
    (atom,) = observe(rule, STATE, dict.fromkeys(f.FIELDS))
    assert atom.outcome == "pass"


@pytest.mark.parametrize(
    "rule, changes, expected",
    [
        ("climb_rate_agreement", {f.VELOCITY_U: [0.0, 2.0, -5.0]}, [0.0, 393.7, 984.25]),
        ("altitude_step_agreement", {f.GPS_ALTITUDE: [3005.0, 3035.0, 3035.0]}, [5.0, 30.0, 0.0]),
        ("altitude_step_agreement", {f.VERTICAL_SPEED: [0.0, 1200.0, 600.0]}, [0.0, 10.0, 15.0]),
        ("position_step_agreement", {f.LATITUDE: [60.0, 60.0001, 60.0001]}, [0.0, 11.132, 0.0]),
        ("heading_step_agreement", {f.HEADING: [90.0, 94.0, 92.0], f.TURN_RATE: [0.0, 1.0, 1.0]}, [0.0, 3.0, 3.0]),
        ("coordinated_turn", {f.TURN_RATE: [1.0, -2.0, 3.0]}, [1.0, 2.0, 3.0]),
        ("load_factor", {f.NORMAL_ACCELERATION: [1.0, 1.25, 0.5]}, [0.0, 0.25, 0.5]),
    ],
)
def test_each_step_of_an_array_is_compared_with_the_one_before(observe, rule, changes, expected):
    answer = {name: [value] * 3 for name, value in STATE.items()} | changes
    found = observe(rule, answer, STATE, task="M3")
    assert [atom.step for atom in found] == [0, 1, 2]
    assert [atom.observed for atom in found] == pytest.approx(expected, abs=1e-5)


def test_a_step_after_an_unusable_value_is_not_applicable(observe):
    answer = {name: [value] * 3 for name, value in STATE.items()} | {f.GPS_ALTITUDE: ["N/A", 3000.0, 3001.0]}
    found = observe("altitude_step_agreement", answer, STATE, task="M3")
    assert [atom.outcome for atom in found] == ["not_applicable", "not_applicable", "pass"]
    assert found[2].observed == 1.0
