"""Synthetic flight outputs and references of any size: seeded, fast, and shaped like what models and loggers write."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.flight.fields import FIELDS, HEADING, INDEX, TRACK

Array = NDArray[np.float64]

SECONDS = 600
FLIGHTS_AT_ONCE = 32
MODEL = "synthetic-model"
START = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)
DECIMALS = (6, 6, 1, 1, 1, 3, 3, 3, 2, 2, 2, 2, 3, 3, 3, 1, 2, 1, 1)
# A model's usual error, about a twentieth of what may change in a second, so that most answers are eligible.
NOISE = np.array(
    (1e-4, 1e-4, 3, 0.7, 0.7, 0.4, 0.4, 0.2, 0.4, 0.9, 0.4, 0.2, 0.02, 0.04, 0.01, 40, 0.4, 3, 3), dtype=np.float64
)
HALLUCINATED = 0.03
QUESTION = (
    "You are an expert in flight dynamics. Below is the state of a light aircraft{shown}. Predict the state "
    "{asked}, taking speed, attitude and rate of climb into account. Answer with one JSON object that has exactly the "
    "keys of the input and {values}, without any explanation.\n\nInput:\n{state}"
)
WORDING = {
    "S1": {"shown": " at one second", "asked": "one second later", "values": "one number for each"},
    "M3": {
        "shown": " at three consecutive seconds",
        "asked": "at the next three seconds",
        "values": "three numbers each",
    },
}
PROSE = "The aircraft is likely to hold its present course, but the data given do not allow me to say more than that."

_encode = msgspec.json.Encoder().encode
_format = msgspec.json.format


class Output(msgspec.Struct):
    """One line of the outputs file."""

    id: str
    question: str
    response: str
    model: str
    timestamp: str


def write(task: str, samples: int, folder: Path, *, seed: int = 0) -> tuple[Path, Path]:
    """Write `outputs-TASK.jsonl` and `reference-TASK.jsonl` of so many samples; the same seed writes the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    outputs, reference = folder / f"outputs-{task}.jsonl", folder / f"reference-{task}.jsonl"
    with outputs.open("wb") as out, reference.open("wb") as ref:
        for number, (output, truth) in enumerate(_lines(task, np.random.default_rng(seed))):
            if number == samples:
                break
            out.write(output)
            ref.write(truth)
    return outputs, reference


def simulate(rng: np.random.Generator, flights: int) -> Array:
    """States of quiet flights, by flight, second and field: bounded random walks, and what follows from them."""

    def walk(spread: float, pull: float) -> Array:
        """A random walk of stationary standard deviation `spread`, pulled back to 0 by a share `pull` a second."""
        shocks = rng.standard_normal((SECONDS, flights)) * spread * np.sqrt(pull * (2.0 - pull))
        shocks[0] = rng.standard_normal(flights) * spread
        for second in range(1, SECONDS):
            shocks[second] += shocks[second - 1] * (1.0 - pull)
        walked: Array = np.clip(shocks, -3.5 * spread, 3.5 * spread)
        return walked.T

    def constant(low: float, high: float) -> Array:
        return rng.uniform(low, high, (flights, 1))

    airspeed = constant(85, 125) + walk(4.0, 0.02)
    roll = walk(7.0, 0.05)
    climb = walk(250.0, 0.05)
    altitude = constant(4000, 6000) + np.cumsum(climb, axis=1) / 60.0
    ground_speed = airspeed + constant(-10, 10) + walk(0.5, 0.1)
    metres = ground_speed / 1.943844
    turn_rate = np.degrees(9.80665 * np.tan(np.radians(roll)) / metres)
    heading = constant(0, 360) + np.cumsum(turn_rate, axis=1)
    track = heading + walk(1.0, 0.1)
    east, north = metres * np.sin(np.radians(track)), metres * np.cos(np.radians(track))
    latitude = constant(46, 48) + np.cumsum(north, axis=1) / 111_320.0
    longitude = constant(7, 10) + np.cumsum(east, axis=1) / 111_320.0 / np.cos(np.radians(47.0))
    baro = altitude - constant(-150, 150)
    columns = (
        *(latitude, longitude, altitude, track % 360.0, (heading - constant(1, 4)) % 360.0),
        *(east, north, climb / 196.85, ground_speed),
        *(roll, 2.0 + climb / 200.0 + walk(0.4, 0.2), turn_rate, walk(0.03, 0.2)),
        *(1.0 / np.cos(np.radians(roll)) + walk(0.03, 0.3), walk(0.02, 0.3), climb, airspeed),
        *(baro, baro + constant(-100, 100)),
    )
    return _rounded(np.stack(columns, axis=-1))


