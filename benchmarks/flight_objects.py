"""A yardstick of the speed table: a plain evaluator of S1 with one msgspec Struct per atom, `ga-light/1` built in."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from typing import Any

import msgspec

from adjudge.protocols.flight.fields import FIELDS

LOW = (-90, -180, 0, 0, 0, -130, -130, -20.5, 0, -90, -60, -30, -1, -2, -1, -4000, 0, -1000, -1500)
HIGH = (90, 180, 10000, 360, 360, 130, 130, 20.5, 250, 90, 60, 30, 1, 4.5, 1, 4000, 200, 11000, 11500)
JUMP = (0.002, 0.002, 67, 15, 15, 10, 10, 5, 10, 20, 10, 6, 0.5, 1, 0.3, 1000, 10, 67, 67)
MAE_POINTS = ((0, 100), (5, 90), (20, 70), (50, 50), (100, 30), (200, 15), (300, 5))
RMSE_POINTS = ((0, 100), (10, 90), (50, 70), (100, 50), (200, 30), (300, 15), (400, 5))
GPS, TRACK, EAST, NORTH, UP, GROUND, ROLL, PITCH, CLIMB, AIRSPEED, BARO = 2, 3, 5, 6, 7, 8, 9, 10, 15, 16, 17
ANGLES = (3, 4)
NUMERIC = re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
SCORES = ("availability", "constraint", "error", "total", "rubric")
GRADES = {"A": 1.0, "B": 0.75, "C": 0.5, "D": 0.0}
State = list[float]  # NaN is no number, and what is measured with it is none either

Output = msgspec.defstruct("Output", [("id", str), ("response", str), ("model", str)])
Given = dict[str, float] | None
Truth = msgspec.defstruct("Truth", [("id", str), ("current_state", Given, None), ("next_second", Given, None)])


class Meta(msgspec.Struct, gc=False):
    """What an atom rests on."""

    observed: float | None
    limits: tuple[float, float] | None
    checker: str
    library: str


class Atom(msgspec.Struct, gc=False):
    """What one rule found, whole, as a record shows it."""

    id: str
    type: str
    rule: str
    field: str | None
    step: int
    outcome: str
    severity: str
    scope: str
    message: str
    meta: Meta


class Record(msgspec.Struct):
    """One judged sample."""

    sample_id: str
    model_name: str
    bucket: str
    verdict: str
    citations: list[str]
    availability: float | None
    constraint: float | None
    error: float | None
    total: float | None
    mae: float | None
    rmse: float | None
    grades: list[str | None]
    rubric: float
    atoms: list[Atom]


def arc(apart: float) -> float:
    return min(apart % 360.0, 360.0 - apart % 360.0)


def changes(state: State, before: State) -> list[float]:
    """How far two states lie apart, field by field; track and heading by the shortest arc."""
    return [arc(abs(a - b)) if k in ANGLES else abs(a - b) for k, (a, b) in enumerate(zip(state, before, strict=True))]


def speed(s: State) -> float:
    return 1.943844 * math.sqrt(s[EAST] * s[EAST] + s[NORTH] * s[NORTH])


def off_track(s: State) -> float:
    return arc(abs(s[TRACK] - math.degrees(math.atan2(s[EAST], s[NORTH])))) if speed(s) >= 5 else nan


def fast_climb(s: State) -> float:
    """How far the vertical speed is above what the altitude allows."""
    return abs(s[CLIMB]) - (2000 if s[GPS] < 1000 else 5000) if not math.isnan(s[GPS]) else nan


def tilt(s: State) -> float:
    """Above 60 the steeper of roll and pitch; a steep nose without vertical speed counts as 30."""
    steep = max(abs(s[ROLL]), abs(s[PITCH]))
    level = abs(s[PITCH]) > 15 and abs(s[UP]) < 0.05 * abs(s[PITCH])
    return nan if math.isnan(s[ROLL] + s[PITCH] + s[UP]) else steep if steep > 60 else 30.0 if level else 0.0


def stall(s: State) -> float:
    return (
        nan
        if math.isnan(s[AIRSPEED] + s[PITCH] + s[CLIMB])
        else float(s[AIRSPEED] < 50 and s[PITCH] > 15 and s[CLIMB] < 500)
    )


# Rules about a whole state: what is measured, and above which it is a warning and critical.
RULES: tuple[tuple[str, Callable[[State], float], float, float], ...] = (
    ("cross_field_consistency.altitude_consistency", lambda s: abs(s[GPS] - s[BARO]), 500, 1000),
    ("cross_field_consistency.speed_consistency", lambda s: abs(s[GROUND] - speed(s)), 5, 15),
    ("cross_field_consistency.track_consistency", off_track, 10, 30),
    ("physics_constraint.velocity_altitude_consistency", fast_climb, 0, inf),
    ("physics_constraint.attitude_velocity_consistency", tilt, 15, 60),
    ("safety_constraint.rapid_descent", lambda s: -s[CLIMB], 2000, 3000),
    ("safety_constraint.extreme_speed", lambda s: inf if s[AIRSPEED] < 30 else s[AIRSPEED], 180, 1e300),
    ("safety_constraint.extreme_altitude", lambda s: inf if s[GPS] < 0 else s[GPS], 15000, 1e300),
    ("safety_constraint.stall_condition", stall, 0.5, 0.5),
)


FIELD_OF_RULE = {
    "safety_constraint.rapid_descent": FIELDS[CLIMB],
    "safety_constraint.extreme_speed": FIELDS[AIRSPEED],
    "safety_constraint.extreme_altitude": FIELDS[GPS],
}


def number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int | str):
        return nan
    if isinstance(value, str) and not NUMERIC.fullmatch(value):
        return nan
    return float(value) if math.isfinite(float(value)) else nan


def read(text: str) -> dict[str, Any] | None:
    """The answer in a response, if there is one."""
    try:
        found = msgspec.json.decode(text[text.find("{") : text.rfind("}") + 1])
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) and any(name in found for name in FIELDS) else None


def whole(
    key: str,
    rule: str,
    field: str | None,
    outcome: str,
    severity: str,
    message: str,
    meta: tuple[Any, Any] = (None, None),
) -> Atom:
    """One atom; its family is the first part of the rule's code."""
    family = rule[: rule.index(".")]
    scope = "SAMPLE" if field is None else "FIELD"
    about = Meta(meta[0], meta[1], family, "ga-light/1")
    return Atom(f"{key}/{rule}/{field or ''}@0", family, rule, field, 0, outcome, severity, scope, message, about)


