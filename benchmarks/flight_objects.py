"""The baseline of the speed table: a lean flight evaluator with one msgspec Struct per atom, `ga-light/1` built in."""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

from adjudge.protocols.flight.fields import FIELDS

LOW = (-90, -180, 0, 0, 0, -130, -130, -20.5, 0, -90, -60, -30, -1, -2, -1, -4000, 0, -1000, -1500)
HIGH = (90, 180, 10000, 360, 360, 130, 130, 20.5, 250, 90, 60, 30, 1, 4.5, 1, 4000, 200, 11000, 11500)
JUMP = (0.002, 0.002, 67, 15, 15, 10, 10, 5, 10, 20, 10, 6, 0.5, 1, 0.3, 1000, 10, 67, 67)
MAE_POINTS = ((0, 100), (5, 90), (20, 70), (50, 50), (100, 30), (200, 15))
RMSE_POINTS = ((0, 100), (10, 90), (50, 70), (100, 50), (200, 30), (300, 15))
NUMERIC = re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
STEPS = {"S1": 1, "M3": 3}
Row = tuple[float, ...]  # one state; NaN where there is no number, so that what depends on it is NaN too
Slot = tuple[Any, ...]  # id suffix, rule, field, step, warning limit, critical limit, message around the value
NAN = math.nan
NOTHING: Row = (NAN,) * len(FIELDS)


class Atom(msgspec.Struct, gc=False):
    """What one rule found."""

    id: str
    rule: str
    field: str | None
    step: int
    outcome: str
    severity: str
    observed: float | None
    message: str


class Record(msgspec.Struct, gc=False):
    """One judged sample."""

    sample_id: str
    model_name: str
    task_id: str
    bucket: str
    verdict: str
    citations: list[str]
    availability: float | None
    constraint: float | None
    error: float | None
    total: float | None
    mae: float | None
    rmse: float | None
    atoms: list[Atom]


class Output(msgspec.Struct, gc=False):
    """The part of an output line that is needed."""

    id: str
    response: str
    model: str


# The 19 fields as Struct attributes f0..f18, spelled in JSON as in the files.
_names = {f"f{i}": name for i, name in enumerate(FIELDS)}
State: Any = msgspec.defstruct("State", [(f, float) for f in _names], rename=_names, gc=False)
Arrays: Any = msgspec.defstruct("Arrays", [(f, tuple[float, float, float]) for f in _names], rename=_names, gc=False)


def _truth(key: str, shown: Any, gold: Any) -> Any:
    optional: list[tuple[str, Any, Any]] = [("current_state", shown | None, None), ("gold", gold | None, None)]
    return msgspec.defstruct("Truth", [("id", str), *optional], rename={"gold": key})


TRUTH = {"S1": _truth("next_second", State, State), "M3": _truth("T+1", tuple[State, State, State], Arrays)}
answer_decoder = {"S1": msgspec.json.Decoder(State), "M3": msgspec.json.Decoder(Arrays)}
output_decoder = msgspec.json.Decoder(Output)
astuple = msgspec.structs.astuple


def slots(rule: str, what: str, warning: Row, critical: Row, limit: str = "limit {}") -> list[list[Slot]]:
    """All that is known about a rule's atoms before any sample is seen, by step and then by field."""
    return [
        [
            (f"/{rule}/{field}@{step}", rule, field, step, w, c, f"{field}: {what} ", f" ({limit.format(w, c)})")
            for field, w, c in zip(FIELDS, warning, critical, strict=True)
        ]
        for step in range(3)
    ]


def single(rule: str, what: str, limit: str, warning: float = math.inf, critical: float = math.inf) -> list[Slot]:
    """The same for a rule about a whole state, by step."""
    return [(f"/{rule}/@{step}", rule, None, step, warning, critical, f"{what} ", f" ({limit})") for step in range(3)]


