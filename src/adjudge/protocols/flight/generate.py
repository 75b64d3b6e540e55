"""The demo data set: simulated flights, and what five invented models say about them.

| model | behaves |
|---|---|
| falcon-a | dead reckoning with small errors and rare slips, plain JSON |
| kestrel-b | little more than the last state, larger errors, more slips, a sentence and a fence |
| magpie-h | right half of the time; otherwise wild jumps, wrong units, N/A, missing keys, wrong shapes |
| parrot-p | prose and fences, echoed input, trailing commas, single quotes, cut-off text, no JSON at all |
| owl-c | abstains in part, most of all in turns; now and then an API error instead of an answer |

Some outputs are missing altogether. The same seed gives the same bytes; the flights do not depend on the task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from adjudge.errors import ConfigError
from adjudge.protocols.flight import fields as f
from adjudge.protocols.flight.baselines import as_answer, kinematic, persistence
from adjudge.protocols.flight.config import fitting_library_text
from adjudge.protocols.flight.fields import FIELDS, TASKS, Task
from adjudge.protocols.flight.make_tasks import State, question, reference_record, task_named, task_record, write_whole
from adjudge.protocols.flight.simulate import PROFILES, as_recorded, fly

ERROR_SPREAD = {
    f.LATITUDE: 2e-5,
    f.LONGITUDE: 2e-5,
    f.GPS_ALTITUDE: 2.0,
    f.TRACK: 0.5,
    f.HEADING: 0.5,
    f.VELOCITY_E: 0.2,
    f.VELOCITY_N: 0.2,
    f.VELOCITY_U: 0.1,
    f.GROUND_SPEED: 0.4,
    f.ROLL: 0.6,
    f.PITCH: 0.3,
    f.TURN_RATE: 0.3,
    f.SLIP: 0.01,
    f.NORMAL_ACCELERATION: 0.02,
    f.LATERAL_ACCELERATION: 0.01,
    f.VERTICAL_SPEED: 25.0,
    f.AIRSPEED: 0.6,
    f.BARO_ALTITUDE: 2.0,
    f.PRESSURE_ALTITUDE: 2.0,
}
# About what a field changes in a second at most; a slip is once or twice that.
SLIPS = {
    f.GPS_ALTITUDE: 67.0,
    f.HEADING: 15.0,
    f.VELOCITY_N: 10.0,
    f.ROLL: 20.0,
    f.VERTICAL_SPEED: 1000.0,
    f.AIRSPEED: 10.0,
}
WILD = {f.GPS_ALTITUDE: 4500.0, f.HEADING: 170.0, f.GROUND_SPEED: 210.0, f.VERTICAL_SPEED: -5200.0, f.LATITUDE: 0.8}
FIRST_TIMESTAMP = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Generated:
    """Where the data set stands."""

    tasks: Path
    reference: Path
    outputs: dict[str, Path]
    confidence: Path
    library: Path


@dataclass(frozen=True)
class Sample:
    """One window of a simulated flight."""

    sample_id: str
    flight_id: str
    shown: list[State]
    gold: list[State]


Speaker = Callable[[np.random.Generator, Task, Sequence[State]], str]


def generate(
    out_dir: str | Path, *, seed: int = 0, task: str = "S1", flights: int = 6, seconds: int = 40, force: bool = False
) -> Generated:
    """Write tasks, reference, one output file a model, the confidence prior and a fitting library into a folder.

    Every flight has `seconds` seconds, and each window of it that the task needs is a sample. Existing files are
    refused unless `force`.
    """
    asked = task_named(task)
    needed = asked.shown + asked.steps
    if seed < 0 or flights < 1 or seconds < needed:
        raise ConfigError(
            f"cannot generate {flights} flights of {seconds} s with seed {seed}: {task} needs at least one flight "
            f"of {needed} s, and a seed of 0 or more."
        )
    samples = list(_samples(asked, seed, flights, seconds))
    out = Path(out_dir)
    generated = Generated(
        out / "tasks.jsonl",
        out / "reference.jsonl",
        {name: out / f"outputs_{name}.jsonl" for name in MODELS},
        out / f"confidence_{task}.json",
        out / "library.yaml",
    )
    files: dict[Path, list[Any]] = {
        generated.tasks: [task_record(asked, s.sample_id, s.flight_id, s.shown, ()) for s in samples],
        generated.reference: [reference_record(asked, s.sample_id, s.flight_id, s.shown, s.gold) for s in samples],
        generated.confidence: [_confidence(asked, seed)],
        generated.library: [fitting_library_text()],
    }
    for name, path in generated.outputs.items():
        files[path] = list(_outputs(name, asked, seed, samples))
    write_whole(files, force=force)
    return generated


def generate_original(
    out_dir: str | Path,
    *,
    seed: int = 0,
    models: Sequence[str] = ("falcon-a", "kestrel-b", "magpie-h"),
    force: bool = False,
) -> list[Path]:
    """Write a folder as the original method's users have it: no ids, states in the question, M3 from line 505 on.

    Returns the files.
    """
    from adjudge.protocols.flight.original import OFFSETS

    out, files = Path(out_dir), dict[Path, list[Any]]()
    samples = {name: list(_samples(task, seed, 6, 40)) for name, task in TASKS.items()}
    lead = list(_samples(TASKS["M3"], seed + 1, 18, 40))[: OFFSETS["M3"] - len(samples["M1"])]
    windows = [*(_window(sample) for sample in samples["M1"]), *map(_window, lead), *map(_window, samples["M3"])]
    files[out / "next_second_pairs.jsonl"] = [{"next_second": s.gold[0]} for s in samples["S1"]]
    files[out / "flight_3window_samples.jsonl"] = windows
    for name, task in TASKS.items():
        for model in models:
            lines = [_original_line(model, task, seed, sample, number) for number, sample in enumerate(samples[name])]
            files[out / f"{model}_{name}_test_results_20250101.jsonl"] = lines
        files[out / f"confidence_{name}.json"] = [_confidence(task, seed)]
    files[out / "library.yaml"] = [fitting_library_text()]
    write_whole(files, force=force)
    return list(files)


def _window(sample: Sample) -> dict[str, Any]:
    """A line of the windows file: three gold seconds, of which M1 asks for the first."""
    gold = [*sample.gold, *[sample.gold[-1]] * (3 - len(sample.gold))]
    return {"T+1": {field: [state[field] for state in gold] for field in FIELDS}}


def _original_line(model: str, task: Task, seed: int, sample: Sample, number: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, 3, _task_number(task), list(MODELS).index(model), number])
    states = "\n".join(json.dumps(state) for state in sample.shown)
    label = "上一秒数据：" if task.shown == 1 else "前三秒数据：\n"
    moment = FIRST_TIMESTAMP + timedelta(seconds=number)
    return {
        "question": f"{label}{states}",
        "response": MODELS[model].speak(rng, task, sample.shown),
        "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _samples(task: Task, seed: int, flights: int, seconds: int) -> Iterator[Sample]:
    for flight in range(flights):
        rng = np.random.default_rng([seed, 0, flight])
        states = fly(rng, PROFILES[flight % len(PROFILES)], seconds)
        for start in range(seconds - task.shown - task.steps + 1):
            last, name = start + task.shown, f"F{flight + 1:02d}"
            yield Sample(f"{name}-{last - 1:04d}", name, states[start:last], states[last : last + task.steps])


def _outputs(name: str, task: Task, seed: int, samples: Sequence[Sample]) -> Iterator[dict[str, Any]]:
    model = MODELS[name]
    rng = np.random.default_rng([seed, 1, _task_number(task), list(MODELS).index(name)])
    for position, sample in enumerate(samples):
        response = model.speak(rng, task, sample.shown)
        if rng.random() < model.missing:
            continue
        moment = FIRST_TIMESTAMP + timedelta(seconds=position)
        yield {
            "id": sample.sample_id,
            "question": question(task, sample.shown),
            "response": response,
            "model": name,
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


def _confidence(task: Task, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, 2, _task_number(task)])
    scores = {name: round(float(rng.normal(model.confidence, 0.03)), 4) for name, model in MODELS.items()}
    return {"results": [{"model_name": name, "c_score": score} for name, score in scores.items()]}


def _task_number(task: Task) -> int:
    return list(TASKS).index(task.name)


def _guess(
    rng: np.random.Generator, task: Task, shown: Sequence[State], spread: float, *, still: bool = False
) -> dict[str, Any]:
    """A prediction with errors: dead reckoning, or the last state again."""
    states = (persistence if still else kinematic)(shown, task.steps)
    noisy = [
        {field: as_recorded(field, state[field] + rng.normal(0, spread * ERROR_SPREAD[field])) for field in FIELDS}
        for state in states
    ]
    for state in noisy:
        for field in (f.GROUND_SPEED, f.AIRSPEED):
            state[field] = abs(state[field])
    return as_answer(task, noisy)


def _slip(rng: np.random.Generator, answer: dict[str, Any], chance: float) -> dict[str, Any]:
    """The answer, now and then with one number off by more than a second of flight allows."""
    if rng.random() < chance:
        field = str(rng.choice(list(SLIPS)))
        off = SLIPS[field] * rng.uniform(0.9, 2.2) * rng.choice([-1.0, 1.0])
        answer[field] = _each(answer[field], lambda value: as_recorded(field, value + off))
    return answer


def _pick(rng: np.random.Generator, ways: dict[str, float]) -> str:
    return str(rng.choice(list(ways), p=list(ways.values())))


def _falcon(rng: np.random.Generator, task: Task, shown: Sequence[State]) -> str:
    return json.dumps(_slip(rng, _guess(rng, task, shown, 0.5), 0.02))


def _kestrel(rng: np.random.Generator, task: Task, shown: Sequence[State]) -> str:
    answer = json.dumps(_slip(rng, _guess(rng, task, shown, 1.5, still=True), 0.08), indent=2)
    return f"Based on the recent trend I expect the following state.\n\n```json\n{answer}\n```"


def _magpie(rng: np.random.Generator, task: Task, shown: Sequence[State]) -> str:
    answer = _guess(rng, task, shown, 0.8)
    way = _pick(rng, {"right": 0.5, "jump": 0.16, "units": 0.12, "not available": 0.09, "missing": 0.08, "shape": 0.05})
    if way == "jump":
        field = str(rng.choice(list(WILD)))
        jump = WILD[field] * rng.uniform(0.7, 1.3)
        answer[field] = _each(answer[field], lambda value: as_recorded(field, value + jump))
    elif way == "units":
        for field in (f.GPS_ALTITUDE, f.BARO_ALTITUDE, f.PRESSURE_ALTITUDE):
            answer[field] = _each(answer[field], lambda feet: round(feet * 0.3048, 1))
        for field in (f.GROUND_SPEED, f.AIRSPEED):
            answer[field] = _each(answer[field], lambda knots: round(knots * 1.852, 1))
    elif way == "not available":
        optional = [f.SLIP, f.TURN_RATE, f.LATERAL_ACCELERATION, f.PRESSURE_ALTITUDE]
        for field in rng.choice(optional, size=2, replace=False):
            answer[str(field)] = _each(answer[str(field)], lambda _: "N/A")
    elif way == "missing":
        for field in rng.choice(FIELDS, size=int(rng.integers(1, 5)), replace=False):
            del answer[str(field)]
    elif way == "shape":
        field = str(rng.choice(FIELDS))
        answer[field] = answer[field][:1] if task.arrays else [answer[field]]
    return json.dumps(answer)


def _parrot(rng: np.random.Generator, task: Task, shown: Sequence[State]) -> str:
    answer = _guess(rng, task, shown, 0.9)
    plain, pretty = json.dumps(answer), json.dumps(answer, indent=2)
    last = shown[-1]
    way = _pick(
        rng, {"fence": 0.3, "echo": 0.16, "comma": 0.14, "quotes": 0.12, "around": 0.1, "cut": 0.08, "words": 0.1}
    )
    if way == "fence":
        return f"Let me think step by step. The aircraft keeps its path.\n```\n{pretty}\n```\nI hope this helps!"
    if way == "echo":
        return f"You gave me this state:\n{json.dumps(last)}\n\nMy prediction for what comes next:\n{plain}"
    if way == "comma":
        return "Prediction:\n```json\n" + pretty[:-2] + ",\n}\n```"
    if way == "quotes":
        return f"Sure, here is the object: {answer!r}"
    if way == "around":
        return f"The next state will be {plain} as the aircraft {{most likely}} continues."
    if way == "cut":
        return "```json\n" + pretty[: int(len(pretty) * rng.uniform(0.2, 0.9))]
    return (
        f"The aircraft flies at about {last[f.AIRSPEED]:.0f} knots and {last[f.BARO_ALTITUDE]:.0f} feet. "
        "It will most likely continue like this, with small changes of pitch and roll."
    )


def _owl(rng: np.random.Generator, task: Task, shown: Sequence[State]) -> str:
    answer = json.dumps(_guess(rng, task, shown, 0.7))
    doubt = 0.55 if abs(shown[-1][f.TURN_RATE]) > 2.0 else 0.2
    draw, choice = rng.random(), int(rng.integers(3))
    if draw < doubt:
        return '{"abstain": true}' if choice else ""
    if draw > 0.96:
        return (
            "Error: 429 rate limit exceeded",
            "Error code: 503 - service unavailable, please retry later",
            "API error: request timed out after 60 s",
        )[choice]
    return answer


def _each(value: Any, change: Callable[[float], Any]) -> Any:
    """Change a number, or every number of an array."""
    return [change(item) for item in value] if isinstance(value, list) else change(value)


@dataclass(frozen=True)
class Model:
    """An invented model: how it answers, how often its output is missing, and about what its confidence prior is."""

    speak: Speaker
    missing: float
    confidence: float


MODELS = {
    "falcon-a": Model(_falcon, 0.0, 0.88),
    "kestrel-b": Model(_kestrel, 0.0, 0.79),
    "magpie-h": Model(_magpie, 0.01, 0.86),
    "parrot-p": Model(_parrot, 0.01, 0.62),
    "owl-c": Model(_owl, 0.03, 0.71),
}
