"""Without the `fast` extra everything works on large files too, and gives the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from adjudge.protocols.base import protocol

PROGRAM = """
import json
import sys
loops, name, config, out = sys.argv[1:]
if loops == "without":
    sys.modules.update(numba=None, llvmlite=None)
from adjudge.loops import available
assert available() == (loops == "with")
from adjudge.readers import scan
scan.WORTH_IT = 0  # as if the files were large
import adjudge
adjudge.evaluate(name, json.loads(config), out=out, report=False)
"""


@pytest.mark.parametrize("name", ["flight", "gui", "triage", "consistency", "anomaly"])
def test_a_run_is_the_same_without_compiled_loops(tmp_path, name):
    config = protocol(name).example(tmp_path / "example", 3)
    found = {}
    for loops in ("with", "without"):
        out = tmp_path / loops
        words = [sys.executable, "-c", PROGRAM, loops, name, json.dumps(config), str(out)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        paths = sorted(path for path in out.rglob("*") if path.is_file() and path.name != "manifest.json")
        found[loops] = {str(path.relative_to(out)): path.read_bytes() for path in paths}
    assert len(found["with"]) > 3
    assert found["with"] == found["without"]
