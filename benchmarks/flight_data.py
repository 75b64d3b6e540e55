"""Synthetic flights: outputs that are bare, fenced or in prose, and their references, with numbers of four decimals or all digits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.flight.fields import FIELDS, HEADING, INDEX, TRACK
from benchmarks.variety import Variety

Array = NDArray[np.float64]
SECONDS, FLIGHTS_AT_ONCE = 600, 32
MODEL = "modèle-β/2"
# A model's usual error, about a twentieth of what may change in a second, so that most answers are eligible.
NOISE = np.array((1e-4, 1e-4, 3, 0.7, 0.7, 0.4, 0.4, 0.2, 0.4, 0.9, 0.4, 0.2, 0.02, 0.04, 0.01, 40, 0.4, 3, 3))
LEAPS = 0.03  # share of the answers in which one field leaps
INTRODUCTIONS = ("Here is the prediction:", "Holding speed and climb, I expect", "Voilà l’état prévu →", "予測:\n")
WITHOUT_ANSWER = "The data do not allow me to say more than that the aircraft holds its course. "


def write(task: str, samples: int, folder: Path, *, seed: int = 0, digits: str = "four") -> tuple[Path, Path]:
    """Write outputs.jsonl, its rows in no order, and reference.jsonl, flight by flight."""
    folder.mkdir(parents=True, exist_ok=True)
    outputs, reference = folder / "outputs.jsonl", folder / "reference.jsonl"
    rng, variety, left = np.random.default_rng(seed), Variety(seed), samples
    with outputs.open("wb") as out, reference.open("wb") as ref:
        while left:
            states = simulate(rng, FLIGHTS_AT_ONCE)
            answers = _answers(rng, states)
            if digits == "four":
                states, answers = np.round(states, 4), np.round(answers, 4)
            lines = list(islice(_lines(task, variety, states.tolist(), answers.tolist(), samples - left), left))
            ref.writelines(truth for _, truth in lines)
            variety.random.shuffle(lines)
            out.writelines(output for output, _ in lines)
            left -= len(lines)
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
    return np.stack(columns, axis=-1)


def _answers(rng: np.random.Generator, states: Array) -> Array:
    """What a model makes of the true states: a small error everywhere, and now and then a leap in one field."""
    answers: Array = states + rng.standard_normal(states.shape) * NOISE
    leaps = np.nonzero(rng.random(states.shape[:2]) < LEAPS)
    fields = rng.integers(0, len(FIELDS), leaps[0].size)
    answers[*leaps, fields] += NOISE[fields] * rng.choice((-1.0, 1.0), fields.size) * rng.uniform(25, 400, fields.size)
    for name in (TRACK, HEADING):
        answers[..., INDEX[name]] %= 360.0
    return answers


def _lines(
    task: str, variety: Variety, states: list[list[list[float]]], answers: list[list[list[float]]], number: int
) -> Iterator[tuple[bytes, bytes]]:
    """An output line and its reference line for every sample of some flights, numbered from `number` on."""
    steps = 1 if task == "S1" else 3
    for true, guessed in zip(states, answers, strict=True):
        flight = f"flight {variety.identifier(number)}"
        for second in range(steps, SECONDS - steps + 1):
            sample = variety.identifier(number)
            number += 1
            shown, asked = true[second - steps : second], slice(second, second + steps)
            output = variety.record(
                {"id": sample, "response": _response(variety, _state(variety, guessed[asked])), "model": MODEL},
                {
                    "question": f"{variety.text()}\n{msgspec.json.encode(_state(variety, shown)).decode()}",
                    "timestamp": f"2024-05-01T12:{second // 60:02d}:{second % 60:02d}+00:00",
                    "usage": {"input_tokens": 400 + second, "cached": second % 2 == 0},
                },
            )
            current = [_state(variety, [state]) for state in shown]
            truth = {
                "id": sample,
                "flight_id": flight,
                "next_second" if task == "S1" else "T+1": _state(variety, true[asked]),
                "current_state": current[0] if task == "S1" else current,
            }
            yield variety.line(output), variety.line(variety.ordered(truth))


def _state(variety: Variety, states: Sequence[Sequence[float]]) -> dict[str, Any]:
    """One state as numbers by field; several as a list by field."""
    values: Any = states[0] if len(states) == 1 else zip(*states, strict=True)
    return variety.ordered(dict(zip(FIELDS, values, strict=True)))


def _response(variety: Variety, answer: dict[str, Any]) -> str:
    """The text of an answer: 60 % bare, 20 % fenced, 15 % within prose, the others unreadable or with a field amiss."""
    chance = variety.random.random()
    if chance > 0.98:
        field = variety.random.choice(FIELDS)
        answer[field] = "N/A"
        if chance > 0.99:
            del answer[field]
    text = msgspec.json.format(msgspec.json.encode(answer), indent=variety.random.choice((0, 0, 2))).decode()
    introduction = variety.random.choice(INTRODUCTIONS)
    if chance < 0.6:
        return text
    if chance < 0.8:
        return f"{introduction}\n\n```json\n{text}\n```"
    if chance < 0.95:
        return f"{introduction} {text}\n\nI hope that helps. ✈"
    if chance < 0.96:
        return WITHOUT_ANSWER * variety.random.randint(1, 4)
    return text[: len(text) * 2 // 3] if chance < 0.97 else text
