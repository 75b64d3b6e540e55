"""`adjudge.compare` is the function, whatever was imported before and after."""

from __future__ import annotations

import subprocess
import sys

import pytest

import adjudge


def test_the_function_is_not_hidden_by_the_room_of_its_name():
    code = "import adjudge.comparisons.guard; import adjudge; from adjudge.comparisons.flips import flips; adjudge.compare('x', 'y')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        done.stderr.splitlines()[-1]
        == "adjudge.errors.RunError: x is not a run: there is no such folder, and no such log"
    )


def test_it_compares_and_refuses(make_run, pairs):
    first, second = pairs(30, 2, 20, 8)
    a, b = make_run("a", {"old": first}), make_run("b", {"new": second})
    assert adjudge.compare(a, b).pairs[0].verdict == "better"
    assert adjudge.compare(a.path, str(b.path), metrics=["pass_rate"]).tests == 1
    with pytest.raises(adjudge.NotComparable, match="different versions"):
        adjudge.compare(a, make_run("c", {"new": second}, version="2"))
