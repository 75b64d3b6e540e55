"""The command line as a user meets it: another process, its two streams and its exit code."""

import subprocess
import sys

import pytest

from adjudge.protocols.flight.generate import generate


@pytest.fixture(scope="session")
def adjudge_cli():
    def call(*words, cwd=None, stdin=None):
        return subprocess.run(
            [sys.executable, "-c", "from adjudge.cli.main import run; run()", *map(str, words)],
            capture_output=True,
            text=True,
            cwd=cwd,
            input=stdin,
            check=False,
            timeout=120,
        )

    return call


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("cli"), seed=1, task="S1", flights=3, seconds=8)


@pytest.fixture(scope="session")
def flags(data):
    """The flags of a whole evaluation."""
    return ["--task", "S1", "--outputs", *map(str, data.outputs.values()), "--reference", str(data.reference)]


@pytest.fixture(scope="session")
def run(adjudge_cli, flags, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    done = adjudge_cli("flight", *flags, "--out", out)
    assert done.returncode == 0, done.stderr
    return out
