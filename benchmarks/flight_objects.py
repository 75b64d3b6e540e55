"""A yardstick of the speed table: a plain flight evaluator with one msgspec Struct per atom, `ga-light/1` built in."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from math import inf, isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from adjudge.protocols.flight.fields import FIELDS

LOW = (-90, -180, 0, 0, 0, -130, -130, -20.5, 0, -90, -60, -30, -1, -2, -1, -4000, 0, -1000, -1500)
HIGH = (90, 180, 10000, 360, 360, 130, 130, 20.5, 250, 90, 60, 30, 1, 4.5, 1, 4000, 200, 11000, 11500)
JUMP = (0.002, 0.002, 67, 15, 15, 10, 10, 5, 10, 20, 10, 6, 0.5, 1, 0.3, 1000, 10, 67, 67)
MAE_POINTS = ((0, 100), (5, 90), (20, 70), (50, 50), (100, 30), (200, 15), (300, 5))
RMSE_POINTS = ((0, 100), (10, 90), (50, 70), (100, 50), (200, 30), (300, 15), (400, 5))
STEPS = {"S1": 1, "M3": 3}
NUMERIC = re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
INVALID = "numeric_validity.invalid_value"
State = Sequence[float]  # NaN is no number, and what is measured with it is none either
Output = msgspec.defstruct("Output", [("id", str), ("response", str), ("model", str)])


class SingleTruth(msgspec.Struct):
    """A reference line of S1."""

    id: str
    current_state: dict[str, float] | None = None
    gold: dict[str, float] | None = msgspec.field(name="next_second", default=None)


class TripleTruth(msgspec.Struct):
    """A reference line of M3."""

    id: str
    current_state: list[dict[str, float]] | None = None
    gold: dict[str, list[float]] | None = msgspec.field(name="T+1", default=None)


class Atom(msgspec.Struct, gc=False):
    """What one rule found."""

    id: str
    rule: str
    field: str | None
    step: int
    outcome: str
    severity: str
    observed: float | None
    limits: tuple[float, float] | None
    message: str


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


TRUTH: dict[str, Any] = {"S1": SingleTruth, "M3": TripleTruth}


class Answer(NamedTuple):
    """What was read: the states, the validity rule that each bad value fails, the share of fields that are present."""

    states: list[State]
    bad: dict[tuple[str, int], str]
    completeness: float


def read(task: str, text: str) -> Answer | None:
    """The answer in a response, if there is one."""
    try:
        found = msgspec.json.decode(text[text.find("{") : text.rfind("}") + 1])
    except msgspec.DecodeError:
        return None
    present = [name for name in FIELDS if name in found] if isinstance(found, dict) else []
    if not present:
        return None
    bad: dict[tuple[str, int], str] = {}
    states = [[nan] * len(FIELDS) for _ in range(STEPS[task])]
    for column, name in enumerate(FIELDS):
        values = found.get(name)
        shaped = isinstance(values, list) and len(values) == 3 if task == "M3" else not isinstance(values, list)
        for step, state in enumerate(states):
            if name not in found:
                bad[name, step] = "numeric_validity.missing_field"
            elif not shaped:
                bad[name, step] = "numeric_validity.array_shape"
            else:
                state[column] = number(values[step] if task == "M3" else values)
                if isnan(state[column]):
                    bad[name, step] = INVALID
    return Answer(list(states), bad, len(present) / len(FIELDS))


def number(value: object) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or not isinstance(value, int | str):
        return nan
    if isinstance(value, str) and not NUMERIC.fullmatch(value):
        return nan
    return float(value) if math.isfinite(float(value)) else nan


def arc(apart: float) -> float:
    return min(apart % 360.0, 360.0 - apart % 360.0)


def changes(state: State, before: State) -> list[float]:
    """How far two states lie apart, field by field; track and heading by the shortest arc."""
    apart = [abs(a - b) for a, b in zip(state, before, strict=True)]
    apart[3], apart[4] = arc(apart[3]), arc(apart[4])
    return apart


class Findings:
    """The atoms of one sample, while they are found."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.atoms: list[Atom] = []

    def add(self, rule: str, field: str | None, step: int, observed: float, severity: str, a: float, b: float) -> None:
        """An atom of a rule that measures something; NaN is nothing measured."""
        if isnan(observed):
            self.plain(rule, field, step, "not_applicable", "a value that the rule needs is missing")
            return
        outcome = "pass" if severity == "INFO" else "fail"
        message = f"{field or rule} is {observed:g}, limits {a:g} and {b:g}"
        atom_id = f"{self.key}/{rule}/{field or ''}@{step}"
        self.atoms.append(Atom(atom_id, rule, field, step, outcome, severity, observed, (a, b), message))

    def above(self, rule: str, field: str | None, step: int, observed: float, warning: float, critical: float) -> None:
        """An atom of a rule that fails above a limit, and critically above another."""
        severity = "CRITICAL" if observed > critical else "WARNING" if observed > warning else "INFO"
        self.add(rule, field, step, observed, severity, warning, critical)

    def plain(self, rule: str, field: str | None, step: int, outcome: str, message: str) -> None:
        """An atom without a measured quantity; a failure is critical."""
        severity = "CRITICAL" if outcome == "fail" else "INFO"
        atom_id = f"{self.key}/{rule}/{field or ''}@{step}"
        self.atoms.append(Atom(atom_id, rule, field, step, outcome, severity, None, None, message))


