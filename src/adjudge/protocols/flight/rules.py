"""The rules of the flight protocol: six families and the protocol's own, built from the task and the library."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.evidence.rule import Case, Condition, Finding, Floats, Limits, Mask, Rule, RuleSet, Variant
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.flight import fields as f
from adjudge.protocols.flight.batch import NEEDS, FlightBatch, StepRule, arc, field_slots, step_slots
from adjudge.protocols.flight.config import Library
from adjudge.protocols.flight.fields import ANSWERED, INVALID_VALUE, VALID
from adjudge.protocols.flight.kinematics import kinematic_rules

FAMILIES = (
    "numeric_validity",
    "range_sanity",
    "jump_dynamics",
    "cross_field_consistency",
    "physics_constraint",
    "safety_constraint",
)
_UNITS = tuple(name.rpartition("(")[2].rstrip(")").removeprefix("WGS84 ") if "(" in name else "" for name in f.FIELDS)


@dataclass(frozen=True)
class FlightContext:
    """What the rules are built from."""

    task: f.Task
    library: Library
    several: bool = False
    """Whether the run has other tasks too, so that messages speak of all of them."""


def build(context: FlightContext) -> list[Rule]:
    """All rules, in the order in which their atoms stand."""
    task, library = context.task, context.library
    rules = [_protocol(), _numeric(context), _range(task, library), _jump(task, library)]
    rules += _cross_field(task, library)
    if task.arrays:
        rules.append(_continuity(task, library))
    rules += [_vertical_speed(task, library), _attitude(task, library)]
    if library.kinematics is not None:
        rules += kinematic_rules(task, library.kinematics)
    rules += _safety(task, library)
    return rules


RULES = RuleSet("flight", "flight", build, version="2")


def _protocol() -> Rule:
    def check(batch: FlightBatch) -> Finding:
        failed = (batch.status != ANSWERED)[None]
        details = {(0, sample): text for sample, text in batch.notes.items()}
        return Finding(failed, failed, variant=np.maximum(batch.status.astype(np.int8) - 1, 0)[None], details=details)

    return Rule(
        code="protocol.json_parse",
        title="the answer is a JSON object with at least one of the 19 fields",
        passed="an answer was extracted",
        failed="no answer could be read from the text: {why}",
        check=check,
        variants=(
            Variant("protocol.api_error", "the call to the model succeeded", "the call to the model failed: {why}"),
            Variant("protocol.abstained", "the model answered", "the model abstained: {why}"),
            Variant("protocol.missing_output", "there is an output for the sample", "there is no output: {why}"),
        ),
    )


def _numeric(context: FlightContext) -> Rule:
    task = context.task

    def check(batch: FlightBatch) -> Finding:
        failed = batch.validity != VALID
        # Variant 0 is invalid_value; missing_field and array_shape follow.
        variant = np.where(batch.validity == INVALID_VALUE, 0, batch.validity).astype(np.int8)
        return Finding(failed, failed, variant=variant, details=batch.details)

    shape = "an array of exactly 3 numbers" if task.arrays else "one number"
    shape = "of the shape that its task asks for" if context.several else shape
    return Rule(
        code="numeric_validity.invalid_value",
        title="every value is a finite number",
        scope=Scope.FIELD,
        slots=field_slots(task),
        needs=("protocol",),
        passed="{field} is a number",
        failed="{field} is not a finite number: {why}",
        check=check,
        variants=(
            Variant("numeric_validity.missing_field", "every field is present", "{field} is missing from the answer"),
            Variant("numeric_validity.array_shape", f"every field is {shape}", f"{{field}} is not {shape}: {{why}}"),
        ),
    )


def _range(task: f.Task, library: Library) -> Rule:
    low, high = (np.tile(column, task.steps) for column in library.ranges().T)
    beyond = library.severity.range_span_fraction * (high - low)
    return Rule(
        code="range_sanity.out_of_range",
        title="every value lies in the range that the aircraft can reach",
        scope=Scope.FIELD,
        slots=field_slots(task),
        needs=NEEDS,
        unit=_UNITS * task.steps,
        passed="{field} is {observed}, within {low} to {high}",
        failed="{field} is {observed} {unit}, outside {low} to {high}",
        quantity=lambda batch: batch.answer.reshape(-1, batch.n),
        limits=Limits(low, high, low - beyond, high + beyond, by_span=True),
    )


def _jump(task: f.Task, library: Library) -> Rule:
    limit = np.tile(library.jumps(), task.steps)

    def has_before(batch: FlightBatch) -> Mask:
        holds = np.ones((task.steps, len(f.FIELDS), batch.n), dtype=bool)
        holds[0] = ~np.isnan(batch.shown)
        return holds.reshape(-1, batch.n)

    return Rule(
        code="jump_dynamics.mutation_violation",
        title="no value changes faster than the aircraft can",
        scope=Scope.FIELD,
        slots=field_slots(task, before=True),
        needs=NEEDS,
        unit=_UNITS * task.steps,
        passed="{field} changes by {observed} in one second, at most {high}",
        failed="{field} changes by {observed} {unit} in one second; the limit is {high}",
        quantity=lambda batch: batch.steps.reshape(-1, batch.n),
        limits=Limits(high=limit, critical_high=library.severity.critical_factor * limit),
        conditions=(Condition(has_before, "the shown state has no value to compare with"),),
    )


def _cross_field(task: f.Task, library: Library) -> list[Rule]:
    limits = library.rules
    altitude, speed, track = limits.altitude_consistency, limits.speed_consistency, limits.track_consistency

    def altitude_gap(batch: FlightBatch) -> Floats:
        gap = batch.value(f.GPS_ALTITUDE) - batch.value(f.BARO_ALTITUDE)
        if altitude.relative_to_shown:
            gap = gap - (batch.shown_value(f.GPS_ALTITUDE) - batch.shown_value(f.BARO_ALTITUDE))
        return np.abs(gap)

    def offset_known(batch: FlightBatch) -> Mask:
        offset = batch.shown_value(f.GPS_ALTITUDE) - batch.shown_value(f.BARO_ALTITUDE)
        return np.broadcast_to(~np.isnan(offset), (task.steps, batch.n))

    def heading_gap(batch: FlightBatch) -> Floats:
        bearing = np.degrees(np.arctan2(batch.value(f.VELOCITY_E), batch.value(f.VELOCITY_N)))
        return arc(batch.value(f.TRACK), bearing)

    relative = " beyond the offset of the shown state" if altitude.relative_to_shown else ""
    known = (Condition(offset_known, "the shown state has no altitude offset to compare with"),)
    slow = f"the aircraft moves slower than {track.not_under_kt:g} kt"
    moving = Condition(lambda batch: batch.vector_speed >= track.not_under_kt, slow)
    rules = (
        StepRule(
            "cross_field_consistency.altitude_consistency",
            "GPS and baro altitude agree" + relative,
            (f.GPS_ALTITUDE, f.BARO_ALTITUDE),
            altitude_gap,
            Limits(high=altitude.warning, critical_high=altitude.critical),
            "GPS and baro altitude differ by {observed} ft" + relative,
            "ft",
            conditions=known if altitude.relative_to_shown else (),
        ),
        StepRule(
            "cross_field_consistency.speed_consistency",
            "ground speed equals the speed of the E/N velocity",
            (f.GROUND_SPEED, f.VELOCITY_E, f.VELOCITY_N),
            lambda batch: np.abs(batch.value(f.GROUND_SPEED) - batch.vector_speed),
            Limits(high=speed.warning, critical_high=speed.critical),
            "ground speed and the E/N velocity differ by {observed} kt",
            "kt",
        ),
        StepRule(
            "cross_field_consistency.track_consistency",
            "the track points where the E/N velocity does",
            (f.TRACK, f.VELOCITY_E, f.VELOCITY_N),
            heading_gap,
            Limits(high=track.warning, critical_high=track.critical),
            "the track and the E/N velocity differ by {observed}°",
            "deg",
            conditions=(moving,),
        ),
    )
    return [rule.rule(task) for rule in rules]


def _continuity(task: f.Task, library: Library) -> Rule:
    limits = library.rules.m3_array_continuity
    limit = np.tile(limits.jumps * library.jumps(), task.steps - 1)
    return Rule(
        code="physics_constraint.m3_array_continuity",
        title="the predicted seconds follow one another without a break",
        scope=Scope.FIELD,
        slots=field_slots(task, first=1, before=True),
        needs=NEEDS,
        unit=_UNITS * (task.steps - 1),
        passed="{field} moves by {observed} from step to step, at most {high}",
        failed="{field} breaks by {observed} {unit} between two predicted seconds; the limit is {high}",
        quantity=lambda batch: batch.steps[1:].reshape(-1, batch.n),
        limits=Limits(high=limit, critical_high=limits.critical_factor * limit),
    )


def _vertical_speed(task: f.Task, library: Library) -> Rule:
    vertical = library.rules.velocity_altitude_consistency

    def check(batch: FlightBatch) -> Finding:
        observed = np.abs(batch.value(f.VERTICAL_SPEED))
        low = batch.value(f.GPS_ALTITUDE) < vertical.low_altitude_ft
        failed = observed > np.where(low, vertical.low_limit_fpm, vertical.limit_fpm)
        return Finding(failed, np.zeros_like(failed), observed, case=low.view(np.int8))

    passed = "vertical speed of {observed} fpm fits the altitude, at most {high}"
    return Rule(
        code="physics_constraint.velocity_altitude_consistency",
        title="vertical speed fits the altitude",
        scope=Scope.CROSS_FIELD,
        slots=step_slots(task, f.VERTICAL_SPEED, f.GPS_ALTITUDE),
        needs=NEEDS,
        unit="fpm",
        passed=passed,
        failed="vertical speed of {observed} fpm; the limit is {high} fpm",
        check=check,
        nominal=Limits(high=vertical.limit_fpm),
        cases=(
            Case(
                f"GPS altitude is under {vertical.low_altitude_ft:g} ft",
                Limits(high=vertical.low_limit_fpm),
                passed,
                f"vertical speed of {{observed}} fpm; the limit is {{high}} fpm under {vertical.low_altitude_ft:g} ft",
                "fpm",
            ),
        ),
    )


def _attitude(task: f.Task, library: Library) -> Rule:
    attitude = library.rules.attitude_velocity_consistency

    def check(batch: FlightBatch) -> Finding:
        roll, pitch = np.abs(batch.value(f.ROLL)), np.abs(batch.value(f.PITCH))
        steepest = np.maximum(roll, pitch)
        critical = steepest > attitude.critical_deg
        climb = np.abs(batch.value(f.VELOCITY_U))
        nose = (pitch > attitude.pitch_deg) & ~critical
        flat = nose & (climb < attitude.climb_per_degree * pitch)
        observed = np.where(nose, climb / np.where(nose, pitch, 1.0), steepest) if nose.any() else steepest
        return Finding(critical | flat, critical, observed, case=nose.view(np.int8))

    return Rule(
        code="physics_constraint.attitude_velocity_consistency",
        title="attitude is one that normal flight has, and pitch goes with climb",
        scope=Scope.CROSS_FIELD,
        slots=step_slots(task, f.ROLL, f.PITCH, f.VELOCITY_U),
        needs=NEEDS,
        unit="deg",
        passed="roll and pitch reach {observed}°, at most {high}",
        failed="roll or pitch reaches {observed}°: over {high}° is no normal flight",
        check=check,
        nominal=Limits(high=attitude.critical_deg, critical_high=attitude.critical_deg),
        cases=(
            Case(
                f"pitch is over {attitude.pitch_deg:g}°",
                Limits(low=attitude.climb_per_degree),
                "vertical velocity is {observed} m/s per degree of pitch, not under {low}",
                f"vertical velocity is {{observed}} m/s per degree of pitch: with pitch over {attitude.pitch_deg:g}° it must "
                "climb or sink at {low} m/s per degree",
                "m/s per degree",
            ),
        ),
    )


def _safety(task: f.Task, library: Library) -> list[Rule]:
    limits, ground = library.rules, library.airborne_only
    descent, speed, altitude = limits.rapid_descent, limits.extreme_speed, limits.extreme_altitude

    def airborne(batch: FlightBatch) -> Mask:
        return np.broadcast_to(~(batch.shown_value(f.AIRSPEED) < ground.under_kt), (task.steps, batch.n))

    def airborne_or_fast(batch: FlightBatch) -> Mask:
        return airborne(batch) | (batch.value(f.AIRSPEED) >= speed.low_kt)

    on_ground = f"the shown airspeed is under {ground.under_kt:g} kt (airborne_only)"
    rules = (
        StepRule(
            "safety_constraint.rapid_descent",
            "the aircraft does not fall",
            (f.VERTICAL_SPEED,),
            lambda batch: batch.value(f.VERTICAL_SPEED),
            Limits(low=descent.warning, critical_low=descent.critical),
            "vertical speed is {observed} fpm",
            "fpm",
        ),
        StepRule(
            "safety_constraint.extreme_speed",
            "airspeed is one at which the aircraft flies safely",
            (f.AIRSPEED,),
            lambda batch: batch.value(f.AIRSPEED),
            Limits(low=speed.low_kt, high=speed.high_kt, critical_low=speed.low_kt),
            "indicated airspeed is {observed} kt",
            "kt",
            conditions=(Condition(airborne_or_fast, on_ground),) if ground.enabled else (),
        ),
        StepRule(
            "safety_constraint.extreme_altitude",
            "altitude is neither below the ellipsoid nor out of reach",
            (f.GPS_ALTITUDE,),
            lambda batch: batch.value(f.GPS_ALTITUDE),
            Limits(low=altitude.low_ft, high=altitude.high_ft, critical_low=altitude.low_ft),
            "GPS altitude is {observed} ft",
            "ft",
        ),
    )
    in_the_air = (Condition(airborne, on_ground),) if ground.enabled else ()
    return [*(rule.rule(task) for rule in rules), _stall(task, library, in_the_air)]


def _stall(task: f.Task, library: Library, conditions: tuple[Condition, ...]) -> Rule:
    """Slow, nose up and sinking at once; an aircraft that is slow is safe by the first of the other two that does not hold."""
    stall = library.rules.stall_condition

    def check(batch: FlightBatch) -> Finding:
        airspeed, pitch, climb = (batch.value(name) for name in (f.AIRSPEED, f.PITCH, f.VERTICAL_SPEED))
        slow = airspeed < stall.airspeed_kt
        if not slow.any():
            return Finding(slow, slow, airspeed.copy())
        level = slow & ~(pitch > stall.pitch_deg)
        climbing = slow & ~level & ~(climb < stall.vertical_speed_fpm)
        failed = slow & ~level & ~climbing
        observed = np.where(level, pitch, np.where(climbing, climb, airspeed))
        return Finding(failed, failed, observed, case=level + np.int8(2) * climbing)

    return Rule(
        code="safety_constraint.stall_condition",
        title="the aircraft is not slow, nose up and sinking at once",
        scope=Scope.CROSS_FIELD,
        slots=step_slots(task, f.AIRSPEED, f.PITCH, f.VERTICAL_SPEED),
        needs=NEEDS,
        unit="kt",
        passed="no stall: airspeed is {observed} kt, not under {low}",
        failed=(
            f"stall at {{observed}} kt: under {{low}} kt with pitch over {stall.pitch_deg:g}° and "
            f"vertical speed under {stall.vertical_speed_fpm:g} fpm"
        ),
        check=check,
        nominal=Limits(low=stall.airspeed_kt, critical_low=stall.airspeed_kt),
        conditions=conditions,
        cases=(
            Case(
                f"airspeed is under {stall.airspeed_kt:g} kt, and pitch is not up",
                Limits(high=stall.pitch_deg),
                f"no stall under {stall.airspeed_kt:g} kt: pitch is {{observed}}°, not over {{high}}",
                "",
                "deg",
            ),
            Case(
                f"airspeed is under {stall.airspeed_kt:g} kt with pitch up, and the aircraft climbs",
                Limits(low=stall.vertical_speed_fpm),
                f"no stall under {stall.airspeed_kt:g} kt: vertical speed is {{observed}} fpm, not under {{low}}",
                "",
                "fpm",
            ),
        ),
    )
