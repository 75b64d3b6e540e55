"""The example is a collection: every record as `adjudge collect` writes it, the same bytes each time, one factor varied."""

from __future__ import annotations

import json
from statistics import median

import pytest

import adjudge
from adjudge.protocols.triage.example import CACHED, CALIBRATION, SAMPLES, TRIALS, generate


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("example"), seed=5)


@pytest.fixture(scope="module")
def records(paths):
    return [json.loads(line) for path in paths.results for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_question_is_one_record(records, paths):
    keys = [(r["id"], r["model"], r["use_tools"], r["trial"]) for r in records]
    assert len(keys) == len(set(keys)) == 2 * 2 * TRIALS * SAMPLES
    ids = {json.loads(line)["id"] for line in paths.manifest.read_text(encoding="utf-8").splitlines()}
    assert {key[0] for key in keys} == ids
    assert len(paths.calibration.read_text(encoding="utf-8").splitlines()) == 2 * 2 * CALIBRATION


def test_records_say_which_subject_answered_and_under_which_clock(records):
    subjects = {(r["model"], r["run_config"]["subject"], r["run_config"]["clock"]) for r in records}
    assert subjects == {
        ("hawk-1", "python:adjudge.protocols.triage.subject:hawk_1", "simulated"),
        ("wren-mini", "python:adjudge.protocols.triage.subject:wren_mini", "simulated"),
    }
    assert {r["error_type"] for r in records} == {None, "timeout", "refused"}
    assert {r["parse"]["method"] for r in records if r["error"] is None} == {"whole"}


def test_the_modes_differ_in_what_is_said_of_tools_and_in_nothing_else(records):
    prompts = {
        mode: {json.dumps(r["prompt_hashes"]) for r in records if r["use_tools"] is mode} for mode in (True, False)
    }
    (with_tools,), (without,) = (map(json.loads, prompts[mode]) for mode in (True, False))
    assert with_tools.pop("tools")
    assert with_tools == without
    assert not any(r["tool_details"] for r in records if not r["use_tools"])
    for key in ("temperature", "seed", "subject_sha256", "prompt_sha256", "dataset_sha256"):
        assert len({(r["model"], r["run_config"][key]) for r in records}) == 2


def test_latencies_are_those_of_models_that_take_seconds(records):
    def middle(model, *, tools):
        return median(
            r["latency_seconds"]
            for r in records
            if (r["model"], r["use_tools"], r["cache"]["hit"], r["error"]) == (model, tools, False, None)
        )

    assert 4 < middle("hawk-1", tools=False) < 6
    assert 8 < middle("hawk-1", tools=True) < 12
    assert 1 < middle("wren-mini", tools=False) < 3
    assert all(r["latency_seconds"] is None for r in records if r["error"] is not None)
    for record in (r for r in records if r["error"] is None and not r["cache"]["hit"]):
        spent = sum(value for name, value in record["timings"].items() if name != "total_seconds")
        spent += sum(tool["seconds"] for tool in record["tool_details"])
        assert spent == pytest.approx(record["latency_seconds"], abs=0.01)


def test_only_part_of_the_small_model_came_from_the_cache(records):
    hits = [r for r in records if r["cache"]["hit"]]
    assert {(r["model"], r["use_tools"]) for r in hits} == {("wren-mini", False)}
    assert 0.9 * CACHED * TRIALS < len(hits) <= CACHED * TRIALS
    assert max(r["latency_seconds"] for r in hits) < 0.01 < min(r["cache"]["recorded"]["latency_seconds"] for r in hits)


def test_a_mode_in_a_run_of_its_own_is_compared_as_in_the_whole(paths, records, tmp_path):
    """Two runs, one for each mode, give what `--factor tools` gives on one."""
    runs = []
    for name, tools in (("plain", False), ("tools", True)):
        chosen = [r for r in records if r["model"] == "hawk-1" and r["use_tools"] is tools]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(r) + "\n" for r in chosen), encoding="utf-8")
        config = {"results": [[str(path)]], "manifest": [str(paths.manifest)], "resamples": 100}
        runs.append(adjudge.evaluate("triage", config, out=tmp_path / name, report=False))
    config = {"results": [[str(paths.results[0])]], "manifest": [str(paths.manifest)], "resamples": 100}
    both = adjudge.evaluate("triage", config, out=tmp_path / "both", report=False)
    apart = adjudge.compare(runs[0].path, runs[1].path, factor="tools")
    together = adjudge.compare(both.path, factor="tools")
    assert apart.status == "COMPARABLE"
    assert apart.pairs == together.pairs
    again = adjudge.evaluate("triage", config, out=tmp_path / "again", report=False)
    (same,) = adjudge.compare(both.path, again.path, model="hawk-1|tools").pairs
    assert same.identical
    assert {metric.verdict for metric in same.metrics} == {"equivalent"}
    assert (same.flipped.lost, same.flipped.gained) == (0, 0)
