"""All 40 figures of the authors' metrics file, from their records."""

from __future__ import annotations

import json

import pytest

import adjudge

pytestmark = pytest.mark.realdata

# Where ours deliberately differ: nothing was answered real, so the precision of real does not exist.
OURS = {"precision_real": None, "precision_real_answered": None}
# Over one trial a standard deviation does not exist.
NO_DEVIATION = None


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "triage_df3"


@pytest.fixture(scope="module")
def theirs(folder):
    return json.loads((folder / "gpt52_visiononly.metrics.json").read_text())["gpt-5.2|no-tools"]


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    results = str(folder / "gpt52_visiononly.jsonl")
    return adjudge.evaluate(
        "triage", {"results": [results], "resamples": 200}, out=tmp_path_factory.mktemp("df3") / "run", report=False
    )


def test_every_figure_of_the_trial(run, theirs):
    ours = run.metrics["configurations"]["gpt-5.2|no-tools"]["per_trial"]["0"]
    figures = theirs["per_trial"]["0"]
    assert len(figures) == 40
    assert {name: ours[name] for name in figures} == {**figures, **OURS}


def test_the_summary(run, theirs):
    ours = run.metrics["configurations"]["gpt-5.2|no-tools"]["summary"]
    means = theirs["summary"]["mean"]
    assert {name: ours["mean"][name] for name in means} == {**means, "precision_real": None}
    assert set(theirs["summary"]["std"].values()) == {0.0}
    assert {ours["std"][name] for name in theirs["summary"]["std"]} == {NO_DEVIATION}


def test_latency_is_not_comparable_and_possibly_cached(run):
    latency = run.metrics["configurations"]["gpt-5.2|no-tools"]["latency"]
    assert latency["comparable"] is False
    assert latency["possibly_cached"] == 500
    assert list(latency["by_cache"]) == ["unknown"]


def test_without_use_tools_nothing_changes(run, folder, tmp_path):
    lines = (folder / "gpt52_visiononly.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    path = tmp_path / "gpt52_visiononly.jsonl"
    path.write_text("".join(json.dumps({k: v for k, v in r.items() if k != "use_tools"}) + "\n" for r in records))
    again = adjudge.evaluate("triage", {"results": [str(path)], "resamples": 200}, out=tmp_path / "run", report=False)
    assert (again.path / "metrics.json").read_bytes() == (run.path / "metrics.json").read_bytes()


def test_the_run_holds(run):
    adjudge.verify(run)