INVALID = "numeric_validity.invalid_value"
VALIDITY = slots(INVALID, "value", JUMP, JUMP)
RANGE = slots("range_sanity.out_of_range", "value", LOW, HIGH, "range {}..{}")
MUTATION = slots("jump_dynamics.mutation_violation", "change", JUMP, tuple(1.5 * j for j in JUMP))
DOUBLE, TRIPLE = tuple(2 * j for j in JUMP), tuple(1.5 * (2 * j) for j in JUMP)
CONTINUITY = slots("physics_constraint.m3_array_continuity", "step", DOUBLE, TRIPLE)
ALTITUDE = single("cross_field_consistency.altitude_consistency", "GPS and baro apart, ft:", "limit 500", 500, 1000)
SPEED = single("cross_field_consistency.speed_consistency", "speed and velocity apart, kt:", "limit 5", 5, 15)
TRACK = single("cross_field_consistency.track_consistency", "track and velocity apart, deg:", "limit 10", 10, 30)
LOW_CLIMB = single("physics_constraint.velocity_altitude_consistency", "vertical speed, fpm:", "limit 2000", 2000)
HIGH_CLIMB = single("physics_constraint.velocity_altitude_consistency", "vertical speed, fpm:", "limit 5000", 5000)
ATTITUDE = single("physics_constraint.attitude_velocity_consistency", "roll or pitch, deg:", "limits 15, 60")
DESCENT = single("safety_constraint.rapid_descent", "vertical speed, fpm:", "limit -2000")
AIRSPEED = single("safety_constraint.extreme_speed", "airspeed, kt:", "limits 30, 180")
HEIGHT = single("safety_constraint.extreme_altitude", "GPS altitude, ft:", "limits 0, 15000")
STALL = single("safety_constraint.stall_condition", "airspeed, kt:", "limit 50")


def found(head: str, slot: Slot, observed: float, severity: str) -> Atom:
    """The atom of a slot; nothing observed is not applicable, and any severity but INFO a failure."""
    suffix, rule, field, step, _, _, what, limit = slot
    if isnan(observed):
        return Atom(head + suffix, rule, field, step, "not_applicable", "INFO", None, "not applicable")
    outcome = "pass" if severity == "INFO" else "fail"
    return Atom(head + suffix, rule, field, step, outcome, severity, observed, f"{what}{observed:g}{limit}")


def above(head: str, slot: Slot, observed: float) -> Atom:
    suffix, rule, field, step, warning, critical, what, limit = slot
    if observed <= warning:
        return Atom(head + suffix, rule, field, step, "pass", "INFO", observed, f"{what}{observed:g}{limit}")
    return found(head, slot, observed, "CRITICAL" if observed > critical else "WARNING")


def inside(head: str, slot: Slot, value: float) -> Atom:
    suffix, rule, field, step, low, high, what, limit = slot
    if low <= value <= high:
        return Atom(head + suffix, rule, field, step, "pass", "INFO", value, f"{what}{value:g}{limit}")
    return found(head, slot, value, "CRITICAL" if max(low - value, value - high) > 0.5 * (high - low) else "WARNING")


def arc(apart: float) -> float:
    return min(apart % 360.0, 360.0 - apart % 360.0)


def changes(row: Row, before: Row) -> list[float]:
    """How far two states lie apart, field by field; track and heading by the shortest arc."""
    apart = [abs(a - b) for a, b in zip(row, before, strict=True)]
    apart[3], apart[4] = arc(apart[3]), arc(apart[4])
    return apart


def read(task: str, text: str) -> tuple[list[Row] | None, dict[tuple[str, int], str]]:
    """The numbers of an answer by step, and the validity rule that each of its bad values fails."""
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        return None, {}
    text = text[start : end + 1]
    try:
        answer = astuple(answer_decoder[task].decode(text))
    except msgspec.DecodeError:
        return read_loosely(task, text)
    return [answer] if task == "S1" else list(zip(*answer, strict=True)), {}


