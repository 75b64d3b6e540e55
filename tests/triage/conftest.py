"""Small triage inputs, and runs over them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import adjudge

KEY = "m|no-tools"


def _record(number: int, label: str, prediction: str | None, confidence: Any = 0.8, **more: Any) -> dict[str, Any]:
    """One result of model m without tools, in the shape of DF3."""
    return {
        "id": f"s{number:04d}",
        "model": "m",
        "use_tools": False,
        "trial": 0,
        "label": label,
        "prediction": prediction,
        "confidence": confidence,
        **more,
    }


def _cells(*cells: tuple[int, str, str | None, Any]) -> list[dict[str, Any]]:
    """Records from (how many, label, prediction, confidence)."""
    numbers = itertools.count()
    return [_record(next(numbers), label, word, c) for count, label, word, c in cells for _ in range(count)]


@pytest.fixture
def record():
    return _record


@pytest.fixture
def cells():
    return _cells


@pytest.fixture
def judge(tmp_path: Path):
    """Judge records (or configured files) and return the run."""
    count = itertools.count()

    def run(records: list[dict[str, Any]] | None = None, **config: Any) -> adjudge.Run:
        number = next(count)
        if records is not None:
            path = tmp_path / f"results-{number}.jsonl"
            path.write_text("".join(json.dumps(item) + "\n" for item in records), encoding="utf-8")
            config["results"] = [[str(path)]]
        return adjudge.evaluate("triage", {"resamples": 200, **config}, out=tmp_path / f"run-{number}", report=False)

    return run


@pytest.fixture
def trial():
    """The block of one trial of a run."""

    def block(run: adjudge.Run, key: str = KEY, number: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = run.metrics["configurations"][key]["per_trial"][str(number)]
        return found

    return block


@pytest.fixture
def why():
    """Why an estimate of a configuration is null."""

    def reason(run: adjudge.Run, name: str, key: str = KEY) -> str | None:
        return run.estimates[name, f"configuration={key}"].why

    return reason
