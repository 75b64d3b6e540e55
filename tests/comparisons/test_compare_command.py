"""`adjudge compare` from the outside: exit codes, JSON, text, and the cases that must come out right."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from adjudge.cli.main import run; run()", "compare"]


@pytest.fixture
def adjudge(tmp_path):
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
        )

    return call


@pytest.fixture
def discordant(make_run, pairs):
    def build(only_a: int, only_b: int) -> None:
        first, second = pairs(100, only_a, only_b, 100)
        make_run("a", {"old": first})
        make_run("b", {"new": second})

    return build


def test_600_against_600_has_p_1(adjudge, discordant):
    discordant(600, 600)
    done = adjudge("a", "b", "--json")
    (found,) = json.loads(done.stdout)["pairs"][0]["metrics"]
    assert (done.returncode, done.stderr) == (0, "")
    assert (found["p"], found["log10_p"], found["difference"]["value"]) == (1.0, 0.0, 0.0)


def test_2000_against_100_is_reported_through_its_logarithm(adjudge, discordant):
    discordant(2000, 100)
    (found,) = json.loads(adjudge("a", "b", "--json", "--evidence", "0").stdout)["pairs"][0]["metrics"]
    exact = math.log10(2 * sum(math.comb(2100, k) for k in range(101))) - 2100 * math.log10(2)
    assert found["log10_p"] == pytest.approx(exact, abs=1e-9)
    assert found["log10_p"] == pytest.approx(-458.628, abs=5e-4)
    assert 0.0 < found["p"] < 1e-300
    assert found["verdict"] == "worse"
    shown = adjudge("a", "b", "--evidence", "0")
    assert "log10 p = -458.628" in shown.stderr
    assert "p = 2.4e-459" in " ".join(shown.stderr.split())
    assert shown.stdout == ""


def test_identical_runs_are_equivalent_and_nothing_flipped(adjudge, make_run):
    for name in ("a", "b"):
        make_run(name, {"m": [True, False, True]})
    done = adjudge("a", "b")
    assert done.returncode == 0
    assert "the two are equivalent" in done.stderr
    assert "Nothing flipped" in done.stderr


def test_different_data_exits_3_with_reasons_and_no_number(adjudge, make_run, tmp_path):
    make_run("a", {"old": [True] * 5}, ids=list("abcde"))
    make_run("b", {"new": [False] * 5}, ids=list("vwxyz"), version="2")
    done = adjudge("a", "b", "-o", "out.json")
    assert done.returncode == 3
    assert done.stdout == ""
    versions = "old and new were judged by different versions of quiz: 1 and 2"
    data = "old and new share no sample: they were judged on different data"
    assert done.stderr.splitlines() == ["NOT_COMPARABLE", f"adjudge: not comparable: {versions}; {data}"]
    as_json = adjudge("a", "b", "--json")
    assert as_json.returncode == 3
    found = json.loads(as_json.stdout)
    assert found == json.loads((tmp_path / "out.json").read_text())
    assert (found["status"], len(found["reasons"]), found["pairs"]) == ("NOT_COMPARABLE", 2, [])


def test_force_is_recorded_in_the_file(adjudge, make_run, tmp_path):
    make_run("a", {"old": [True] * 5})
    make_run("b", {"new": [False] * 5}, version="2")
    done = adjudge("a", "b", "--force", "-o", "out.json")
    found = json.loads((tmp_path / "out.json").read_text())
    assert (done.returncode, found["status"], found["forced"]) == (0, "NOT_COMPARABLE", True)
    assert "forced although not comparable" in " ".join(done.stderr.split())


def test_worse_exits_1_only_when_asked(adjudge, discordant):
    discordant(60, 10)
    assert adjudge("a", "b").returncode == 0
    assert adjudge("a", "b", "--fail-on-worse").returncode == 1
    assert adjudge("b", "a", "--fail-on-worse").returncode == 0


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["a"], "nothing to compare old of a with"),
        (["a", "nowhere"], "nowhere is not a run: there is no such folder"),
        (["a", "b", "--metric", "speed"], "there is no metric 'speed' to compare; these runs have pass_rate"),
        (["a", "b", "--margin", "small"], "--margin 'small' is not of the form X or METRIC=X"),
        (["a", "b", "--margin", "speed=2"], "a margin is given for 'speed', which is not compared"),
        (["a", "b", "--alpha", "2"], "alpha is 2.0"),
        (["a", "b", "--seed", "-1"], "seed is -1"),
        (["a", "b", "--model-b", "old"], "has no model 'old'; it has new"),
        (["a", "b", "-o", "no/such/folder.json"], "folder.json: cannot be written"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(adjudge, discordant, arguments, said):
    discordant(5, 3)
    done = adjudge(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_flight_models_through_the_engine(adjudge, tmp_path):
    from adjudge.engine.evaluate import Options, evaluate
    from adjudge.protocols.base import protocol
    from adjudge.protocols.flight.generate import generate

    flight = protocol("flight")
    paths = generate(tmp_path / "example", seed=0, task="S1")
    config = {
        "task": "S1",
        "outputs": sorted(str(path) for path in paths.outputs.values()),
        "reference": [str(tmp_path / "example" / "reference.jsonl")],
    }
    whole = evaluate(flight, config, Options(out=tmp_path / "whole"))
    half = evaluate(flight, {**config, "outputs": config["outputs"][:1]}, Options(out=tmp_path / "half"))
    models = sorted({Path(name).stem.removeprefix("outputs_") for name in config["outputs"]})
    done = adjudge("half", f"whole::{models[1]}", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["status"]) == (0, "COMPARABLE")
    assert [metric["name"] for metric in found["pairs"][0]["metrics"]] == [
        "eligibility_rate",
        "total_score_all",
        "error_score",
    ]
    recorded = json.loads((whole / "metrics.json").read_text())["comparison"]["pairs"][0]
    assert (recorded["a"], recorded["b"]) == tuple(models[:2])
    counted = found["pairs"][0]["metrics"][0]["discordant"]
    assert (counted["only_a"], counted["only_b"]) == (recorded["eligible_only_a"], recorded["eligible_only_b"])
    total = found["pairs"][0]["metrics"][1]["difference"]["value"]
    assert total == pytest.approx(-recorded["total_difference_all"]["value"])
    assert all(flip["evidence"] for flip in found["pairs"][0]["flipped"]["samples"])
    assert half.is_dir()
