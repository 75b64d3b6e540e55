"""The atoms of one flight sample, slow and plain: one object per check, written from the specification alone.

This half of the reference evaluator takes nothing from adjudge but the names of fields and tasks; every limit of
`ga-light/1` is typed here again.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from adjudge.protocols.flight.fields import ANGLES, FIELDS, TASKS

LATITUDE, LONGITUDE, GPS_ALTITUDE, TRACK, HEADING, VELOCITY_E, VELOCITY_N, VELOCITY_U, GROUND_SPEED = FIELDS[:9]
ROLL, PITCH, TURN_RATE, SLIP, NORMAL_G, LATERAL_G, VERTICAL_SPEED, AIRSPEED, BARO_ALTITUDE, PRESSURE_ALTITUDE = FIELDS[
    9:
]

# Lowest and highest value, and the largest change in one second.
LIMITS = {
    LATITUDE: (-90.0, 90.0, 0.002),
    LONGITUDE: (-180.0, 180.0, 0.002),
    GPS_ALTITUDE: (0.0, 10000.0, 67.0),
    TRACK: (0.0, 360.0, 15.0),
    HEADING: (0.0, 360.0, 15.0),
    VELOCITY_E: (-130.0, 130.0, 10.0),
    VELOCITY_N: (-130.0, 130.0, 10.0),
    VELOCITY_U: (-20.5, 20.5, 5.0),
    GROUND_SPEED: (0.0, 250.0, 10.0),
    ROLL: (-90.0, 90.0, 20.0),
    PITCH: (-60.0, 60.0, 10.0),
    TURN_RATE: (-30.0, 30.0, 6.0),
    SLIP: (-1.0, 1.0, 0.5),
    NORMAL_G: (-2.0, 4.5, 1.0),
    LATERAL_G: (-1.0, 1.0, 0.3),
    VERTICAL_SPEED: (-4000.0, 4000.0, 1000.0),
    AIRSPEED: (0.0, 200.0, 10.0),
    BARO_ALTITUDE: (-1000.0, 11000.0, 67.0),
    PRESSURE_ALTITUDE: (-1500.0, 11500.0, 67.0),
}
RANGE = {name: (low, high) for name, (low, high, _) in LIMITS.items()}
JUMP = {name: jump for name, (_, _, jump) in LIMITS.items()}
KNOTS = 1.943844
MISSING_FIELD = "numeric_validity.missing_field"
INVALID_VALUE = "numeric_validity.invalid_value"
ARRAY_SHAPE = "numeric_validity.array_shape"
OUT_OF_RANGE = "range_sanity.out_of_range"
MUTATION = "jump_dynamics.mutation_violation"
ALTITUDE_CONSISTENCY = "cross_field_consistency.altitude_consistency"
SPEED_CONSISTENCY = "cross_field_consistency.speed_consistency"
TRACK_CONSISTENCY = "cross_field_consistency.track_consistency"
CONTINUITY = "physics_constraint.m3_array_continuity"
VELOCITY_ALTITUDE = "physics_constraint.velocity_altitude_consistency"
ATTITUDE_VELOCITY = "physics_constraint.attitude_velocity_consistency"
RAPID_DESCENT = "safety_constraint.rapid_descent"
EXTREME_SPEED = "safety_constraint.extreme_speed"
EXTREME_ALTITUDE = "safety_constraint.extreme_altitude"
STALL = "safety_constraint.stall_condition"
PROTOCOL_RULES = {
    "answered": "protocol.json_parse",
    "unparsed": "protocol.json_parse",
    "errored": "protocol.api_error",
    "abstained": "protocol.abstained",
    "missing": "protocol.missing_output",
}
INFO, WARNING, CRITICAL = "INFO", "WARNING", "CRITICAL"
PASS, FAIL, NOT_APPLICABLE = "pass", "fail", "not_applicable"
NUMERIC_STRING = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Atom:
    """What one rule found; `excess` says how far a failure is over its limit and is None for anything else."""

    rule: str
    field: str | None
    step: int
    outcome: str
    severity: str
    observed: float | None
    excess: float | None = None


def evidence(
    task: str,
    answer: dict[str, Any] | None,
    shown: dict[str, Any] | None,
    bucket_hint: str,
    *,
    relative_altitude: bool,
    airborne_only: bool,
) -> tuple[list[Atom], list[dict[str, float | None]]]:
    """All atoms in the order of the layout, and the valid numbers of each step."""
    steps = TASKS[task].steps
    if answer is None:
        nothing: list[dict[str, float | None]] = [dict.fromkeys(FIELDS) for _ in range(steps)]
        atoms = [Atom(PROTOCOL_RULES[bucket_hint], None, 0, FAIL, CRITICAL, None, math.inf)]
        atoms += [_not_applicable(INVALID_VALUE, name, step) for step in range(steps) for name in FIELDS]
        atoms += _Checks(nothing, numbers(None)).families(with_continuity=TASKS[task].arrays)
        return atoms, nothing
    problems, values = _read(task, answer)
    checks = _Checks(values, numbers(shown), relative_altitude=relative_altitude, airborne_only=airborne_only)
    atoms = [Atom(PROTOCOL_RULES["answered"], None, 0, PASS, INFO, None), *_validity(problems, steps)]
    atoms += checks.families(with_continuity=TASKS[task].arrays)
    return atoms, values


def number(value: object) -> float | None:
    """The number that a JSON value stands for, or None where it stands for none."""
    if isinstance(value, str):
        text = value.strip()
        value = float(text) if NUMERIC_STRING.fullmatch(text) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def arc(a: float, b: float) -> float:
    """The shortest way between two directions, in degrees, 0 to 180."""
    difference = abs(a - b)
    if math.isinf(difference):
        difference = abs(a % 360.0 - b % 360.0)
    difference %= 360.0
    return min(difference, 360.0 - difference)


def change(name: str, a: float, b: float) -> float:
    """How far two values of a field lie apart; angles by the shortest arc."""
    return arc(a, b) if name in ANGLES else abs(a - b)


def numbers(state: dict[str, Any] | None) -> dict[str, float | None]:
    """The number each field of a state stands for, or None."""
    return {name: number(state.get(name)) if state is not None else None for name in FIELDS}


def _read(task: str, answer: dict[str, Any]) -> tuple[dict[tuple[str, int], str], list[dict[str, float | None]]]:
    """Which validity rule each field fails at each step, and the numbers that remain."""
    steps = TASKS[task].steps
    problems: dict[tuple[str, int], str] = {}
    values: list[dict[str, float | None]] = [dict.fromkeys(FIELDS) for _ in range(steps)]
    for name in FIELDS:
        if name not in answer:
            problems.update({(name, step): MISSING_FIELD for step in range(steps)})
            continue
        given = answer[name]
        shaped = isinstance(given, list) and len(given) == steps if TASKS[task].arrays else not isinstance(given, list)
        if not shaped:
            problems.update({(name, step): ARRAY_SHAPE for step in range(steps)})
            continue
        for step in range(steps):
            values[step][name] = number(given[step] if TASKS[task].arrays else given)
            if values[step][name] is None:
                problems[name, step] = INVALID_VALUE
    return problems, values


def _validity(problems: dict[tuple[str, int], str], steps: int) -> list[Atom]:
    return [
        Atom(problems[name, step], name, step, FAIL, CRITICAL, None, math.inf)
        if (name, step) in problems
        else Atom(INVALID_VALUE, name, step, PASS, INFO, None)
        for step in range(steps)
        for name in FIELDS
    ]


def _not_applicable(rule: str, name: str | None, step: int) -> Atom:
    return Atom(rule, name, step, NOT_APPLICABLE, INFO, None)


def _above(rule: str, name: str | None, step: int, observed: float, warning: float, critical: float | None) -> Atom:
    """An atom of a rule that fails above its limit, and critically above a second one if it has one."""
    if not observed > warning:
        return Atom(rule, name, step, PASS, INFO, observed)
    severity = CRITICAL if critical is not None and observed > critical else WARNING
    return Atom(rule, name, step, FAIL, severity, observed, observed / warning - 1.0)


@dataclass(frozen=True)
class _Checks:
    """The five families that need valid numbers, over the values of one answer."""

    values: list[dict[str, float | None]]
    shown: dict[str, float | None]
    relative_altitude: bool = False
    airborne_only: bool = False

    def families(self, *, with_continuity: bool) -> list[Atom]:
        steps = range(len(self.values))
        atoms = [self.out_of_range(name, step) for step in steps for name in FIELDS]
        atoms += [self.mutation(name, step) for step in steps for name in FIELDS]
        for rule in (self.altitude, self.speed, self.track):
            atoms += [rule(step) for step in steps]
        if with_continuity:
            atoms += [self.continuity(name, step) for step in steps if step > 0 for name in FIELDS]
        for rule in (self.velocity_altitude, self.attitude_velocity):
            atoms += [rule(step) for step in steps]
        for rule in (self.rapid_descent, self.extreme_speed, self.extreme_altitude, self.stall):
            atoms += [rule(step) for step in steps]
        return atoms

    def out_of_range(self, name: str, step: int) -> Atom:
        value = self.values[step][name]
        if value is None:
            return _not_applicable(OUT_OF_RANGE, name, step)
        low, high = RANGE[name]
        outside = max(low - value, value - high)
        if not outside > 0.0:
            return Atom(OUT_OF_RANGE, name, step, PASS, INFO, value)
        severity = CRITICAL if outside > 0.5 * (high - low) else WARNING
        return Atom(OUT_OF_RANGE, name, step, FAIL, severity, value, outside / (high - low))

    def mutation(self, name: str, step: int) -> Atom:
        before = self.shown[name] if step == 0 else self.values[step - 1][name]
        value = self.values[step][name]
        if before is None or value is None:
            return _not_applicable(MUTATION, name, step)
        return _above(MUTATION, name, step, change(name, value, before), JUMP[name], 1.5 * JUMP[name])

    def continuity(self, name: str, step: int) -> Atom:
        before, value = self.values[step - 1][name], self.values[step][name]
        if before is None or value is None:
            return _not_applicable(CONTINUITY, name, step)
        limit = 2.0 * JUMP[name]
        return _above(CONTINUITY, name, step, change(name, value, before), limit, 1.5 * limit)

    def altitude(self, step: int) -> Atom:
        gps, baro = self.values[step][GPS_ALTITUDE], self.values[step][BARO_ALTITUDE]
        if gps is None or baro is None:
            return _not_applicable(ALTITUDE_CONSISTENCY, None, step)
        observed = abs(gps - baro)
        if self.relative_altitude:
            shown_gps, shown_baro = self.shown[GPS_ALTITUDE], self.shown[BARO_ALTITUDE]
            if shown_gps is None or shown_baro is None:
                return _not_applicable(ALTITUDE_CONSISTENCY, None, step)
            observed = abs((gps - baro) - (shown_gps - shown_baro))
        return _above(ALTITUDE_CONSISTENCY, None, step, observed, 500.0, 1000.0)

    def speed(self, step: int) -> Atom:
        ground_speed, over_ground = self.values[step][GROUND_SPEED], self._over_ground(step)
        if ground_speed is None or over_ground is None:
            return _not_applicable(SPEED_CONSISTENCY, None, step)
        return _above(SPEED_CONSISTENCY, None, step, abs(ground_speed - over_ground), 5.0, 15.0)

    def track(self, step: int) -> Atom:
        here = self.values[step]
        track, east, north, over_ground = here[TRACK], here[VELOCITY_E], here[VELOCITY_N], self._over_ground(step)
        if track is None or east is None or north is None or over_ground is None or over_ground < 5.0:
            return _not_applicable(TRACK_CONSISTENCY, None, step)
        observed = arc(track, math.degrees(math.atan2(east, north)))
        return _above(TRACK_CONSISTENCY, None, step, observed, 10.0, 30.0)

    def velocity_altitude(self, step: int) -> Atom:
        vertical, altitude = self.values[step][VERTICAL_SPEED], self.values[step][GPS_ALTITUDE]
        if vertical is None or altitude is None:
            return _not_applicable(VELOCITY_ALTITUDE, None, step)
        limit = 2000.0 if altitude < 1000.0 else 5000.0
        return _above(VELOCITY_ALTITUDE, None, step, abs(vertical), limit, None)

    def attitude_velocity(self, step: int) -> Atom:
        roll, pitch, up = (self.values[step][name] for name in (ROLL, PITCH, VELOCITY_U))
        if roll is None or pitch is None or up is None:
            return _not_applicable(ATTITUDE_VELOCITY, None, step)
        steepest = max(abs(roll), abs(pitch))
        if steepest > 60.0:
            return Atom(ATTITUDE_VELOCITY, None, step, FAIL, CRITICAL, steepest, steepest / 60.0 - 1.0)
        if not abs(pitch) > 15.0:
            return Atom(ATTITUDE_VELOCITY, None, step, PASS, INFO, steepest)
        # With the nose that far up or down, what decides is the climb for each degree of it.
        per_degree = abs(up) / abs(pitch)
        if abs(up) < 0.05 * abs(pitch):
            return Atom(ATTITUDE_VELOCITY, None, step, FAIL, WARNING, per_degree, (0.05 - per_degree) / 0.05)
        return Atom(ATTITUDE_VELOCITY, None, step, PASS, INFO, per_degree)

    def rapid_descent(self, step: int) -> Atom:
        vertical = self.values[step][VERTICAL_SPEED]
        if vertical is None:
            return _not_applicable(RAPID_DESCENT, VERTICAL_SPEED, step)
        if not vertical < -2000.0:
            return Atom(RAPID_DESCENT, VERTICAL_SPEED, step, PASS, INFO, vertical)
        severity = CRITICAL if vertical < -3000.0 else WARNING
        return Atom(RAPID_DESCENT, VERTICAL_SPEED, step, FAIL, severity, vertical, -vertical / 2000.0 - 1.0)

    def extreme_speed(self, step: int) -> Atom:
        airspeed = self.values[step][AIRSPEED]
        if airspeed is None or (airspeed < 30.0 and self._on_ground()):
            return _not_applicable(EXTREME_SPEED, AIRSPEED, step)
        if airspeed < 30.0:
            return Atom(EXTREME_SPEED, AIRSPEED, step, FAIL, CRITICAL, airspeed, (30.0 - airspeed) / 30.0)
        return _above(EXTREME_SPEED, AIRSPEED, step, airspeed, 180.0, None)

    def extreme_altitude(self, step: int) -> Atom:
        altitude = self.values[step][GPS_ALTITUDE]
        if altitude is None:
            return _not_applicable(EXTREME_ALTITUDE, GPS_ALTITUDE, step)
        if altitude < 0.0:
            # A limit of 0 has no multiples, so the distance is taken relative to the 15,000 ft between the two limits.
            return Atom(EXTREME_ALTITUDE, GPS_ALTITUDE, step, FAIL, CRITICAL, altitude, -altitude / 15000.0)
        return _above(EXTREME_ALTITUDE, GPS_ALTITUDE, step, altitude, 15000.0, None)

    def stall(self, step: int) -> Atom:
        airspeed, pitch, vertical = (self.values[step][name] for name in (AIRSPEED, PITCH, VERTICAL_SPEED))
        if airspeed is None or pitch is None or vertical is None or self._on_ground():
            return _not_applicable(STALL, None, step)
        if airspeed < 50.0 and pitch > 15.0 and vertical < 500.0:
            return Atom(STALL, None, step, FAIL, CRITICAL, airspeed, (50.0 - airspeed) / 50.0)
        # What keeps a slow aircraft from stalling: its pitch, or else its climb.
        saved_by = airspeed if not airspeed < 50.0 else pitch if not pitch > 15.0 else vertical
        return Atom(STALL, None, step, PASS, INFO, saved_by)

    def _over_ground(self, step: int) -> float | None:
        """Speed over ground in knots from the east and north velocities."""
        east, north = self.values[step][VELOCITY_E], self.values[step][VELOCITY_N]
        return None if east is None or north is None else KNOTS * math.sqrt(east * east + north * north)

    def _on_ground(self) -> bool:
        shown_airspeed = self.shown[AIRSPEED]
        return self.airborne_only and shown_airspeed is not None and shown_airspeed < 40.0