def _rounded(states: Array) -> Array:
    return np.stack([np.round(states[..., i], places) for i, places in enumerate(DECIMALS)], axis=-1)


def _answers(rng: np.random.Generator, states: Array) -> Array:
    """What a model makes of the true states: a small error everywhere, and now and then a leap in one field."""
    answers = states + rng.standard_normal(states.shape) * NOISE
    leaps = np.nonzero(rng.random(states.shape[:2]) < HALLUCINATED)
    fields = rng.integers(0, len(FIELDS), leaps[0].size)
    answers[*leaps, fields] += NOISE[fields] * rng.choice((-1.0, 1.0), fields.size) * rng.uniform(25, 400, fields.size)
    for name in (TRACK, HEADING):
        answers[..., INDEX[name]] %= 360.0
    return _rounded(answers)


def _lines(task: str, rng: np.random.Generator) -> Iterator[tuple[bytes, bytes]]:
    """Pairs of an output line and its reference line, flight after flight without end."""
    flight = 0
    while True:
        batch = simulate(rng, FLIGHTS_AT_ONCE)
        for states, answers, luck in zip(
            batch.tolist(),
            _answers(rng, batch).tolist(),
            rng.random((FLIGHTS_AT_ONCE, SECONDS)).tolist(),
            strict=True,
        ):
            yield from _flight(task, f"flight-{flight:04d}", states, answers, luck)
            flight += 1


def _flight(
    task: str, name: str, states: list[list[float]], answers: list[list[float]], luck: list[float]
) -> Iterator[tuple[bytes, bytes]]:
    shown, asked = (1, 1) if task == "S1" else (3, 3)
    encoded = [msgspec.Raw(_encode(dict(zip(FIELDS, state, strict=True)))) for state in states]
    for second in range(shown, SECONDS - asked + 1):
        sample = f"{name}-{second:03d}"
        if task == "S1":
            state = bytes(encoded[second - 1])
            answer: dict[str, Any] = dict(zip(FIELDS, answers[second], strict=True))
            truth: dict[str, Any] = {"next_second": encoded[second], "current_state": encoded[second - 1]}
        else:
            state = _encode(_columns(states[second - 3 : second]))
            answer = _columns(answers[second : second + 3])
            truth = {"T+1": _columns(states[second : second + 3]), "current_state": encoded[second - 3 : second]}
        question = QUESTION.format(state=_format(state, indent=0).decode(), **WORDING[task])
        time = (START + timedelta(seconds=second)).isoformat()
        output = Output(sample, question, _response(answer, luck[second]), MODEL, time)
        yield _encode(output) + b"\n", _encode({"id": sample, "flight_id": name, **truth}) + b"\n"


def _columns(states: list[list[float]]) -> dict[str, tuple[float, ...]]:
    return dict(zip(FIELDS, zip(*states, strict=True), strict=True))


def _response(answer: dict[str, Any], luck: float) -> str:
    """The text around an answer: 85 % plain, 12 % fenced after a sentence, 1 % each of prose, cut short and invalid."""
    if luck < 0.85:
        return _format(_encode(answer), indent=0).decode()
    if luck < 0.97:
        return f"Here is the predicted state:\n\n```json\n{_format(_encode(answer), indent=2).decode()}\n```"
    if luck < 0.98:
        return PROSE
    if luck < 0.99:
        text = _format(_encode(answer), indent=0).decode()
        return text[: len(text) * 2 // 3]
    return _encode(answer | {HEADING: "N/A"}).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=tuple(WORDING), default="S1")
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    for path in write(arguments.task, arguments.samples, arguments.folder, seed=arguments.seed):
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