def read_loosely(task: str, text: str) -> tuple[list[Row] | None, dict[tuple[str, int], str]]:
    """As `read`, for the few answers that are not 19 clean numbers or arrays."""
    try:
        answer = json.loads(text)
    except ValueError:
        return None, {}
    if not isinstance(answer, dict) or not any(name in answer for name in FIELDS):
        return None, {}
    steps = STEPS[task]
    bad: dict[tuple[str, int], str] = {}
    rows = [[NAN] * len(FIELDS) for _ in range(steps)]
    for column, name in enumerate(FIELDS):
        value: Any = answer.get(name)
        if name not in answer:
            bad.update({(name, step): "numeric_validity.missing_field" for step in range(steps)})
        elif not (isinstance(value, list) and len(value) == 3 if task == "M3" else not isinstance(value, list)):
            bad.update({(name, step): "numeric_validity.array_shape" for step in range(steps)})
        else:
            for step, element in enumerate(value if task == "M3" else [value]):
                rows[step][column] = number(element)
                if isnan(rows[step][column]):
                    bad[name, step] = INVALID
    return [tuple(row) for row in rows], bad


def number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return NAN
    if isinstance(value, str) and not NUMERIC.fullmatch(value):
        return NAN
    return float(value) if math.isfinite(float(value)) else NAN


def evidence(head: str, task: str, rows: list[Row] | None, bad: dict[tuple[str, int], str], shown: Row) -> list[Atom]:
    """All atoms of one sample, in the order of the layout."""
    parsed = rows is not None
    known: list[Row] = [NOTHING] * STEPS[task] if rows is None else rows
    states = list(enumerate(known))
    verdict = ("pass", "INFO", None, "answer found") if parsed else ("fail", "CRITICAL", None, "no answer found")
    atoms = [Atom(f"{head}/protocol.json_parse/@0", "protocol.json_parse", None, 0, *verdict)]
    for step, row in states:
        for slot, value in zip(VALIDITY[step], row, strict=True):
            name = slot[2]
            if not isnan(value):
                atoms.append(Atom(head + slot[0], INVALID, name, step, "pass", "INFO", None, "finite number"))
            elif parsed:
                rule = bad[name, step]
                atoms.append(Atom(f"{head}/{rule}/{name}@{step}", rule, name, step, "fail", "CRITICAL", None, rule))
            else:
                atoms.append(found(head, slot, NAN, "INFO"))
    for step, row in states:
        atoms += [inside(head, slot, value) for slot, value in zip(RANGE[step], row, strict=True)]
    moved = [changes(row, shown if step == 0 else states[step - 1][1]) for step, row in states]
    for step, row_changes in enumerate(moved):
        atoms += [above(head, slot, change) for slot, change in zip(MUTATION[step], row_changes, strict=True)]

    wholes: list[tuple[Atom, ...]] = []
    for step, row in states:
        _, _, gps, track, _, east, north, up, ground, roll, pitch, _, _, _, _, climb, airspeed, baro, _ = row
        velocity = 1.943844 * math.sqrt(east * east + north * north)
        off_track = arc(abs(track - math.degrees(math.atan2(east, north)))) if velocity >= 5 else NAN
        attitude = NAN if isnan(roll + pitch + up) else max(abs(roll), abs(pitch))
        level = abs(pitch) > 15 and abs(up) < 0.05 * abs(pitch)
        tilted = "CRITICAL" if attitude > 60 else "WARNING" if level else "INFO"
        sinking = "CRITICAL" if climb < -3000 else "WARNING" if climb < -2000 else "INFO"
        speed = "CRITICAL" if airspeed < 30 else "WARNING" if airspeed > 180 else "INFO"
        height = "CRITICAL" if gps < 0 else "WARNING" if gps > 15000 else "INFO"
        stall = "CRITICAL" if airspeed < 50 and pitch > 15 and climb < 500 else "INFO"
        whole = (
            above(head, ALTITUDE[step], abs(gps - baro)),
            above(head, SPEED[step], abs(ground - velocity)),
            above(head, TRACK[step], off_track),
            above(head, (LOW_CLIMB if gps < 1000 else HIGH_CLIMB)[step], NAN if isnan(gps) else abs(climb)),
            found(head, ATTITUDE[step], attitude, tilted),
            found(head, DESCENT[step], climb, sinking),
            found(head, AIRSPEED[step], airspeed, speed),
            found(head, HEIGHT[step], gps, height),
            found(head, STALL[step], NAN if isnan(pitch + climb) else airspeed, stall),
        )
        wholes.append(whole)
    by_rule = list(zip(*wholes, strict=True))
    for group in by_rule[:3]:
        atoms += group
    for step in range(1, len(states)):
        atoms += [above(head, slot, change) for slot, change in zip(CONTINUITY[step], moved[step], strict=True)]
    for group in by_rule[3:]:
        atoms += group
    return atoms