def above(key: str, rule: str, field: str | None, observed: float, warning: float, critical: float) -> Atom:
    """The atom of a rule that fails above a limit, and critically above another; NaN is nothing measured."""
    if math.isnan(observed):
        return whole(key, rule, field, "not_applicable", "INFO", "a value that the rule needs is missing")
    severity = "CRITICAL" if observed > critical else "WARNING" if observed > warning else "INFO"
    message = f"{field or rule} is {observed:g}, limits {warning:g} and {critical:g}"
    outcome = "pass" if severity == "INFO" else "fail"
    return whole(key, rule, field, outcome, severity, message, (observed, (warning, critical)))


def validity(key: str, name: str, answer: dict[str, Any] | None, value: float) -> Atom:
    """The atom that says whether a field holds a number."""
    rule = "numeric_validity.invalid_value"
    if answer is None:
        return whole(key, rule, name, "not_applicable", "INFO", "there is no answer")
    if name not in answer:
        return whole(key, "numeric_validity.missing_field", name, "fail", "CRITICAL", f"{name} is missing")
    if math.isnan(value):
        rule = "numeric_validity.array_shape" if isinstance(answer[name], list) else rule
        return whole(key, rule, name, "fail", "CRITICAL", f"{name} is not a finite number")
    return whole(key, rule, name, "pass", "INFO", f"{name} is a finite number")


def evidence(key: str, answer: dict[str, Any] | None, state: State, shown: State) -> list[Atom]:
    """All atoms of one sample."""
    parsed = (
        ("pass", "INFO", "an answer was read") if answer is not None else ("fail", "CRITICAL", "there is no answer")
    )
    atoms = [whole(key, "protocol.json_parse", None, *parsed)]
    moved = changes(state, shown)
    for name, value, low, high, change, jump in zip(FIELDS, state, LOW, HIGH, moved, JUMP, strict=True):
        atoms.append(validity(key, name, answer, value))
        outside = max(low - value, value - high) if not math.isnan(value) else nan
        atoms.append(above(key, "range_sanity.out_of_range", name, outside, 0, 0.5 * (high - low)))
        atoms.append(above(key, "jump_dynamics.mutation_violation", name, change, jump, 1.5 * jump))
    atoms += [
        above(key, rule, FIELD_OF_RULE.get(rule), measure(state), warning, critical)
        for rule, measure, warning, critical in RULES
    ]
    return atoms


