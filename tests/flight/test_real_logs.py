"""Two real recordings of one flight: tasks, baselines, and the true next state fed back as an answer."""

import json
from pathlib import Path

import pytest

import adjudge
from adjudge.protocols.flight.baselines import predict
from adjudge.protocols.flight.config import DEFAULT, load
from adjudge.protocols.flight.fields import AIRSPEED
from adjudge.protocols.flight.make_tasks import make_tasks

pytestmark = pytest.mark.realdata
LOGS = {"log_20260327_152821_KOAK.csv": (260, 795, 1, 5), "log_20260327_152822_KOAK.csv": (262, 796, 0, 4)}


@pytest.mark.parametrize("name", LOGS)
def test_the_true_next_state_is_eligible_but_for_slow_seconds(shared_data, tmp_path, name, write_lines):
    recorded, no_track, gaps, slow = LOGS[name]
    counts = make_tasks([shared_data / "flight_g3x" / name], "S1", tmp_path / "tasks")
    (log,) = counts.logs
    assert log.recorded == recorded
    assert log.left_out.get("blank GPS Ground Track (deg true)") == no_track
    assert log.left_out.get("gap of 2 s", 0) == gaps
    assert log.tasks + sum(log.left_out.values()) == log.windows
    golds = [json.loads(line) for line in Path(counts.reference_path).read_text(encoding="utf-8").splitlines()]
    rows = [{"id": row["id"], "model": "truth", "response": json.dumps(row["next_second"])} for row in golds]
    outputs = write_lines(tmp_path / "truth.jsonl", rows)
    config = {"task": "S1", "outputs": [outputs], "reference": [str(counts.reference_path)]}
    run = adjudge.evaluate("flight", config, report=False, out=tmp_path / "run")
    assert sum(row["next_second"][AIRSPEED] < 30 for row in golds) == slow
    assert run.metrics["buckets"]["truth"]["failed"] == slow
    rules = run.metrics["model_profiles"][0]["failure_modes"]["by_rule"]
    critical = {
        atom["rule"]
        for record in run.records()
        for atom in record["evidence_pack"]["atoms"]
        if atom["pass"] is False and atom["severity"] == "CRITICAL"
    }
    assert critical == {"safety_constraint.extreme_speed"}
    assert rules["safety_constraint.extreme_speed"] == slow
    library = load(DEFAULT).content
    library["airborne_only"]["enabled"] = True
    spared = adjudge.evaluate("flight", {**config, "library": library}, report=False, out=tmp_path / "spared")
    assert spared.metrics["buckets"]["truth"]["passed"] == len(golds)


@pytest.mark.parametrize("task", ["S1", "M1", "M3"])
def test_baselines_run_on_real_tasks_and_kinematic_beats_persistence(shared_data, tmp_path, task):
    counts = make_tasks(sorted((shared_data / "flight_g3x").glob("*.csv")), task, tmp_path / "tasks")
    outputs = []
    for baseline in ("persistence", "linear", "kinematic"):
        outputs.append(str(tmp_path / f"{baseline}.jsonl"))
        assert predict(counts.tasks_path, baseline, outputs[-1]) == counts.tasks
    run = adjudge.evaluate(
        "flight", {"task": task, "outputs": outputs, "reference": [str(counts.reference_path)]}, out=tmp_path / "run"
    )
    estimates = run.estimates
    mae = {name: estimates["mae", f"model=baseline/{name}"].value for name in ("persistence", "linear", "kinematic")}
    assert mae["kinematic"] < mae["persistence"]
    assert mae["linear"] < mae["persistence"]
    assert estimates["skill_vs_persistence", "model=baseline/persistence"].value == pytest.approx(0.0, abs=1e-9)
    adjudge.verify(run)
