import json
from pathlib import Path

import pytest

import adjudge


@pytest.fixture
def write(tmp_path):
    """Writes records as JSON Lines and returns the path."""

    def write_records(records, name="scores.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        return str(path)

    return write_records


@pytest.fixture
def judge(tmp_path):
    """Judges logs into a run without a page."""
    count = 0

    def evaluate(*logs, **options):
        nonlocal count
        count += 1
        how = {key: options.pop(key) for key in ("workers", "limit") if key in options}
        config = {"logs": [str(log) for log in logs], "resamples": 100, **options}
        return adjudge.evaluate("score", config, out=tmp_path / f"run-{count}", report=False, **how)

    return evaluate


@pytest.fixture
def value():
    """The value of an estimate of a model."""

    def of(run, name, model, where=None):
        return run.estimates[name, where or f"model={model}"].value

    return of


@pytest.fixture
def metrics_bytes():
    return lambda run: (Path(run.path) / "metrics.json").read_bytes()
