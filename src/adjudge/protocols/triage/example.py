"""The example data set: two invented models that look for fake images, with and without tools, three trials each.

The pictures are drawn with the seed; the results are collected from the models of `subject.py` as `adjudge collect` would
collect them, under a simulated clock: no minute is waited for, and a seed gives the same bytes each time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adjudge.collect.cache import Cache
from adjudge.collect.clock import SimulatedClock
from adjudge.collect.dataset import Dataset
from adjudge.collect.output import Output
from adjudge.collect.python_subject import PythonSubject
from adjudge.collect.runner import Runner
from adjudge.collect.settings import Settings
from adjudge.collect.subject import Subject
from adjudge.collect.templates import shipped_template
from adjudge.errors import OutputError
from adjudge.protocols.common.examples import write_examples
from adjudge.protocols.triage.subject import HAWK, WREN
from adjudge.provenance.redact import Redactor

SAMPLES, CALIBRATION, TRIALS = 400, 300, 3
CACHED = 100
SOURCES = ("camera", "social", "stock", "generator-a", "generator-b")
_SUBJECTS = {
    HAWK.name: "adjudge.protocols.triage.subject:hawk_1",
    WREN.name: "adjudge.protocols.triage.subject:wren_mini",
}
_START = datetime(2026, 2, 2, 8, 0, tzinfo=UTC)
_MODES = (True, False)
_WORKERS = 16


class Paths(NamedTuple):
    """Where the files are."""

    manifest: Path
    results: tuple[Path, ...]
    calibration_manifest: Path
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


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write the example and return the configuration that judges it."""
    return generate(folder, seed=seed, force=True).config()


def generate(folder: Path, *, seed: int = 0, force: bool = False) -> Paths:
    """Write the manifest, one result file a model, and results on other samples for calibration.

    The smaller model was asked about the first samples before, without tools, and those answers come from the cache: its
    latencies are of mixed state, as they often are in the wild.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = Paths(
        folder / "manifest.jsonl",
        tuple(folder / f"results_{model}.jsonl" for model in _SUBJECTS),
        folder / "calibration_manifest.jsonl",
        folder / "calibration.jsonl",
    )
    for path in (paths.manifest, *paths.results, paths.calibration_manifest, paths.calibration):
        if path.exists() and not force and path.stat().st_size:
            raise OutputError(f"{path} exists already; choose another --out, or --force to replace it")
    random = np.random.default_rng([seed, 0])
    manifests = {
        paths.manifest.name: _samples(random, "img", SAMPLES),
        paths.calibration_manifest.name: _samples(random, "cal", CALIBRATION),
    }
    write_examples(folder, manifests, force=True)
    clock = SimulatedClock(_START, tick=1e-3)
    hawk, wren = (PythonSubject(reference, name) for name, reference in _SUBJECTS.items())
    three = Settings(modes=_MODES, trials=TRIALS, seed=seed, workers=_WORKERS)
    once = Settings(modes=_MODES, seed=seed, workers=_WORKERS)
    with tempfile.TemporaryDirectory() as name:
        cache = Cache(Path(name) / "cache", Redactor(()))
        before = Settings(modes=(False,), trials=TRIALS, seed=seed, workers=_WORKERS)
        _collect([wren], Dataset(str(paths.manifest), limit=CACHED), before, Path(name) / "before.jsonl", clock, cache)
        _collect([hawk], Dataset(str(paths.manifest)), three, paths.results[0], clock)
        _collect([wren], Dataset(str(paths.manifest)), three, paths.results[1], clock, cache)
    _collect([hawk, wren], Dataset(str(paths.calibration_manifest)), once, paths.calibration, clock)
    return paths


def _collect(
    subjects: list[Subject],
    dataset: Dataset,
    settings: Settings,
    path: Path,
    clock: SimulatedClock,
    cache: Cache | None = None,
) -> None:
    template = shipped_template("adjudge.collect", "triage")
    with Output(path, Redactor(()), resume=False, force=True) as output:
        runner = Runner(dataset, subjects, settings, output, template=template, cache=cache, clock=clock)
        if runner.run().interrupted:
            raise KeyboardInterrupt


def _samples(random: np.random.Generator, prefix: str, count: int) -> Iterable[dict[str, Any]]:
    for number in range(count):
        fake = bool(random.random() < 0.5)
        source = SOURCES[int(random.choice([1, 3, 4], p=[0.2, 0.45, 0.35]) if fake else random.integers(0, 3))]
        name = f"{prefix}-{number:04d}"
        # generator-b makes better fakes; stock photographs look too clean.
        ease = float(random.gamma(2.0, 0.5)) * {"generator-b": 0.5, "stock": 0.7}.get(source, 1.0)
        yield {
            "id": name,
            "image": f"{name}.jpg",
            "trace": round(ease if fake else -ease, 3),
            "label": "fake" if fake else "real",
            "meta": {"source": source},
        }
