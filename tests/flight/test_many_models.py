"""Many models: time and memory grow with their number, not with its square, and the page folds what nobody can read."""

import json
from pathlib import Path

import pytest

import adjudge
from adjudge.protocols.base import protocol
from adjudge.protocols.flight import finish
from adjudge.protocols.flight.partials import MOST_COMPARED
from adjudge.report import data


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    config = protocol("flight").example(folder / "data", 1)
    records = [json.loads(line) for line in Path(config["outputs"][0]).read_text().splitlines()[:1]]
    ids = {record["id"] for record in records}
    lines = [{**record, "model": f"m{number:03d}"} for number in range(data.MODELS + 10) for record in records]
    (folder / "outputs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    reference = [
        line for line in Path(config["reference"][0]).read_text().splitlines() if json.loads(line)["id"] in ids
    ]
    (folder / "reference.jsonl").write_text("\n".join(reference) + "\n")
    files = {"outputs": [str(folder / "outputs.jsonl")], "reference": [str(folder / "reference.jsonl")]}
    return adjudge.evaluate("flight", {"task": "S1", "resamples": 100, **files}, out=folder / "run", report=False)


def test_more_models_than_anybody_compares_are_a_note_and_no_pairs(run):
    assert "comparison" not in run.metrics or run.metrics["comparison"] is None
    note = f"{data.MODELS + 10} models are not compared in pairs; at most {MOST_COMPARED} are"
    assert any(note in text for text in run.metrics["notes"])
    assert len(run.metrics["buckets"]) == data.MODELS + 11
    assert adjudge.verify(run.path).problems == []


def test_more_models_than_have_a_profile_are_a_note_and_every_one_has_its_estimates(run, monkeypatch, tmp_path):
    monkeypatch.setattr(finish, "MOST_DETAILED", 7)
    names = ("task", "outputs", "reference", "resamples")
    config = {name: run.manifest.config[name] for name in names}
    short = adjudge.evaluate("flight", config, out=tmp_path / "run", report=False)
    models = len(run.metrics["buckets"]) - 1
    assert len(short.metrics["model_profiles"]) == len(short.metrics["task_summary"]["models"]) == 7
    assert any(f"show the first 7 of {models} models by name" in note for note in short.metrics["notes"])
    values = [[(e["name"], e["slice"], e["value"]) for e in one.metrics["estimates"]] for one in (run, short)]
    assert values[0] == values[1]
    assert short.metrics["task_summary"]["all"] == run.metrics["task_summary"]["all"]
    for profile, whole in zip(short.metrics["model_profiles"], run.metrics["model_profiles"], strict=False):
        assert profile == whole
    assert adjudge.verify(short.path).problems == []


def test_the_page_folds_the_models_that_nobody_reads(run):
    block = data.data_block(run)[0]
    assert len(block["buckets"]["rows"]) == data.MODELS + 1
    assert block["buckets"]["folded"] == 10
    assert {len(column["cells"]) for column in block["headline"]["columns"]} == {data.MODELS}
