"""What `collect` writes can be compared: tools against no tools, latencies only where no cache answered."""

import json

import pytest

SUBJECT = """
import random

def answer(request):
    draw = random.Random(f"{request['id']} {request['trial']}")
    # Tools halve the noise; everything else is the same in both modes.
    seen = request["sample"]["trace"] + draw.gauss(0.0, 0.5 if request["use_tools"] else 1.0)
    verdict = "uncertain" if abs(seen) < 0.1 else "fake" if seen > 0 else "real"
    return {"prediction": verdict, "confidence": 0.8, "cache": {"hit": False}}
"""


@pytest.fixture
def run_of(tmp_path, write_lines, command_line):
    """Collect with these modes and judge; returns the run directory."""
    (tmp_path / "mine.py").write_text(SUBJECT)
    rows = [
        {
            "id": f"s{n:03d}",
            "trace": (1.0 if n % 2 else -1.0) * (0.2 + 0.013 * (37 * n % 100)),
            "label": ("real", "fake")[n % 2],
        }
        for n in range(120)
    ]
    write_lines(tmp_path / "data.jsonl", rows)

    def make(name, modes, *more):
        command_line(
            *("collect", "--dataset", "data.jsonl", "--subject", "hawk=python:mine:answer", "--modes", modes),
            *("--trials", 2, "--seed", 1, "--prompt", "triage", "--output", f"{name}.jsonl", *more),
        )
        command_line(
            *("triage", "--results", f"{name}.jsonl", "--manifest", "data.jsonl", "--out", name),
            *("--no-report", "--quiet"),
        )
        return name

    return make


def test_two_runs_one_for_each_mode(run_of, command_line):
    plain, tools = run_of("plain", "no-tools"), run_of("tools", "tools")
    said = " ".join(command_line("compare", plain, tools, "--factor", "tools").stderr.split())
    assert said.startswith("COMPARABLE · triage hawk|tools against hawk|no-tools, on 120 samples × 2 trials: ")
    assert "metrics (fake catch rate +" in said
    assert "latency_seconds" in said
    assert "latency is not comparable" not in said
    refused = command_line("compare", plain, tools, "--factor", "model", code=3).stderr
    assert "tools varies too (False, True), but only model was to vary" in refused


def test_latency_is_refused_where_one_side_was_cached(run_of, command_line):
    run_of("first", "no-tools", "--cache", "cache")
    cached, fresh = run_of("cached", "no-tools", "--cache", "cache"), run_of("fresh", "tools")
    said = " ".join(command_line("compare", cached, fresh, "--factor", "tools").stderr.split())
    assert "metrics (fake catch rate +" in said
    assert "latency is not comparable: hawk|no-tools was cached, hawk|tools was not cached." in said
    assert "latency_seconds" not in said
    alone = command_line("compare", cached, fresh, "--metric", "latency_seconds", code=3).stderr
    assert "latency is not comparable: hawk|no-tools was cached" in alone
    found = json.loads(command_line("compare", cached, fresh, "--json").stdout)["pairs"][0]
    assert found["latency"] == {
        "compared": False,
        "why": "hawk|no-tools was cached, hawk|tools was not cached",
        "cache": ["hit", "miss"],
    }


def test_both_modes_in_one_run(run_of, command_line):
    both = run_of("both", "tools,no-tools")
    (pair,) = json.loads(command_line("compare", both, "--factor", "tools", "--json").stdout)["pairs"]
    assert (pair["a"], pair["b"]) == ("hawk|no-tools", "hawk|tools")
    assert {metric["name"]: metric["verdict"] for metric in pair["metrics"]}["accuracy"] == "better"


def test_a_prompt_that_is_another_in_each_mode_is_a_second_factor(run_of, command_line, tmp_path):
    (tmp_path / "mine.j2").write_text("{% if use_tools %}Measure, then judge.{% else %}Judge.{% endif %}")
    both = run_of("both", "tools,no-tools", "--prompt", "mine.j2")
    refused = command_line("compare", both, "--factor", "tools", code=3).stderr
    assert "prompt varies too" in refused
