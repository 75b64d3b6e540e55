"""The example data set: two invented models that look for fake images, with and without tools, three trials each.

A sample has a hidden difficulty; a model sees the class through noise of its own and answers uncertain where it sees
little. What it says about its confidence grows faster than its accuracy: it is over-confident, the smaller model more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adjudge.errors import OutputError

SAMPLES, CALIBRATION, TRIALS = 400, 300, 3
SOURCES = ("camera", "social", "stock", "generator-a", "generator-b")
TOOLS = ("metadata", "ela", "noise_map")


@dataclass(frozen=True)
class Model:
    """An invented model: how well it sees, how bold it is, how much it overstates, how often it fails."""

    name: str
    skill: float
    tool_gain: float
    caution: float
    overstatement: float
    errors: float
    seconds: float


MODELS = (
    Model("hawk-1", 1.35, 0.30, 0.55, 2.2, 0.01, 5.2),
    Model("wren-mini", 0.85, 0.40, 0.35, 3.0, 0.03, 1.9),
)


@dataclass(frozen=True)
class Paths:
    """Where the files are."""

    manifest: Path
    results: tuple[Path, ...]
    calibration: Path

    def config(self) -> dict[str, Any]:
        """The configuration that judges them."""
        return {
            "results": [[str(path) for path in self.results]],
            "manifest": [str(self.manifest)],
            "calibration": [str(self.calibration)],
            "target_risk": 0.15,
            "slices": ["meta.source"],
        }


def generate(folder: Path, *, seed: int = 0, force: bool = False) -> Paths:
    """Write the manifest, one result file a model, and results on other samples for calibration."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = Paths(
        folder / "manifest.jsonl",
        tuple(folder / f"results_{model.name}.jsonl" for model in MODELS),
        folder / "calibration.jsonl",
    )
    for path in (paths.manifest, *paths.results, paths.calibration):
        if path.exists() and not force and path.stat().st_size:
            raise OutputError(f"{path} exists already; choose another --out, or --force to replace it")
    random = np.random.default_rng([seed, 0])
    samples = _samples(random, "img", SAMPLES)
    others = _samples(random, "cal", CALIBRATION)
    _write(
        paths.manifest, ({"id": s["id"], "image": s["image"], "label": s["label"], "meta": s["meta"]} for s in samples)
    )
    for index, (model, path) in enumerate(zip(MODELS, paths.results, strict=True)):
        records = list(_answers(np.random.default_rng([seed, 1, index]), model, samples, TRIALS))
        # One record never came back.
        _write(path, (record for at, record in enumerate(records) if at != 217))
    _write(
        paths.calibration,
        (
            record
            for index, model in enumerate(MODELS)
            for record in _answers(np.random.default_rng([seed, 2, index]), model, others, 1)
        ),
    )
    return paths


def _samples(random: np.random.Generator, prefix: str, count: int) -> list[dict[str, Any]]:
    found = []
    for number in range(count):
        fake = bool(random.random() < 0.5)
        source = (
            SOURCES[int(random.integers(0, 3))]
            if not fake
            else SOURCES[int(random.choice([1, 3, 4], p=[0.2, 0.45, 0.35]))]
        )
        name = f"{prefix}-{number:04d}"
        found.append(
            {
                "id": name,
                "image": f"{name}.jpg",
                "label": "fake" if fake else "real",
                "meta": {"source": source},
                # generator-b makes better fakes; stock photographs look too clean.
                "ease": float(random.gamma(2.0, 0.5)) * {"generator-b": 0.5, "stock": 0.7}.get(source, 1.0),
            }
        )
    return found


def _answers(
    random: np.random.Generator, model: Model, samples: list[dict[str, Any]], trials: int
) -> Iterator[dict[str, Any]]:
    for tools in (False, True):
        skill = model.skill + (model.tool_gain if tools else 0.0)
        # What a model sees of a sample is mostly the same in every trial.
        stable = random.normal(size=len(samples))
        for trial in range(trials):
            for sample, lasting in zip(samples, stable.tolist(), strict=True):
                yield _answer(random, model, sample, lasting, skill, tools=tools, trial=trial)


def _answer(
    random: np.random.Generator,
    model: Model,
    sample: dict[str, Any],
    lasting: float,
    skill: float,
    *,
    tools: bool,
    trial: int,
) -> dict[str, Any]:
    side = 1.0 if sample["label"] == "fake" else -1.0
    seen = side * skill * sample["ease"] + 0.9 * lasting + 0.45 * float(random.normal())
    hit = bool(random.random() < 0.25)
    vision = float(random.gamma(6.0, model.seconds / 6.0)) if not hit else float(random.uniform(0.01, 0.05))
    agent = float(random.gamma(5.0, 0.8)) if tools else None
    used = [name for name in TOOLS if tools and random.random() < 0.6]
    seconds = [round(float(random.gamma(2.0, 0.3)), 4) for _ in used]
    details = [{"tool": name, "seconds": took, "status": "ok"} for name, took in zip(used, seconds, strict=True)]
    spent = vision + (agent or 0.0) + sum(seconds)
    record: dict[str, Any] = {
        "id": sample["id"],
        "model": model.name,
        "use_tools": tools,
        "trial": trial,
        "label": sample["label"],
        "image": sample["image"],
        "meta": sample["meta"],
        "run_config": {"temperature": 0.0, "max_iterations": 15},
        "prompt_hashes": {"vision_system": _hash("vision"), "agent_system": _hash("agent" if tools else "")},
        "models": {"agent": f"{model.name}-2026-01", "vision": f"{model.name}-vision-2026-01", "structuring": "form-3"},
        "cache": {"hit": hit},
        "tool_usage": used,
        "tool_details": details,
        "timings": {
            "vision_llm_seconds": round(vision, 6),
            **({} if agent is None else {"agent_graph_seconds": round(agent, 6)}),
            "total_seconds": round(spent, 6),
        },
        "latency_seconds": round(spent + 0.02, 6),
        "timestamp": 1_770_000_000 + int(random.integers(0, 86_400)),
    }
    if random.random() < model.errors:
        return {**record, "error": "request timed out after 60 s", "error_type": "TimeoutError"}
    verdict = "uncertain" if abs(seen) < model.caution else "fake" if seen > 0 else "real"
    if verdict == "fake" and random.random() < 0.1:
        verdict = "AI-generated"
    # A calibrated model would say 1 / (1 + exp(-|seen|)); this one overstates what it sees.
    said = model.overstatement * abs(seen) + 0.6 * float(random.normal())
    confidence = 1.0 / (1.0 + float(np.exp(-said)))
    return {**record, "prediction": verdict, "confidence": round(min(confidence, 0.99), 2)}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _write(path: Path, records: Iterator[dict[str, Any]]) -> None:
    with path.open("wb") as stream:
        for record in records:
            stream.write(msgspec.json.encode(record) + b"\n")
