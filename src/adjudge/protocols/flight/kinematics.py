"""Six rules beyond the original protocol that tie the fields together by kinematics; off unless the library has them."""

from __future__ import annotations

import numpy as np

from adjudge.evidence.rule import Condition, Floats, Limits, Mask, Rule
from adjudge.protocols.flight import fields as f
from adjudge.protocols.flight.batch import KNOTS, FlightBatch, StepRule, arc
from adjudge.protocols.flight.config import Kinematics, TwoLimits

FPM_PER_MPS = 196.85
METRES_PER_DEGREE = 111_320.0
_GRAVITY = 9.80665
_STEEPEST = 60.0
_SLOWEST = 30.0


def kinematic_rules(task: f.Task, limits: Kinematics) -> list[Rule]:
    """The rules, one atom a step."""
    gentle = Condition(lambda b: np.abs(b.value(f.ROLL)) <= _STEEPEST, f"roll is over {_STEEPEST:g}°")
    moving = Condition(lambda b: b.value(f.GROUND_SPEED) >= _SLOWEST, f"ground speed is under {_SLOWEST:g} kt")
    flying = Condition(lambda b: b.value(f.AIRSPEED) >= _SLOWEST, f"airspeed is under {_SLOWEST:g} kt")
    height = (f.GPS_ALTITUDE, f.VERTICAL_SPEED)
    course = (f.LATITUDE, f.LONGITUDE, f.VELOCITY_E, f.VELOCITY_N)
    rules = (
        StepRule(
            "physics_constraint.climb_rate_agreement", "vertical speed equals the vertical GPS velocity",
            (f.VERTICAL_SPEED, f.VELOCITY_U),
            lambda b: np.abs(b.value(f.VERTICAL_SPEED) - FPM_PER_MPS * b.value(f.VELOCITY_U)),
            _limits(limits.climb_rate), "vertical speed and GPS velocity U disagree by {observed} fpm", "fpm",
        ),
        StepRule(
            "physics_constraint.altitude_step_agreement", "altitude changes as vertical speed says", height, _altitude_gap,
            _limits(limits.altitude_step), "the altitude step and the vertical speed disagree by {observed} ft", "ft",
            height, (_known_before(task, height),),
        ),
        StepRule(
            "physics_constraint.position_step_agreement", "position changes as the E/N velocity says", course, _position_gap,
            _limits(limits.position_step), "the position step and the velocity disagree by {observed} m", "m",
            course, (_known_before(task, course),),
        ),
        StepRule(
            "physics_constraint.heading_step_agreement", "heading changes as the turn rate says",
            (f.HEADING, f.TURN_RATE), _heading_gap,
            _limits(limits.heading_step), "the heading step and the turn rate disagree by {observed} deg", "deg",
            (f.HEADING,), (_known_before(task, (f.HEADING,)),),
        ),
        StepRule(
            "physics_constraint.coordinated_turn", "turn rate fits bank and speed",
            (f.TURN_RATE, f.ROLL, f.GROUND_SPEED), _turn_gap,
            _limits(limits.coordinated_turn), "the turn rate and g·tan(roll)/V disagree by {observed} deg/s", "deg/s",
            (), (gentle, moving),
        ),
        StepRule(
            "physics_constraint.load_factor", "normal acceleration fits the bank",
            (f.NORMAL_ACCELERATION, f.ROLL, f.AIRSPEED),
            lambda b: np.abs(b.value(f.NORMAL_ACCELERATION) - 1.0 / np.cos(np.radians(b.value(f.ROLL)))),
            _limits(limits.load_factor), "the normal acceleration and 1/cos(roll) disagree by {observed} G", "G",
            (), (gentle, flying),
        ),
    )  # fmt: skip
    return [rule.rule(task) for rule in rules]


def _limits(pair: TwoLimits) -> Limits:
    return Limits(high=pair.warning, critical_high=pair.critical)


def _known_before(task: f.Task, names: tuple[str, ...]) -> Condition:
    def holds(batch: FlightBatch) -> Mask:
        mask = np.ones((task.steps, batch.n), dtype=bool)
        for name in names:
            mask[0] &= ~np.isnan(batch.shown_value(name))
        return mask

    return Condition(holds, "the shown state has no value to compare with")


def _previous(batch: FlightBatch, name: str) -> Floats:
    column: Floats = batch.before[:, f.INDEX[name]]
    return column


def _mean(batch: FlightBatch, name: str) -> Floats:
    """The mean of a rate over the second, which is what carried the state from one step to the next."""
    return 0.5 * (batch.value(name) + _previous(batch, name))


def _altitude_gap(batch: FlightBatch) -> Floats:
    step = batch.value(f.GPS_ALTITUDE) - _previous(batch, f.GPS_ALTITUDE)
    return np.abs(step - _mean(batch, f.VERTICAL_SPEED) / 60.0)


def _position_gap(batch: FlightBatch) -> Floats:
    north = METRES_PER_DEGREE * (batch.value(f.LATITUDE) - _previous(batch, f.LATITUDE))
    scale = METRES_PER_DEGREE * np.cos(np.radians(batch.value(f.LATITUDE)))
    east = scale * (batch.value(f.LONGITUDE) - _previous(batch, f.LONGITUDE))
    return np.hypot(east - _mean(batch, f.VELOCITY_E), north - _mean(batch, f.VELOCITY_N))


def _heading_gap(batch: FlightBatch) -> Floats:
    return arc(batch.value(f.HEADING) - _previous(batch, f.HEADING), batch.value(f.TURN_RATE))


def _turn_gap(batch: FlightBatch) -> Floats:
    metres = np.maximum(batch.value(f.GROUND_SPEED), _SLOWEST) / KNOTS
    expected = np.degrees(_GRAVITY * np.tan(np.radians(batch.value(f.ROLL))) / metres)
    return np.abs(batch.value(f.TURN_RATE) - expected)
