"""The tables beside the estimates: what is computed is shown, in terminal, page, Markdown and LaTeX."""

from __future__ import annotations

import pytest

import adjudge
from adjudge.protocols.base import protocol
from adjudge.report.latex import latex
from adjudge.report.markdown import markdown
from adjudge.report.text import summary
from adjudge.stats.proportions import quantile_values, wilson


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sections")
    config = protocol("triage").example(folder / "example", 0)
    return adjudge.evaluate(
        "triage", {**config, "prevalence": 0.01, "resamples": 200}, out=folder / "run", report=False
    )


@pytest.fixture(scope="module")
def tables(run):
    """The sections by name, each as rows by column title; a second column of one title is dropped."""
    return {
        section["name"]: [
            dict(reversed(list(zip([column["title"] for column in section["columns"]], row, strict=True))))
            for row in section["rows"]
        ]
        for section in run.metrics["sections"]
    }


def blocks(run):
    return run.metrics["configurations"]


def test_the_operating_point_says_what_it_guarantees_and_what_it_changes(run, tables):
    for row in tables["operating_point"]:
        trials = list(blocks(run)[row["configuration"]]["per_trial"].values())
        points = [values["operating_point"] for values in trials]
        chosen = run.manifest.config["operating"][row["configuration"]]
        assert row["threshold"] == chosen["threshold"]
        if chosen["threshold"] is None:
            assert row["what changes"] == chosen["why"]
            continue
        assert row["risk, at most"] == chosen["bound"] <= 0.15
        assert row["error"] == pytest.approx(sum(point["error_answered"]["value"] for point in points) / 3)
        assert row["coverage"] == pytest.approx(sum(point["coverage"]["value"] for point in points) / 3)
        reviewed = sum(values["answered"] - values["operating_point"]["answered"] for values in trials)
        assert row["what changes"].startswith(f"{reviewed:,} of ")
    assert len(tables["operating_point_trials"]) == 12


def test_both_readings_stand_side_by_side(run, tables):
    rows = {(row["configuration"], row["rate"]): row for row in tables["readings"]}
    for name in blocks(run):
        values = {metric: run.metrics["metrics"][f"{name}/{metric}"] for metric in ("fake_slip_rate", "recall_fake")}
        slips = rows[name, "fakes that slip"]
        assert slips["over all"]["value"] == values["fake_slip_rate"]
        assert slips["among answered"]["value"] == pytest.approx(1.0 - values["recall_fake"])
        assert slips["among answered"]["low"] <= slips["among answered"]["value"] <= slips["among answered"]["high"]
        assert rows[name, "right"]["coverage"]["value"] == run.metrics["metrics"][f"{name}/coverage"]


def test_precision_at_a_prevalence(run, tables):
    for row in tables["prevalence"]:
        trials = blocks(run)[row["configuration"]]["per_trial"].values()
        worked_out = [
            0.01 * t["recall_fake"] / (0.01 * t["recall_fake"] + 0.99 * (1 - t["recall_real"])) for t in trials
        ]
        assert row["fake, at 1 %"] == pytest.approx(sum(worked_out) / len(worked_out))


def test_trials_confusion_and_provenance(run, tables):
    for row in tables["trials"]:
        summary_block = blocks(run)[row["configuration"]]["summary"]
        assert (row["accuracy"], row["trials"]) == (summary_block["mean"]["accuracy"], 3)
        assert row["flip rate"]["value"] == summary_block["flip_rate"]
    counted = sum(row["n"] for row in tables["confusion_table"])
    assert counted == run.metrics["buckets"]["all"]["n"]
    carried = {
        (row["configuration"], row["item"]): row["records that carry it"] for row in tables["provenance_carried"]
    }
    assert carried["hawk-1|tools", "temperature"] == "all"
    assert carried["hawk-1|tools", "models.agent"].endswith(" of 1,200")
    assert any("iris-2026-01" in row["value"] for row in tables["recorded"])


def test_latency_is_that_of_the_records_and_says_which_quantile(run, tables):
    rows = run.columns(["configuration", "cache", "total_seconds", "latency_seconds", "answer"]).to_pylist()
    for row in tables["latency"]:
        times = [
            r["total_seconds"] for r in rows if (r["configuration"], r["cache"]) == (row["configuration"], row["cache"])
        ]
        assert row["n"] == len(times)
        assert [row["p50, s"], row["p95, s"]] == quantile_values(times, [0.5, 0.95])
    waits = [
        r["latency_seconds"]
        for r in rows
        if (r["configuration"], r["cache"]) == ("hawk-1|tools", "miss") and r["answer"] != "error"
    ]
    estimate = run.estimates["latency_p95", "latency=hawk-1|tools,cache=miss"]
    assert (estimate.value, estimate.n) == (quantile_values(waits, [0.95])[0], len(waits))
    assert "quantile type 1, the inverse of the empirical distribution" in estimate.method
    assert estimate.low <= estimate.value <= estimate.high


def test_every_format_shows_them(run):
    shown = {"text": summary(run), "markdown": markdown(run), "latex": latex([run])}
    for title in ("Operating point", "Precision where 1", "Over the trials", "Latency by cache state"):
        assert all(title in text for text in shown.values()), title
    for title in ("Every rate in both readings", "Latency by component", "Recorded models"):
        assert title in shown["markdown"]
        assert title in shown["latex"]


def test_one_trial_has_no_deviation_and_its_flip_rate_is_not_asked(judge, record):
    run = judge([record(n, label, "fake") for n in range(6) for label in (("fake", "real")[n % 2],)])
    names = [section["name"] for section in run.metrics["sections"]]
    assert "trials" not in names
    rows = next(section for section in run.metrics["sections"] if section["name"] == "readings")["rows"]
    assert rows[0][2] == wilson(3, 6).to_dict()


def test_long_names_stay_different_in_charts(judge, record):
    """Two modes of a model with a long name are two panels that can be told apart."""
    model = "provider-of-models/some-quite-long-model-name-preview-2026-01"
    rows = [
        record(n, ("fake", "real")[n % 2], "fake", model=model, use_tools=tools, timings={"total_seconds": 1.0 + n})
        for n in range(8)
        for tools in (False, True)
    ]
    charts = {chart["name"]: chart["spec"] for chart in judge(rows).charts}
    assert [panel["title"]["text"] for panel in charts["confusion"]["concat"]] == ["…no-tools", "…tools"]
    groups = {row["group"] for row in charts["latency"]["data"]["values"]}
    assert groups == {"…no-tools, cache unknown (n = 8)", "…tools, cache unknown (n = 8)"}
