"""Six rules beyond the original protocol that tie the fields together by kinematics; off unless the library has them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adjudge.evidence.rule import Condition, Floats, Limits, Mask, Rule, Slot
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.flight import fields as f
from adjudge.protocols.flight.batch import KNOTS, FlightBatch, arc
from adjudge.protocols.flight.library import Kinematics, TwoLimits

FPM_PER_MPS = 196.85
METRES_PER_DEGREE = 111_320.0
_GRAVITY = 9.80665
_STEEPEST = 60.0
_SLOWEST = 30.0


def kinematic_rules(task: f.Task, limits: Kinematics, needs: tuple[str, ...]) -> list[Rule]:
    """The rules, one atom a step."""

    def rule(
        code: str,
        title: str,
        text: str,
        unit: str,
        pair: TwoLimits,
        now: tuple[str, ...],
        before: tuple[str, ...],
        quantity: Callable[[FlightBatch], Floats],
        conditions: tuple[Condition, ...] = (),
    ) -> Rule:
        return Rule(
            code=f"physics_constraint.{code}",
            title=title,
            scope=Scope.CROSS_FIELD,
            slots=tuple(
                Slot(
                    None, step, tuple((name, step) for name in now) + tuple((name, step - 1) for name in before if step)
                )
                for step in range(task.steps)
            ),
            needs=needs,
            unit=unit,
            passed=f"{text} by {{observed}} {unit}, at most {pair.warning:g}",
            failed=f"{text} by {{observed}} {unit}; allowed is at most {pair.warning:g}",
            quantity=quantity,
            limits=Limits(high=pair.warning, critical_high=pair.critical),
            conditions=(*conditions, *((_known_before(task, before),) if before else ())),
        )

    gentle = Condition(lambda b: np.abs(b.value(f.ROLL)) <= _STEEPEST, f"roll is over {_STEEPEST:g}°")
    moving = Condition(lambda b: b.value(f.GROUND_SPEED) >= _SLOWEST, f"ground speed is under {_SLOWEST:g} kt")
    flying = Condition(lambda b: b.value(f.AIRSPEED) >= _SLOWEST, f"airspeed is under {_SLOWEST:g} kt")
    return [
        rule(
            "climb_rate_agreement", "vertical speed equals the vertical GPS velocity",
            "vertical speed and GPS velocity U disagree", "fpm", limits.climb_rate,
            (f.VERTICAL_SPEED, f.VELOCITY_U), (),
            lambda b: np.abs(b.value(f.VERTICAL_SPEED) - FPM_PER_MPS * b.value(f.VELOCITY_U)),
        ),
        rule(
            "altitude_step_agreement", "altitude changes as vertical speed says",
            "the altitude step and the vertical speed disagree", "ft", limits.altitude_step,
            (f.GPS_ALTITUDE, f.VERTICAL_SPEED), (f.GPS_ALTITUDE, f.VERTICAL_SPEED), _altitude_gap,
        ),
        rule(
            "position_step_agreement", "position changes as the E/N velocity says",
            "the position step and the velocity disagree", "m", limits.position_step,
            (f.LATITUDE, f.LONGITUDE, f.VELOCITY_E, f.VELOCITY_N),
            (f.LATITUDE, f.LONGITUDE, f.VELOCITY_E, f.VELOCITY_N), _position_gap,
        ),
        rule(
            "heading_step_agreement", "heading changes as the turn rate says",
            "the heading step and the turn rate disagree", "deg", limits.heading_step,
            (f.HEADING, f.TURN_RATE), (f.HEADING,), _heading_gap,
        ),
        rule(
            "coordinated_turn", "turn rate fits bank and speed",
            "the turn rate and g·tan(roll)/V disagree", "deg/s", limits.coordinated_turn,
            (f.TURN_RATE, f.ROLL, f.GROUND_SPEED), (), _turn_gap, (gentle, moving),
        ),
        rule(
            "load_factor", "normal acceleration fits the bank",
            "the normal acceleration and 1/cos(roll) disagree", "G", limits.load_factor,
            (f.NORMAL_ACCELERATION, f.ROLL, f.AIRSPEED), (),
            lambda b: np.abs(b.value(f.NORMAL_ACCELERATION) - 1.0 / np.cos(np.radians(b.value(f.ROLL)))),
            (gentle, flying),
        ),
    ]  # fmt: skip


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
