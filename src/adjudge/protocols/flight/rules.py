"""The rules of the flight protocol: six families and the protocol's own, built from the task and the library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adjudge.evidence.rule import Condition, Finding, Floats, Limits, Mask, Rule, RuleSet, Slot, Variant
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.flight import fields as f
from adjudge.protocols.flight.batch import ANSWERED, VALID, FlightBatch, arc
from adjudge.protocols.flight.kinematics import kinematic_rules
from adjudge.protocols.flight.library import Library

FAMILIES = (
    "numeric_validity",
    "range_sanity",
    "jump_dynamics",
    "cross_field_consistency",
    "physics_constraint",
    "safety_constraint",
)
_NEEDS = ("numeric_validity",)
_UNITS = tuple(name.rpartition("(")[2].rstrip(")").removeprefix("WGS84 ") if "(" in name else "" for name in f.FIELDS)


@dataclass(frozen=True)
class FlightContext:
    """What the rules are built from."""

    task: f.Task
    library: Library


def field_slots(task: f.Task, *, first: int = 0, before: bool = False) -> tuple[Slot, ...]:
    """One slot a field and step; with `before`, reading the step before as well."""
    return tuple(
        Slot(name, step, ((name, step), (name, step - 1)) if before and step else ((name, step),))
        for step in range(first, task.steps)
        for name in f.FIELDS
    )


def step_slots(task: f.Task, *names: str) -> tuple[Slot, ...]:
    """One slot a step, reading several fields of that step."""
    return tuple(Slot(None, step, tuple((name, step) for name in names)) for step in range(task.steps))


def build(context: FlightContext) -> list[Rule]:
    """All rules, in the order in which their atoms stand."""
    task, library = context.task, context.library
    rules = [_protocol(), _numeric(task), _range(task, library), _jump(task, library)]
    rules += _cross_field(task, library)
    if task.arrays:
        rules.append(_continuity(task, library))
    rules += _physics(task, library)
    if library.kinematics is not None:
        rules += kinematic_rules(task, library.kinematics, _NEEDS)
    rules += _safety(task, library)
    return rules


RULES = RuleSet("flight", "flight", build)


def _protocol() -> Rule:
    def check(batch: FlightBatch) -> Finding:
        failed = (batch.status != ANSWERED)[None]
        details = {(0, sample): text for sample, text in batch.notes.items()}
        return Finding(failed, failed, variant=np.maximum(batch.status.astype(np.int8) - 1, 0)[None], details=details)

    return Rule(
        code="protocol.json_parse",
        title="the answer is a JSON object with at least one of the 19 fields",
        scope=Scope.SAMPLE,
        slots=(Slot(None, 0),),
        passed="an answer was extracted",
        failed="no answer could be read from the text: {why}",
        check=check,
        variants=(
            Variant("protocol.api_error", "the call to the model succeeded", "the call to the model failed: {why}"),
            Variant("protocol.abstained", "the model answered", "the model abstained: {why}"),
            Variant("protocol.missing_output", "there is an output for the sample", "there is no output: {why}"),
        ),
    )


def _numeric(task: f.Task) -> Rule:
    def check(batch: FlightBatch) -> Finding:
        failed = batch.validity != VALID
        # Variant 0 is invalid_value; missing_field and array_shape follow.
        variant = np.where(batch.validity == 3, 0, batch.validity).astype(np.int8)
        return Finding(failed, failed, variant=variant, details=batch.details)

    shape = "an array of exactly 3 numbers" if task.arrays else "one number"
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
        needs=_NEEDS,
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
        needs=_NEEDS,
        unit=_UNITS * task.steps,
        passed="{field} changes by {observed} in one second, at most {high}",
        failed="{field} changes by {observed} {unit} in one second; the limit is {high}",
        quantity=lambda batch: batch.steps.reshape(-1, batch.n),
        limits=Limits(high=limit, critical_high=library.severity.critical_factor * limit),
        conditions=(Condition(has_before, "the shown state has no value to compare with"),),
    )


def _cross_field(task: f.Task, library: Library) -> list[Rule]:
    altitude, speed, track = (
        library.rules.altitude_consistency,
        library.rules.speed_consistency,
        library.rules.track_consistency,
    )

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
    return [
        _simple(
            "cross_field_consistency.altitude_consistency",
            "GPS and baro altitude agree" + relative,
            task,
            (f.GPS_ALTITUDE, f.BARO_ALTITUDE),
            altitude_gap,
            Limits(high=altitude.warning, critical_high=altitude.critical),
            "GPS and baro altitude differ by {observed} ft" + relative,
            conditions=known if altitude.relative_to_shown else (),
            unit="ft",
        ),
        _simple(
            "cross_field_consistency.speed_consistency",
            "ground speed equals the speed of the E/N velocity",
            task,
            (f.GROUND_SPEED, f.VELOCITY_E, f.VELOCITY_N),
            lambda batch: np.abs(batch.value(f.GROUND_SPEED) - batch.vector_speed),
            Limits(high=speed.warning, critical_high=speed.critical),
            "ground speed and the E/N velocity differ by {observed} kt",
            unit="kt",
        ),
        _simple(
            "cross_field_consistency.track_consistency",
            "the track points where the E/N velocity does",
            task,
            (f.TRACK, f.VELOCITY_E, f.VELOCITY_N),
            heading_gap,
            Limits(high=track.warning, critical_high=track.critical),
            "the track and the E/N velocity differ by {observed}°",
            conditions=(
                Condition(
                    lambda batch: batch.vector_speed >= track.not_under_kt,
                    f"the aircraft moves slower than {track.not_under_kt:g} kt",
                ),
            ),
            unit="deg",
        ),
    ]


def _continuity(task: f.Task, library: Library) -> Rule:
    limits = library.rules.m3_array_continuity
    limit = np.tile(limits.jumps * library.jumps(), task.steps - 1)
    return Rule(
        code="physics_constraint.m3_array_continuity",
        title="the predicted seconds follow one another without a break",
        scope=Scope.FIELD,
        slots=field_slots(task, first=1, before=True),
        needs=_NEEDS,
        unit=_UNITS * (task.steps - 1),
        passed="{field} moves by {observed} from step to step, at most {high}",
        failed="{field} breaks by {observed} {unit} between two predicted seconds; the limit is {high}",
        quantity=lambda batch: batch.steps[1:].reshape(-1, batch.n),
        limits=Limits(high=limit, critical_high=limits.critical_factor * limit),
    )


def _physics(task: f.Task, library: Library) -> list[Rule]:
    vertical, attitude = library.rules.velocity_altitude_consistency, library.rules.attitude_velocity_consistency

    def vertical_limits(batch: FlightBatch) -> Limits:
        low = batch.value(f.GPS_ALTITUDE) < vertical.low_altitude_ft
        return Limits(high=np.where(low, vertical.low_limit_fpm, vertical.limit_fpm))

    def attitude_check(batch: FlightBatch) -> Finding:
        roll, pitch = np.abs(batch.value(f.ROLL)), np.abs(batch.value(f.PITCH))
        observed = np.maximum(roll, pitch)
        critical = observed > attitude.critical_deg
        level = np.abs(batch.value(f.VELOCITY_U)) < attitude.climb_per_degree * pitch
        return Finding(critical | ((pitch > attitude.pitch_deg) & level), critical, observed)

    return [
        Rule(
            code="physics_constraint.velocity_altitude_consistency",
            title="vertical speed fits the altitude",
            scope=Scope.CROSS_FIELD,
            slots=step_slots(task, f.VERTICAL_SPEED, f.GPS_ALTITUDE),
            needs=_NEEDS,
            unit="fpm",
            passed="vertical speed of {observed} fpm fits the altitude",
            failed=(
                f"vertical speed of {{observed}} fpm; the limit is {vertical.low_limit_fpm:g} fpm under "
                f"{vertical.low_altitude_ft:g} ft and {vertical.limit_fpm:g} fpm elsewhere"
            ),
            quantity=lambda batch: np.abs(batch.value(f.VERTICAL_SPEED)),
            batch_limits=vertical_limits,
            nominal=Limits(high=vertical.low_limit_fpm),
        ),
        Rule(
            code="physics_constraint.attitude_velocity_consistency",
            title="attitude is one that normal flight has, and pitch goes with climb",
            scope=Scope.CROSS_FIELD,
            slots=step_slots(task, f.ROLL, f.PITCH, f.VELOCITY_U),
            needs=_NEEDS,
            unit="deg",
            passed="roll and pitch reach {observed}° and fit the vertical velocity",
            failed=(
                f"roll or pitch reaches {{observed}}°: over {attitude.critical_deg:g}° is no normal flight, and pitch over "
                f"{attitude.pitch_deg:g}° must climb or sink at {attitude.climb_per_degree:g} m/s per degree"
            ),
            check=attitude_check,
            nominal=Limits(high=attitude.critical_deg, critical_high=attitude.critical_deg),
        ),
    ]


def _safety(task: f.Task, library: Library) -> list[Rule]:
    descent, speed, altitude, stall = (
        library.rules.rapid_descent,
        library.rules.extreme_speed,
        library.rules.extreme_altitude,
        library.rules.stall_condition,
    )
    ground = library.airborne_only

    def airborne(batch: FlightBatch) -> Mask:
        return np.broadcast_to(~(batch.shown_value(f.AIRSPEED) < ground.under_kt), (task.steps, batch.n))

    def airborne_or_fast(batch: FlightBatch) -> Mask:
        return airborne(batch) | (batch.value(f.AIRSPEED) >= speed.low_kt)

    on_ground = f"the shown airspeed is under {ground.under_kt:g} kt (airborne_only)"

    def stall_check(batch: FlightBatch) -> Finding:
        airspeed = batch.value(f.AIRSPEED)
        failed = (
            (airspeed < stall.airspeed_kt)
            & (batch.value(f.PITCH) > stall.pitch_deg)
            & (batch.value(f.VERTICAL_SPEED) < stall.vertical_speed_fpm)
        )
        return Finding(failed, failed, airspeed.copy())

    return [
        _simple(
            "safety_constraint.rapid_descent",
            "the aircraft does not fall",
            task,
            (f.VERTICAL_SPEED,),
            lambda batch: batch.value(f.VERTICAL_SPEED),
            Limits(low=descent.warning, critical_low=descent.critical),
            "vertical speed is {observed} fpm",
            unit="fpm",
        ),
        _simple(
            "safety_constraint.extreme_speed",
            "airspeed is one at which the aircraft flies safely",
            task,
            (f.AIRSPEED,),
            lambda batch: batch.value(f.AIRSPEED),
            Limits(low=speed.low_kt, high=speed.high_kt, critical_low=speed.low_kt),
            "indicated airspeed is {observed} kt",
            conditions=(Condition(airborne_or_fast, on_ground),) if ground.enabled else (),
            unit="kt",
        ),
        _simple(
            "safety_constraint.extreme_altitude",
            "altitude is neither below the ellipsoid nor out of reach",
            task,
            (f.GPS_ALTITUDE,),
            lambda batch: batch.value(f.GPS_ALTITUDE),
            Limits(low=altitude.low_ft, high=altitude.high_ft, critical_low=altitude.low_ft),
            "GPS altitude is {observed} ft",
            unit="ft",
        ),
        Rule(
            code="safety_constraint.stall_condition",
            title="the aircraft is not slow, nose up and sinking at once",
            scope=Scope.CROSS_FIELD,
            slots=step_slots(task, f.AIRSPEED, f.PITCH, f.VERTICAL_SPEED),
            needs=_NEEDS,
            unit="kt",
            passed="no stall at {observed} kt",
            failed=(
                f"stall at {{observed}} kt: under {stall.airspeed_kt:g} kt with pitch over {stall.pitch_deg:g}° and "
                f"vertical speed under {stall.vertical_speed_fpm:g} fpm"
            ),
            check=stall_check,
            nominal=Limits(low=stall.airspeed_kt, critical_low=stall.airspeed_kt),
            conditions=(Condition(airborne, on_ground),) if ground.enabled else (),
        ),
    ]


def _simple(
    code: str,
    title: str,
    task: f.Task,
    reads: tuple[str, ...],
    quantity: Callable[[FlightBatch], Floats],
    limits: Limits,
    observed: str,
    *,
    unit: str,
    conditions: tuple[Condition, ...] = (),
) -> Rule:
    """A rule with one atom a step, a quantity and constant limits."""
    bounds = limits.at(0)
    allowed = " to ".join(
        text
        for text in (f"{bounds['low']:g}" if "low" in bounds else "", f"{bounds['high']:g}" if "high" in bounds else "")
        if text
    )
    kind = (
        "between " + allowed.replace(" to ", " and ")
        if len(bounds.keys() & {"low", "high"}) == 2
        else (f"at most {allowed}" if "high" in bounds else f"not under {allowed}")
    )
    return Rule(
        code=code,
        title=title,
        scope=Scope.CROSS_FIELD if len(reads) > 1 else Scope.FIELD,
        slots=step_slots(task, *reads),
        needs=_NEEDS,
        unit=unit,
        passed=f"{observed}, {kind}",
        failed=f"{observed}; allowed is {kind} {unit}",
        quantity=quantity,
        limits=limits,
        conditions=conditions,
    )
