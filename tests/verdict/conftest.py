"""Flight data of which some answers fail, some only warn and some pass; judged by any agent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import adjudge
from adjudge.protocols.flight.generate import generate


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    paths = generate(tmp_path_factory.mktemp("flight"), seed=3, task="S1", force=True)
    return {"outputs": [str(path) for path in paths.outputs.values()], "reference": [str(paths.reference)]}


@pytest.fixture
def judged(files, tmp_path):
    """A run by some agent."""

    def run(agent, *, limit=40, name="run", gates=(), **settings):
        config = {"task": "S1", "resamples": 100, "agent": agent, **files, **settings}
        return adjudge.evaluate("flight", config, out=tmp_path / name, limit=limit, gates=gates, report=False)

    return run


@pytest.fixture(scope="session")
def judge_url():
    """The scripted judges."""
    program = Path(__file__).with_name("judge_server.py")
    server = subprocess.Popen(
        [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=program.parent
    )
    port = int(server.stdout.readline())
    yield f"http://127.0.0.1:{port}/v1"
    server.stdin.close()
    server.wait(10)
    server.stdout.close()


@pytest.fixture
def by_judge(judged, judge_url, tmp_path):
    """A run by one of the scripted judges."""

    def run(model, *, name="run", limit=40, gates=(), **options):
        asked = {"url": judge_url, "cache": str(tmp_path / "cache"), "retries": 1, **options}
        return judged(f"llm:{model}", name=name, limit=limit, gates=gates, agent_options=asked)

    return run