def points(value: float, table: tuple[tuple[int, int], ...]) -> float:
    for (x0, y0), (x1, y1) in pairwise(table):
        if value <= x1:
            return y0 + (y1 - y0) * (value - x0) / (x1 - x0)
    return float(table[-1][1])


def grade(atoms: list[Atom], b: float, c: float, *families: str) -> str:
    """The grade that the failure rate of every family reaches; nothing checked is a D."""
    worst, seen = 0.0, False
    for family in families:
        checked = [a.outcome for a in atoms if a.outcome in {"pass", "fail"} and a.rule.startswith(family)]
        if checked:
            seen, worst = True, max(worst, checked.count("fail") / len(checked))
    return "D" if not seen else "A" if worst == 0 else "B" if worst <= b else "C" if worst <= c else "D"


def judge(output: Any, truth: Any) -> Record:
    """One sample: its evidence, the verdict with what it cites, and its scores."""
    answer = read(output.response)
    state = [nan if answer is None else number(answer.get(name)) for name in FIELDS]
    shown = [nan if truth.current_state is None else truth.current_state[name] for name in FIELDS]
    completeness = 0.0 if answer is None else sum(name in answer for name in FIELDS) / len(FIELDS)
    atoms = evidence(f"{output.model}/{output.id}", answer, state, shown)
    critical = [a.id for a in atoms if a.outcome == "fail" and a.severity == "CRITICAL"]
    mae = rmse = availability = constraint = error = total = quality = None
    if truth.next_second is not None:
        gold = [truth.next_second[name] for name in FIELDS]
        errors = [e for e in changes(state, gold) if not math.isnan(e)]
        quality = 0.0
        if errors:
            mae, rmse = sum(errors) / len(errors), math.sqrt(sum(e * e for e in errors) / len(errors))
            quality = min(points(mae, MAE_POINTS), points(rmse, RMSE_POINTS))
    if not critical:
        passed = 0.5 * (sum(a.outcome == "pass" for a in atoms) - 1)
        warned = sum(a.outcome == "fail" for a in atoms)
        availability, constraint = 100.0 * completeness, 100.0 * passed / (passed + warned)
        if mae is not None and rmse is not None:
            error = 0.6 * points(mae, MAE_POINTS) + 0.4 * points(rmse, RMSE_POINTS)
            total = 0.2 * availability + 0.3 * constraint + 0.5 * error
    grades: list[str | None] = ["D"] * 5
    if answer is not None:
        protocol = grade(atoms, 0.05, 0.15, "numeric_validity")
        grades = [
            "D" if protocol == "C" and completeness < 0.9 else protocol,
            None if truth.current_state is None else grade(atoms, 0.05, 0.15, "range_sanity", "jump_dynamics"),
            grade(atoms, 0.10, 0.25, "cross_field_consistency", "physics_constraint"),
            grade(atoms, 0.10, 0.25, "safety_constraint"),
            None if quality is None else "ABCD"[(quality < 90) + (quality < 70) + (quality < 50)],
        ]
    values = [GRADES[each] for each in grades if each is not None]
    bucket = "unparsed" if answer is None else "failed" if critical else "passed"
    verdict, cited = ("ineligible", critical) if critical else ("eligible", [a.id for a in atoms])
    scores = (availability, constraint, error, total, mae, rmse)
    return Record(
        output.id, output.model, bucket, verdict, cited, *scores, grades, 100.0 * sum(values) / len(values), atoms
    )


def run(outputs: Path, reference: Path, records: Path) -> dict[str, float]:
    """Judge every line of the outputs, write one JSON record a line, and return counts and mean scores."""
    known: list[Any] = msgspec.json.Decoder(Truth).decode_lines(reference.read_bytes())
    truths = {truth.id: truth for truth in known}
    decode, sums = msgspec.json.Decoder(Output).decode, dict.fromkeys(("passed", "failed", "unparsed"), 0.0)
    scores: dict[str, list[float]] = {name: [] for name in SCORES}
    with outputs.open("rb") as lines, records.open("wb") as out:
        for line in lines:
            output: Any = decode(line)
            record = judge(output, truths[output.id])
            sums[record.bucket] += 1
            for name, values in scores.items():
                if (value := getattr(record, name)) is not None:
                    values.append(value)
            out.write(msgspec.json.encode(record) + b"\n")
    return sums | {f"{name}_score": math.fsum(values) / len(values) for name, values in scores.items() if values}
