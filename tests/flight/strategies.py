"""Random flight samples for property tests: a cruise that obeys the rules, with anything a model may do to it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from reference_atoms import JUMP, RANGE

from adjudge.protocols.flight.fields import (
    AIRSPEED,
    ANGLES,
    BARO_ALTITUDE,
    FIELDS,
    GPS_ALTITUDE,
    GROUND_SPEED,
    HEADING,
    PITCH,
    ROLL,
    TASKS,
    TRACK,
    VELOCITY_E,
    VELOCITY_N,
    VELOCITY_U,
    VERTICAL_SPEED,
)

State = dict[str, Any]

# The limits of rules about several fields, on the fields that they read directly.
THRESHOLDS = {
    AIRSPEED: (30.0, 40.0, 50.0, 180.0),
    GPS_ALTITUDE: (0.0, 1000.0, 15000.0),
    GROUND_SPEED: (5.0,),
    PITCH: (-60.0, -15.0, 15.0, 60.0),
    ROLL: (-60.0, 60.0),
    VERTICAL_SPEED: (-5000.0, -3000.0, -2000.0, 500.0, 2000.0, 5000.0),
    VELOCITY_E: (0.0,),
    VELOCITY_N: (0.0,),
    VELOCITY_U: (0.0,),
}
# Fields compared with another one: the state's speed over ground also follows from its velocities.
PARTNERS = {BARO_ALTITUDE: (GPS_ALTITUDE, (500.0, 1000.0)), GROUND_SPEED: (GROUND_SPEED, (5.0, 15.0))}
# Rules about several fields at once need them to change together.
SCENARIOS: tuple[State, ...] = (
    {VERTICAL_SPEED: -3500, VELOCITY_U: -18, GPS_ALTITUDE: 999, BARO_ALTITUDE: 950},
    {VERTICAL_SPEED: 5001, GPS_ALTITUDE: 1000},
    {AIRSPEED: 49.9, PITCH: 15.1, VERTICAL_SPEED: 499},
    {AIRSPEED: 50, PITCH: 20, VERTICAL_SPEED: 0, VELOCITY_U: 1.0},
    {AIRSPEED: 12, GROUND_SPEED: 4.0, VELOCITY_E: 2.0, VELOCITY_N: 0.5, PITCH: 16, VERTICAL_SPEED: 0},
    {GROUND_SPEED: 5.1, VELOCITY_E: 2.6, VELOCITY_N: 0.0, TRACK: 130},
)
NUMERIC_TEXT = ("0", "-0", "95", " 95.0\n", "+9.5e1", "950E-1", "7.", ".5", "0095", "1e-400", "359.9999")
OTHER_TEXT = (
    "",
    " ",
    "N/A",
    "NaN",
    "Infinity",
    "-inf",
    "null",
    "1e999",
    "0x1F",
    "1_000",
    "1,000",
    "5 kt",
    "--1",
    "٣",
    ".",
)
NO_NUMBERS = (None, True, False, {}, {"value": 95.0})
ODD_NUMBERS = (0, -0.0, 5000, -1e6, 1e154, 1e300, -1.7e308, 5e-324, 2**53 + 1, 10**25, 360, 359.99999999999994)
NO_ANSWER = ("unparsed", "errored", "abstained", "missing")
RESPONSES = {
    "unparsed": "The aircraft keeps climbing to the north.",
    "errored": "Error code: 429 - rate limit exceeded",
    "abstained": '{"abstain": true}',
}


@dataclass(frozen=True)
class Case:
    """One sample as `reference.evaluate` takes it: `evaluate(task, answer, shown, gold, **case.options)`."""

    task: str
    answer: State | None
    shown: State | None
    gold: State | None
    bucket_hint: str
    relative_altitude: bool
    airborne_only: bool

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of `reference.evaluate`."""
        return {
            "bucket_hint": self.bucket_hint,
            "relative_altitude": self.relative_altitude,
            "airborne_only": self.airborne_only,
        }

    def output_line(self, sample_id: str, model: str = "model") -> State | None:
        """The line of the outputs file; None where the output is missing."""
        if self.bucket_hint == "missing":
            return None
        response = RESPONSES[self.bucket_hint] if self.answer is None else json.dumps(self.answer)
        line = {"id": sample_id, "question": "What comes next?", "response": response, "model": model}
        return line | {"timestamp": "2024-05-01T12:00:00Z"} | self._current_state()

    def reference_line(self, sample_id: str) -> State | None:
        """The line of the reference file; None where the sample has no reference."""
        if self.gold is None:
            return None
        if self.task == "S1":
            return {"id": sample_id, "next_second": self.gold}
        # Only the first element counts for M1.
        later = {name: [value, 0.0, 0.0] for name, value in self.gold.items()} if self.task == "M1" else self.gold
        return {"id": sample_id, "T+1": later}

    def _current_state(self) -> State:
        if self.shown is None:
            return {}
        # Only the last of the shown states counts, so the ones before it are different on purpose.
        earlier = dict.fromkeys(self.shown, 0.0)
        return {"current_state": self.shown if self.task == "S1" else [earlier, earlier, self.shown]}


