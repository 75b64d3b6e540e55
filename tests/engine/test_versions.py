"""A run that another version made is never called altered: what holds holds, what cannot be recomputed is said."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.main import main
from adjudge.engine.verify import ENGINE_KEYS, verify
from adjudge.evidence.rule import Limits, Rule, RuleSet, Slot, rule_sets
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.base import Named, protocol
from adjudge.provenance.canonical import file_digest
from adjudge.stats.estimate import Estimate, share

OLD = Path(__file__).parent / "old_runs"
RUNS = sorted(path.parent for path in OLD.glob("*/*/manifest.json"))


def test_there_are_runs_of_an_older_version():
    assert {path.name for path in RUNS} == {"consistency", "flight", "score", "triage"}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_old_run_still_verifies(path):
    """What its protocol computes as before holds to the last number; what it computes otherwise is said, never a problem."""
    run = adjudge.load_run(path)
    result = verify(run)
    assert result.problems == []
    here, there = protocol(path.name).version, run.manifest.protocol_version
    if here == there:
        assert (result.not_recomputed, result.exit_code) == ([], 0)
    else:
        assert result.exit_code in {0, 3}
        assert (result.exit_code == 3) == bool(result.not_recomputed)
    if path.parent.name != version("adjudge"):
        assert result.made_by.startswith(f"adjudge {path.parent.name} (here ")
    else:
        assert result.made_by == (None if here == there else f"{path.name} {there} (here {here})")


def another_rule(context):
    return [
        *rule_sets("triage", ())[0].build(context),
        Rule(
            code="plausible.confidence",
            title="the confidence is not suspiciously round",
            scope=Scope.SAMPLE,
            slots=(Slot(None, 0),),
            passed="it is not",
            failed="it is {observed}",
            quantity=lambda batch: batch.confidence[None],
            limits=Limits(high=0.999),
        ),
    ]


@pytest.fixture
def grown(monkeypatch):
    """This version with one more metric and one more rule in triage, and a version of its own."""
    from adjudge.protocols.common import plan as module
    from adjudge.protocols.triage.plan import TriagePlan

    sets = [RuleSet("triage", "triage", another_rule)]
    monkeypatch.setattr(module, "rule_sets", lambda *_: sets)
    finish = TriagePlan.finish

    def more(self, partials):
        measured = finish(self, partials)
        measured.estimates.append(Named("a_new_metric", "", Estimate(value=1.0, n=1, method="counted")))
        measured.metrics["a_new_metric"] = 1.0
        return measured

    monkeypatch.setattr(TriagePlan, "finish", more)
    monkeypatch.setattr(protocol("triage"), "version", "99")


def test_an_old_run_verifies_after_a_metric_and_an_optional_rule_were_added(grown):
    path = next(path for path in RUNS if path.name == "triage")
    result = verify(adjudge.load_run(path))
    assert (result.problems, result.not_recomputed) == ([], [])
    assert "estimates[a_new_metric, ]" in result.added
    assert "triage 1 (here 99)" in result.made_by


def rewritten(path: Path, change) -> Path:
    """A copy of a run in which metrics.json was changed and every digest fits again."""
    metrics = json.loads((path / "metrics.json").read_text())
    change(metrics)
    (path / "metrics.json").write_text(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n")
    manifest = json.loads((path / "manifest.json").read_text())
    for entry in manifest["files"]:
        entry |= {"bytes": (path / entry["path"]).stat().st_size, "sha256": file_digest(path / entry["path"])}
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def raise_value(metrics):
    metrics["estimates"][0]["value"] = 0.123


def test_a_number_of_another_version_that_is_not_recomputed_is_listed_and_not_called_altered(tmp_path):
    run = shutil.copytree(next(path for path in RUNS if path.name == "triage"), tmp_path / "run")
    before = verify(adjudge.load_run(run)).not_recomputed
    name = json.loads((run / "metrics.json").read_text())["estimates"][0]["name"]
    result = verify(adjudge.load_run(rewritten(run, raise_value)))
    assert (result.problems, result.exit_code) == ([], 3)
    (what,) = (text for text in result.not_recomputed if text not in before)
    assert what.startswith(f"metrics.json: estimates[{name}, ")
    done = CliRunner().invoke(main, ["verify", str(run)], standalone_mode=False)
    assert done.return_value == 3
    assert "not all of it can be recomputed here" in done.stderr
    assert f"not recomputed: metrics.json: estimates[{name}" in done.stderr


def add_to_a_bucket(metrics):
    metrics["buckets"]["all"]["passed"] += 5


def test_broken_promises_do_not_hold_whatever_version_is_named(tmp_path):
    run = shutil.copytree(next(path for path in RUNS if path.name == "flight"), tmp_path / "run")
    rewritten(run, add_to_a_bucket)
    result = verify(adjudge.load_run(run))
    assert result.exit_code == 1
    assert result.problems == ["metrics.json: buckets of all add up to 65, but n is 60"]


def test_files_that_are_not_those_of_the_manifest_do_not_hold_whatever_version_is_named(tmp_path):
    run = shutil.copytree(next(path for path in RUNS if path.name == "flight"), tmp_path / "run")
    (run / "charts.json").write_text("[]")
    assert verify(adjudge.load_run(run)).problems == ["charts.json: its content is not the one in the manifest"]


def triage_metric(monkeypatch):
    """Triage with one more share; `configurations`, means over trials and a section repeat it."""
    from adjudge.protocols.triage import measure, metrics

    rates = metrics.rates
    more = metrics.Rate((metrics.TP,), (metrics.TP, metrics.TN), "nothing was right")
    monkeypatch.setattr(measure, "rates", lambda classes: {"positive_share": more, **rates(classes)})
    monkeypatch.setattr(metrics, "METRICS", (share("positive_share", headline=True), *metrics.METRICS))


def flight_metric(monkeypatch):
    """Flight with one more share of every model on every task."""
    from adjudge.protocols.flight import metrics

    measure = metrics.ModelNumbers.measure

    def more(self):
        self.estimates["ineligible_rate"] = self._rate(self._sum("n") - self._sum("eligible"), self._sum("n"))
        measure(self)

    monkeypatch.setattr(metrics.ModelNumbers, "measure", more)
    monkeypatch.setattr(metrics, "METRICS", (share("ineligible_rate", better="lower"), *metrics.METRICS))


NEW_METRICS = {"triage": triage_metric, "flight": flight_metric}


@pytest.fixture(params=["anomaly", "check", "consistency", "flight", "gui", "score", "stability", "triage"])
def run_before_a_metric(request, tmp_path, monkeypatch):
    """A run of these versions, and then one metric more in its protocol without another version of anything."""
    name, chosen = request.param, protocol(request.param)
    monkeypatch.chdir(tmp_path)
    run = adjudge.evaluate(name, {**chosen.example(tmp_path, 1), "resamples": 200}, out=tmp_path / "run")
    if name in NEW_METRICS:
        NEW_METRICS[name](monkeypatch)
        return run
    config = {key: value for key, value in run.manifest.config.items() if key not in ENGINE_KEYS}
    plan_type = type(chosen.plan(config))
    finish = plan_type.finish

    def more(self, partials):
        measured = finish(self, partials)
        measured.estimates.insert(0, Named("a_new_metric", "", Estimate(value=1.0, n=1, method="counted")))
        measured.metrics["a_new_metric"] = 1.0
        measured.notes.append("it is new")
        measured.charts.append({"name": "new"})
        measured.sections = [
            replace(one, columns=["new", *one.columns], rows=[[1.0, *row] for row in one.rows])
            for one in measured.sections
        ]
        return measured

    monkeypatch.setattr(plan_type, "finish", more)
    return run


def test_a_run_verifies_after_a_metric_was_added_to_its_version(run_before_a_metric):
    result = verify(run_before_a_metric)
    assert (result.problems, result.not_recomputed, result.made_by, result.exit_code) == ([], [], None, 0)
    assert any(path.startswith("estimates[") for path in result.added)


@pytest.mark.parametrize("run_before_a_metric", sorted(NEW_METRICS), indirect=True)
def test_beside_a_new_metric_every_other_number_is_held_to_the_tables(run_before_a_metric):
    run = rewritten(run_before_a_metric.path, raise_value)
    assert any("estimates[" in text for text in verify(adjudge.load_run(run)).problems)


def test_a_metric_that_the_run_declares_and_has_not_is_a_problem(tmp_path):
    run = adjudge.evaluate("triage", protocol("triage").example(tmp_path, 1), out=tmp_path / "run")

    def without_accuracy(metrics):
        metrics["estimates"] = [item for item in metrics["estimates"] if item["name"] != "accuracy"]

    assert any("accuracy" in text for text in verify(adjudge.load_run(rewritten(run.path, without_accuracy))).problems)