def points(value: float, table: tuple[tuple[int, int], ...]) -> float:
    x0, y0 = table[0]
    for x1, y1 in table[1:]:
        if value <= x1:
            return y0 + (y1 - y0) * (value - x0) / (x1 - x0)
        x0, y0 = x1, y1
    return max(5.0, y0 - (value - x0) / 10.0)


def judge(task: str, output: Output, truth: Any) -> Record:
    """One sample: its evidence, the verdict with what it cites, and its scores."""
    current = truth.current_state
    shown = NOTHING if current is None else astuple(current if task == "S1" else current[2])
    rows, bad = read(task, output.response)
    atoms = evidence(f"{output.model}/{output.id}", task, rows, bad, shown)
    outcomes = [atom.outcome for atom in atoms]
    failures = [atom for atom in atoms if atom.outcome == "fail"] if "fail" in outcomes else []
    critical = [atom.id for atom in failures if atom.severity == "CRITICAL"]
    mae = rmse = availability = constraint = error = total = None
    if truth.gold is not None and rows is not None:
        gold = astuple(truth.gold)
        gold_rows = [gold] if task == "S1" else zip(*gold, strict=True)
        errors = [e for row, true in zip(rows, gold_rows, strict=True) for e in changes(row, true) if not isnan(e)]
        if errors:
            mae, rmse = sum(errors) / len(errors), math.sqrt(sum([e * e for e in errors]) / len(errors))
    if not critical:
        passed = 0.5 * (outcomes.count("pass") - 1)
        availability, constraint = 100.0, 100.0 * passed / (passed + len(failures))
        if mae is not None and rmse is not None:
            error = 0.6 * points(mae, MAE_POINTS) + 0.4 * points(rmse, RMSE_POINTS)
            total = 0.2 * availability + 0.3 * constraint + 0.5 * error
    return Record(
        *(output.id, output.model, task),
        "unparsed" if rows is None else "failed" if critical else "passed",
        "ineligible" if critical else "eligible",
        critical or [atom.id for atom in atoms],
        *(availability, constraint, error, total, mae, rmse),
        atoms,
    )


def run(outputs: Path, reference: Path, records: Path, task: str = "S1") -> int:
    """Judge every line of the outputs and write one JSON record a line; the number of samples."""
    truths = {truth.id: truth for truth in msgspec.json.Decoder(TRUTH[task]).decode_lines(reference.read_bytes())}
    encode, samples = msgspec.json.Encoder().encode, 0
    with outputs.open("rb") as lines, records.open("wb") as out:
        for line in lines:
            output = output_decoder.decode(line)
            out.write(encode(judge(task, output, truths[output.id])))
            out.write(b"\n")
            samples += 1
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=tuple(STEPS), default="S1")
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("outputs", type=Path)
    parser.add_argument("reference", type=Path)
    arguments = parser.parse_args()
    start = time.process_time()
    samples = run(arguments.outputs, arguments.reference, arguments.records, arguments.task)
    seconds = time.process_time() - start
    print(f"{samples} samples, {seconds / samples * 1e6:.1f} µs of CPU each")


if __name__ == "__main__":
    main()
