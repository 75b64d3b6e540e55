"""The commands of the protocol's page, run in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "protocols" / "anomaly.md"


def test_commands_print_what_the_page_shows(tmp_path):
    (block,) = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [part.partition("\n") for part in block.split("$ ")[1:]]
    assert len(commands) == 5
    for command, _, expected in commands:
        words = shlex.split(command)
        assert words[0] == "adjudge"
        done = subprocess.run(
            [sys.executable, "-c", "from adjudge.cli.main import run; run()", *words[1:]],
            cwd=tmp_path,
            env=os.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, expected)


def test_own_detector_of_the_page_works(tmp_path, monkeypatch):
    import adjudge
    from adjudge.protocols.anomaly.example import write_example

    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "my_detector.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    config = write_example(tmp_path, flights=14, seconds=40.0, rate=10.0)
    run = adjudge.evaluate(
        "anomaly", {**config, "detector": "my_detector:Distance", "resamples": 500}, out=tmp_path / "run"
    )
    assert run.metrics["valid"]
