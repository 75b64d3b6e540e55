"""Units, ranges and directions come from declarations: those of the run, else those of the protocol, else none."""

import json

import pytest

import adjudge
from adjudge.comparisons.baseline import baseline_of
from adjudge.engine.metrics import metrics_of
from adjudge.protocols.base import names, protocol
from adjudge.report import eee, view
from adjudge.runs.run import Run
from adjudge.stats.estimate import declaration, headline

OURS = [name for name in names() if protocol(name).package.startswith("adjudge.")]


@pytest.mark.parametrize("name", OURS)
def test_every_estimate_of_the_demo_is_declared_and_within_its_range(demo, name):
    if name not in demo:
        pytest.skip(f"{name} has no example")
    run = demo[name]
    for (metric, where), item in run.estimates.items():
        declared = declaration(metrics_of(protocol(name)), metric)
        assert declared is not None, metric
        assert run.metric(metric).to_dict() == declared.to_dict()
        for end in (item.value, item.low, item.high):
            assert end is None or declared.low is None or end >= declared.low - 1e-12, (metric, where, item)
            assert end is None or declared.high is None or end <= declared.high + 1e-12, (metric, where, item)


@pytest.mark.parametrize("name", OURS)
def test_every_declaration_explains_itself(name):
    metrics = protocol(name).metrics()
    assert metrics
    assert len({metric.name for metric in metrics}) == len(metrics)
    for metric in metrics:
        assert metric.formula, metric.name
        assert metric.interval, metric.name


@pytest.mark.parametrize("name", OURS)
def test_headlines_are_the_declared_ones(demo, name):
    if name not in demo:
        pytest.skip(f"{name} has no example")
    run = demo[name]
    assert run.metrics["headline"] == headline(protocol(name).metrics(), [key for key, _ in run.estimates])
    assert view.headline(run).names


def without_declarations(run: Run, folder) -> Run:
    """A copy of a run as older versions left it."""
    folder.mkdir()
    for path in run.path.iterdir():
        (folder / path.name).symlink_to(path)
    metrics = json.loads((run.path / "metrics.json").read_text(encoding="utf-8"))
    del metrics["declared"]
    (folder / "metrics.json").unlink()
    (folder / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    return folder


def test_a_run_without_declarations_is_read_by_the_installed_protocol(demo, tmp_path):
    run = demo["flight"]
    older = without_declarations(run, tmp_path / "older")
    for name, _ in run.estimates:
        assert adjudge.load_run(older).metric(name).to_dict() == run.metric(name).to_dict()


def test_without_any_declaration_nothing_is_guessed(demo, tmp_path):
    unknown = Run(without_declarations(demo["flight"], tmp_path / "unknown"))  # no protocol behind it
    rate = unknown.metric("eligibility_rate")
    assert (rate.title, rate.unit, rate.low, rate.high, rate.better) == ("eligibility rate", "", None, None, None)
    headline_ = view.headline(unknown)
    assert "%" not in headline_.text(headline_.slices[0], "eligibility_rate")
    assert {entry.better for entry in baseline_of(unknown).estimates} == {"same"}
    config = eee.aggregate(unknown, "falcon-a", {})["evaluation_results"][0]["metric_config"]
    assert (config["min_score"], config["max_score"]) == ("-Infinity", "Infinity")


def test_a_declaration_that_makes_no_sense_is_an_error_that_names_it(demo, tmp_path):
    folder = without_declarations(demo["flight"], tmp_path / "wrong")
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    metrics["declared"] = {"eligibility_rate": {"better": "up"}}
    (folder / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    with pytest.raises(adjudge.RunError, match="eligibility_rate"):
        adjudge.load_run(folder).metric("eligibility_rate")