@st.composite
def cruises(draw: st.DrawFn, seconds: int) -> list[State]:
    """Consecutive states of a flight that keeps every rule, headings near north included."""
    track = draw(st.floats(0, 360) | st.sampled_from((0.0, 0.25, 359.5, 359.75)))
    turn = draw(st.floats(-3, 3))
    speed = draw(st.floats(60, 160))
    climb = draw(st.floats(-1500, 1500))
    altitude = draw(st.floats(1500, 9000))
    offset = draw(st.floats(-400, 400))
    latitude, longitude = draw(st.floats(-60, 60)), draw(st.floats(-170, 170))
    states = []
    for second in range(seconds):
        direction = (track + turn * second) % 360.0
        radians = math.radians(direction)
        metres = speed / 1.943844
        height = altitude + climb / 60.0 * second
        values = (
            latitude + metres * math.cos(radians) * second / 111320.0,
            longitude + metres * math.sin(radians) * second / 111320.0,
            height,
            direction,
            (direction - 2.5) % 360.0,
            metres * math.sin(radians),
            metres * math.cos(radians),
            climb / 196.85,
            speed,
            turn * 5.0,
            climb / 150.0,
            turn,
            0.01,
            1.02,
            -0.01,
            climb,
            speed - 4.0,
            height - offset,
            height - offset + 60.0,
        )
        states.append(dict(zip(FIELDS, values, strict=True)))
    return states


def boundaries(name: str, before: float, state: State) -> st.SearchStrategy[float]:
    """The limits of a field, also from the value before and other fields, each exact and one step to either side."""
    low, high = RANGE[name]
    half = 0.5 * (high - low)
    edges = [low, high, low - half, high + half, *THRESHOLDS.get(name, ())]
    edges += [before + sign * factor * JUMP[name] for sign in (-1, 1) for factor in (1.0, 1.5, 2.0, 3.0)]
    if name in PARTNERS:
        partner, limits = PARTNERS[name]
        edges += [state[partner] + sign * limit for sign in (-1, 1) for limit in limits]
    if name in ANGLES:
        edges += [edge % 360.0 for edge in edges]
    return st.sampled_from(
        [near for e in edges for near in (e, math.nextafter(e, -math.inf), math.nextafter(e, math.inf))]
    )


def values(name: str, before: float, state: State) -> st.SearchStrategy[Any]:
    """What may stand in place of one number."""
    return st.one_of(
        boundaries(name, before, state),
        st.floats(-3.0, 3.0).map(lambda factor: before + factor * JUMP[name]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(ODD_NUMBERS),
        st.sampled_from(NUMERIC_TEXT),
        st.just(before).map(str),
        st.sampled_from(OTHER_TEXT),
        st.sampled_from(NO_NUMBERS),
    )


@st.composite
def cases(draw: st.DrawFn, task: str) -> Case:
    """One sample of a task: mostly a good answer with a few things done to it, now and then none at all."""
    steps = TASKS[task].steps
    shown, *later = draw(cruises(1 + steps))
    gold = _columns(task, later)
    if draw(st.integers(0, 19)) == 19:
        answer, bucket_hint = None, draw(st.sampled_from(NO_ANSWER))
    else:
        answer, bucket_hint = _damaged(draw, task, later, shown), "answered"
    return Case(
        task=task,
        answer=answer,
        shown=None if draw(st.integers(0, 9)) == 9 else _rewritten(draw, shown),
        # A sample without an output is known by its reference alone.
        gold=None if bucket_hint != "missing" and draw(st.integers(0, 9)) == 9 else gold,
        bucket_hint=bucket_hint,
        relative_altitude=draw(st.booleans()),
        airborne_only=draw(st.booleans()),
    )


def _columns(task: str, states: list[State]) -> State:
    if not TASKS[task].arrays:
        return dict(states[0])
    return {name: [state[name] for state in states] for name in FIELDS}


def _damaged(draw: st.DrawFn, task: str, later: list[State], shown: State) -> State:
    """The gold answer with up to six fields changed, reshaped or left out, and perhaps a key too many."""
    states = [dict(state) for state in later]
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=6)):
        step = draw(st.integers(0, len(states) - 1))
        before = shown[name] if step == 0 else later[step - 1][name]
        states[step][name] = draw(values(name, before, later[step]))
    for scenario in draw(st.just([]) | st.lists(st.sampled_from(SCENARIOS), max_size=1)):
        states[draw(st.integers(0, len(states) - 1))].update(scenario)
    answer = _columns(task, states)
    for name in draw(st.just([]) | st.lists(st.sampled_from(FIELDS), max_size=3, unique=True)):
        action = draw(st.sampled_from(("remove", "short", "long", "scalar", "null", "nested")))
        if action == "remove":
            del answer[name]
        else:
            single = states[0][name]
            shapes = {
                "short": [single] * 2,
                "long": [single] * 12,
                "scalar": single,
                "null": None,
                "nested": [[single]] * 3,
            }
            answer[name] = shapes[action]
    if draw(st.integers(0, 9)) == 9:
        answer = {"explanation": "level flight", **answer, "confidence": 0.9}
    return answer


def _rewritten(draw: st.DrawFn, shown: State) -> State:
    """The shown state with values as text, gone, unreadable, or on the ground."""
    state = dict(shown)
    if draw(st.integers(0, 3)) == 3:
        state[AIRSPEED] = draw(st.sampled_from((0.0, 20, 39.999, 40.0, "35")))
    for name in draw(
        st.just([]) | st.lists(st.sampled_from((*FIELDS, GPS_ALTITUDE, BARO_ALTITUDE, TRACK, HEADING)), max_size=3)
    ):
        state[name] = draw(st.sampled_from((str(shown[name]), "N/A", None)))
    return state
