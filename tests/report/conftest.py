"""Runs that the report tests read: the seeded flight example, judged once a session."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import adjudge
from adjudge.protocols.flight.generate import generate
from adjudge.runs.run import Run


@pytest.fixture(scope="session")
def flight_data(tmp_path_factory):
    """Five models on simulated flights; one answer tries to be a script, one to move the cursor."""
    paths = generate(tmp_path_factory.mktemp("data"), seed=0, task="S1", force=True)
    hostile = next(iter(paths.outputs.values()))
    lines = hostile.read_text(encoding="utf-8").splitlines()
    ids = [line.split('"id":')[1].split('"')[1] for line in lines[:2]]
    name = hostile.stem.removeprefix("outputs_")
    texts = ("<script>document.title = 'owned'</script><img src=x onerror=alert(1)>", r"\u001b[2J\u001b]0;owned\u0007")
    for place, (sample, text) in enumerate(zip(ids, texts, strict=True)):
        lines[place] = f'{{"id": "{sample}", "model": "{name}", "response": "{text}"}}'
    hostile.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths, name, ids


@pytest.fixture(scope="session")
def config(flight_data):
    paths, _, _ = flight_data
    return {
        "task": "S1",
        "outputs": [str(path) for path in paths.outputs.values()],
        "reference": [str(paths.reference)],
        "resamples": 200,
    }


@pytest.fixture(scope="session")
def flight_run(flight_data, config, tmp_path_factory) -> Run:
    _, name, _ = flight_data
    gates = [f"{name}/eligibility_rate >= 0.1", f"{name}/mae_p95.high <= 0.001", f"{name}/nonsense > 1"]
    return adjudge.evaluate("flight", config, out=tmp_path_factory.mktemp("runs") / "run", gates=gates)


@pytest.fixture
def copy_of(tmp_path):
    """A run that a test may change."""

    def copy(run: Run) -> Path:
        target = tmp_path / "copy"
        shutil.copytree(run.path, target)
        return target

    return copy
