from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from adjudge.cli.main import main
from adjudge.engine.evaluate import Options, evaluate
from adjudge.protocols.base import protocol
from adjudge.verdict.gates import Gate

Row = dict[str, Any]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write rows as JSON Lines (a string as it stands) and give the path."""

    def put(name: str, rows: list[Row | str]) -> str:
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return str(path)

    return put


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[Path, dict[str, Any]]]:
    """Evaluate a configuration and give the run's folder and its metrics."""
    number = iter(range(1000))

    def go(
        config: dict[str, Any], *, name: str = "stability", workers: int = 1, gates: tuple[str, ...] = ()
    ) -> tuple[Path, dict[str, Any]]:
        out = tmp_path / f"run{next(number)}"
        wanted = tuple(Gate.parse(text) for text in gates)
        path = evaluate(protocol(name), config, Options(out=out, workers=workers, gates=wanted))
        return path, json.loads((path / "metrics.json").read_bytes())

    return go


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """`adjudge …` in a fresh folder; errors of ours come as exceptions of the result."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Result:
        return CliRunner().invoke(main, list(words), standalone_mode=False)

    return call
