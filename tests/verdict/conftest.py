"""Flight data of which some answers fail, some only warn and some pass; judged by any agent."""

from __future__ import annotations

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