def evidence(key: str, answer: Answer | None, states: list[State], shown: State) -> list[Atom]:
    """All atoms of one sample, step by step."""
    found = Findings(key)
    if answer is None:
        found.plain("protocol.json_parse", None, 0, "fail", "no answer could be read")
    else:
        found.plain("protocol.json_parse", None, 0, "pass", "an answer was read")
    for step, state in enumerate(states):
        moved = changes(state, states[step - 1] if step else shown)
        for name, value, low, high, change, jump in zip(FIELDS, state, LOW, HIGH, moved, JUMP, strict=True):
            if answer is None:
                found.plain(INVALID, name, step, "not_applicable", "there is no answer")
            elif (name, step) in answer.bad:
                found.plain(answer.bad[name, step], name, step, "fail", f"{name} is not a finite number")
            else:
                found.plain(INVALID, name, step, "pass", f"{name} is a finite number")
            outside = max(low - value, value - high)
            severity = "CRITICAL" if outside > 0.5 * (high - low) else "WARNING" if outside > 0 else "INFO"
            found.add("range_sanity.out_of_range", name, step, value, severity, low, high)
            found.above("jump_dynamics.mutation_violation", name, step, change, jump, 1.5 * jump)
            if step:
                found.above("physics_constraint.m3_array_continuity", name, step, change, 2 * jump, 1.5 * (2 * jump))
        _, _, gps, track, _, east, north, up, ground, roll, pitch, _, _, _, _, climb, airspeed, baro, _ = state
        velocity = 1.943844 * math.sqrt(east * east + north * north)
        off_track = arc(abs(track - math.degrees(math.atan2(east, north)))) if velocity >= 5 else nan
        found.above("cross_field_consistency.altitude_consistency", None, step, abs(gps - baro), 500, 1000)
        found.above("cross_field_consistency.speed_consistency", None, step, abs(ground - velocity), 5, 15)
        found.above("cross_field_consistency.track_consistency", None, step, off_track, 10, 30)
        rate, limit = nan if isnan(gps) else abs(climb), 2000 if gps < 1000 else 5000
        found.above("physics_constraint.velocity_altitude_consistency", None, step, rate, limit, inf)
        tilt = nan if isnan(roll + pitch + up) else max(abs(roll), abs(pitch))
        level = abs(pitch) > 15 and abs(up) < 0.05 * abs(pitch)
        severity = "CRITICAL" if tilt > 60 else "WARNING" if level else "INFO"
        found.add("physics_constraint.attitude_velocity_consistency", None, step, tilt, severity, 15, 60)
        severity = "CRITICAL" if climb < -3000 else "WARNING" if climb < -2000 else "INFO"
        found.add("safety_constraint.rapid_descent", None, step, climb, severity, -2000, -3000)
        severity = "CRITICAL" if airspeed < 30 else "WARNING" if airspeed > 180 else "INFO"
        found.add("safety_constraint.extreme_speed", None, step, airspeed, severity, 30, 180)
        severity = "CRITICAL" if gps < 0 else "WARNING" if gps > 15000 else "INFO"
        found.add("safety_constraint.extreme_altitude", None, step, gps, severity, 0, 15000)
        severity = "CRITICAL" if airspeed < 50 and pitch > 15 and climb < 500 else "INFO"
        slow = nan if isnan(pitch + climb) else airspeed
        found.add("safety_constraint.stall_condition", None, step, slow, severity, 50, inf)
    return found.atoms


def points(value: float, table: tuple[tuple[int, int], ...]) -> float:
    x0, y0 = table[0]
    for x1, y1 in table[1:]:
        if value <= x1:
            return y0 + (y1 - y0) * (value - x0) / (x1 - x0)
        x0, y0 = x1, y1
    return float(y0)


