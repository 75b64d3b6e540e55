"""Small evaluations: episodes and predictions written down in a test, judged, and given back as numbers."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from adjudge.cli.export import export
from adjudge.cli.gui import gui
from adjudge.cli.schema import schema
from adjudge.engine.evaluate import Options, evaluate
from adjudge.protocols.base import protocol
from adjudge.runs.run import Run


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def spelled(episodes):
    """Episodes as {name: [action, …]} or whole objects."""
    if isinstance(episodes, list):
        return episodes
    return [
        {"episode_id": name, "steps": [{"step": k, "action": action} for k, action in enumerate(actions)]}
        for name, actions in episodes.items()
    ]


def said(predictions):
    """Predictions as {name: [text, action or None, …]} or whole objects; None is no prediction."""
    if isinstance(predictions, list):
        return predictions
    return [
        {"episode_id": name, "step": k, **({"raw": value} if isinstance(value, str) else {"action": value})}
        for name, values in predictions.items()
        for k, value in enumerate(values)
        if value is not None
    ]


@pytest.fixture
def lines():
    """`lines(path, rows)` writes JSON Lines and returns the path as text."""
    return write_lines


@pytest.fixture
def judge(tmp_path):
    """`judge(episodes, predictions, **config)` is the finished run."""
    count = iter(range(1000))

    def judge(episodes, predictions, *, outcomes=None, workers=1, **config):
        folder = tmp_path / f"judged-{next(count)}"
        folder.mkdir()
        settings = {"space": "normalized", "bbox": "xyxy", "resamples": 100, **config}
        settings["episodes"] = [write_lines(folder / "episodes.jsonl", spelled(episodes))]
        settings["predictions"] = [write_lines(folder / "predictions.jsonl", said(predictions))]
        if outcomes is not None:
            settings["outcomes"] = [write_lines(folder / "outcomes.jsonl", outcomes)]
        return Run(evaluate(protocol("gui"), settings, Options(out=folder / "run", workers=workers)))

    return judge


@pytest.fixture
def evaluated(tmp_path):
    """`evaluated(**config)` judges files that are there already."""
    count = iter(range(1000))

    def evaluated(**config):
        return Run(evaluate(protocol("gui"), config, Options(out=tmp_path / f"evaluated-{next(count)}")))

    return evaluated


@pytest.fixture
def measured(judge):
    """`measured(episodes, predictions, **config)` is the flat `metrics`."""
    return lambda *args, **config: judge(*args, **config).metrics["metrics"]


@pytest.fixture
def command():
    """`command("gui", "validate", …)` runs a command in this process; errors stand in `exception`.

    The command is called itself and not through `adjudge`, because click remembers the help flags of the group it was
    first called in, and the generated command-line reference would then depend on which tests ran before.
    """
    known = {"gui": gui, "export": export, "schema": schema}

    def run(name, *words):
        return CliRunner().invoke(known[name], [str(word) for word in words], standalone_mode=False)

    return run
