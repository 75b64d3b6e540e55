"""kill -9 at many moments of an evaluation: the old run stays, or none, or the new one is whole, and the next run works.

ADJUDGE_KILLS says at how many moments; `make fuzz` takes 60.
"""

import json
import os
import random
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

import adjudge

OLD, NEW = 2, 3
KILLS = int(os.environ.get("ADJUDGE_KILLS", "12"))
PATIENCE = 5.0  # seconds after which no worker of a killed process may be left
CODE = """
import json, sys, adjudge
print("go", flush=True)
adjudge.evaluate("flight", json.loads(sys.argv[1]), out=sys.argv[2], limit=3, force=True, workers=int(sys.argv[3]))
"""


def left_over(mark):
    """Processes that still have a mark in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in place.read_bytes():
                found.append(place.parent.name)
        except OSError:  # ended meanwhile, or somebody else's
            continue
    return found


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_random_moments(config, tmp_path, state, workers):
    out = tmp_path / "runs" / "run"
    adjudge.evaluate("flight", config, out=out, limit=OLD, report=False)
    words = [sys.executable, "-c", CODE, json.dumps(config), out, str(workers)]
    began = time.monotonic()
    subprocess.run(words, check=True, capture_output=True)
    lasts = time.monotonic() - began
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    moments, seen = random.Random(7), []  # noqa: S311 -- of a test
    for _ in range(KILLS):
        mark = uuid.uuid4().hex
        environment = {**os.environ, "ADJUDGE_MARK": mark, "TMPDIR": str(temporary)}
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        process.stdout.readline()
        time.sleep(moments.uniform(0, lasts))
        process.kill()
        process.communicate()
        until = time.monotonic() + PATIENCE
        while (orphans := left_over(mark)) and time.monotonic() < until:
            time.sleep(0.05)
        assert [Path("/proc", number, "cmdline").read_bytes() for number in orphans] == []
        seen.append(state(out))
        if seen[-1] is None:  # killed between two renames: the next run of any name puts it back
            adjudge.evaluate("flight", config, out=out.parent / "other", limit=1, report=False, force=True)
            assert state(out) in {OLD, NEW}
        adjudge.evaluate("flight", config, out=out, limit=OLD, report=False, force=True)
        assert [path.name for path in out.parent.iterdir() if path.name != "other"] == ["run"]
    assert set(seen) <= {OLD, NEW, None}
    # One may be left: for a millisecond there is a folder, and not yet the process that removes it.
    assert len(list(temporary.iterdir())) <= 1


@pytest.mark.parametrize("call", ["settle-before", "settle-between", "settle-after", "add-between"])
def test_killed_at_every_step_of_the_commit(config, tmp_path, state, call):
    """The moments that chance would hardly meet: before, between and after the renames that put a run in its place."""
    out = tmp_path / "run"
    adjudge.evaluate("flight", config, out=out, limit=OLD, report=False)
    number = {"settle-before": 1, "settle-between": 2, "settle-after": 3, "add-between": 5}[call]
    die = (
        "import os, signal\n"
        "real, other, calls = os.rename, os.replace, []\n"
        "def rename(*a, real=real, **k):\n"
        "    if '.adjudge' in str(a[0]) + str(a[1]) and '.growing' not in str(a[0]):\n"
        "        calls.append(a)\n"
        f"        if len(calls) == {number}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return real(*a, **k)\n"
        "os.rename, os.replace = rename, lambda *a: rename(*a, real=other)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", die + CODE, json.dumps(config), out, "1"], capture_output=True, check=False
    )
    assert done.returncode == -9, done.stderr
    assert (out.exists(), call) == (call != "settle-between", call)
    adjudge.evaluate("flight", config, out=tmp_path / "other", limit=1, report=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "run"]
    assert state(out) == (OLD if call in {"settle-before", "settle-between"} else NEW)
    assert (out / "report.html").exists() == (call == "add-between")