def grade(counts: Counter[tuple[str, str]], b: float, c: float, *families: str) -> str:
    """The grade that the failure rate of every family reaches; nothing checked is a D."""
    rates = []
    for family in families:
        passed = sum(n for (rule, outcome), n in counts.items() if outcome == "pass" and rule.startswith(family))
        failed = sum(n for (rule, outcome), n in counts.items() if outcome == "fail" and rule.startswith(family))
        rates += [failed / (passed + failed)] if passed + failed else []
    worst = max(rates, default=inf)
    return "A" if worst == 0 else "B" if worst <= b else "C" if worst <= c else "D"


def judge(task: str, output: Any, truth: Any) -> Record:
    """One sample: its evidence, the verdict with what it cites, and its scores."""
    last = truth.current_state if task == "S1" or truth.current_state is None else truth.current_state[-1]
    shown: State = (nan,) * len(FIELDS) if last is None else tuple(last[name] for name in FIELDS)
    answer = read(task, output.response)
    states: list[State] = [(nan,) * len(FIELDS)] * STEPS[task] if answer is None else answer.states
    completeness = 0.0 if answer is None else answer.completeness
    atoms = evidence(f"{output.model}/{output.id}", answer, states, shown)
    critical = [atom.id for atom in atoms if atom.outcome == "fail" and atom.severity == "CRITICAL"]
    counts = Counter((atom.rule, atom.outcome) for atom in atoms)

    mae = rmse = availability = constraint = error = total = quality = None
    if truth.gold is not None:
        gold = [truth.gold[name] for name in FIELDS]
        truths: list[Any] = [gold] if task == "S1" else list(zip(*gold, strict=True))
        errors = [e for state, true in zip(states, truths, strict=True) for e in changes(state, true) if not isnan(e)]
        quality = 0.0
        if errors:
            mae, rmse = sum(errors) / len(errors), math.sqrt(sum(e * e for e in errors) / len(errors))
            quality = min(points(mae, MAE_POINTS), points(rmse, RMSE_POINTS))
    if not critical:
        passed = 0.5 * (sum(n for (_, outcome), n in counts.items() if outcome == "pass") - 1)
        warned = sum(n for (_, outcome), n in counts.items() if outcome == "fail")
        availability, constraint = 100.0 * completeness, 100.0 * passed / (passed + warned)
        if mae is not None and rmse is not None:
            error = 0.6 * points(mae, MAE_POINTS) + 0.4 * points(rmse, RMSE_POINTS)
            total = 0.2 * availability + 0.3 * constraint + 0.5 * error
    grades: list[str | None] = ["D"] * 5
    if answer is not None:
        protocol = grade(counts, 0.05, 0.15, "numeric_validity")
        grades = [
            "D" if protocol == "C" and completeness < 0.9 else protocol,
            grade(counts, 0.05, 0.15, "range_sanity", "jump_dynamics"),
            grade(counts, 0.10, 0.25, "cross_field_consistency", "physics_constraint"),
            grade(counts, 0.10, 0.25, "safety_constraint"),
            None
            if quality is None
            else "A"
            if quality >= 90
            else "B"
            if quality >= 70
            else "C"
            if quality >= 50
            else "D",
        ]
    values = [{"A": 1.0, "B": 0.75, "C": 0.5, "D": 0.0}[each] for each in grades if each is not None]
    bucket = "unparsed" if answer is None else "failed" if critical else "passed"
    verdict, cited = ("ineligible", critical) if critical else ("eligible", [atom.id for atom in atoms])
    scores = (availability, constraint, error, total, mae, rmse)
    rubric = 100.0 * sum(values) / len(values)
    return Record(output.id, output.model, bucket, verdict, cited, *scores, grades, rubric, atoms)


def run(outputs: Path, reference: Path, records: Path, task: str = "S1") -> int:
    """Judge every line of the outputs and write one JSON record a line; the number of samples."""
    truths = {truth.id: truth for truth in msgspec.json.Decoder(TRUTH[task]).decode_lines(reference.read_bytes())}
    decode, encode, samples = msgspec.json.Decoder(Output).decode, msgspec.json.Encoder().encode, 0
    with outputs.open("rb") as lines, records.open("wb") as out:
        for line in lines:
            output: Any = decode(line)
            out.write(encode(judge(task, output, truths[output.id])) + b"\n")
            samples += 1
    return samples
