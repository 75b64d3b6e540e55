"""The front door for people who evaluate: data in memory, keyword options, tables, and runs that clear up after themselves."""

from __future__ import annotations

import gc
import json
import math
import random
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import adjudge


def answers(seed=1, right=0.8, n=60):
    rng = random.Random(seed)  # noqa: S311
    rows = []
    for i in range(n):
        label = "fake" if i % 2 else "real"
        other = "real" if label == "fake" else "fake"
        rows.append(
            {
                "id": f"img-{i:03d}",
                "model": "hawk-1",
                "label": label,
                "prediction": label if rng.random() < right else other,
                "confidence": round(rng.uniform(0.5, 1.0), 2),
                "meta": {"source": "web" if i % 3 else "press"},
            }
        )
    return rows


@pytest.fixture(scope="module")
def run():
    return adjudge.evaluate("triage", results=answers(), resamples=200, gates="hawk-1|no-tools/accuracy >= 0.5")


def test_rows_in_memory_give_what_a_file_gives(run, tmp_path, write_lines):
    path = write_lines(tmp_path / "r.jsonl", answers())
    for file in (path, tmp_path / "r.jsonl", [path]):
        assert adjudge.evaluate("triage", results=file, resamples=200).estimates == run.estimates


@pytest.mark.parametrize("table", [pa.Table.from_pylist, pd.DataFrame, pl.DataFrame], ids=["arrow", "pandas", "polars"])
def test_tables_give_what_rows_give(run, table):
    assert adjudge.evaluate("triage", results=table(answers()), resamples=200).estimates == run.estimates


def test_several_runs_in_memory_are_several_runs():
    both = adjudge.evaluate("triage", results=[[answers(1)], [answers(2)]], resamples=200)
    assert len({where for _, where in both.estimates if where.startswith("configuration=")}) == 2


def test_values_that_json_does_not_have():
    rows = [
        {**row, "confidence": np.float32(0.5), "meta": {"day": date(2026, 1, 2), "k": np.int64(3)}} for row in answers()
    ]
    done = adjudge.evaluate("triage", results=rows, slice="meta.k", resamples=200)
    assert {where for _, where in done.estimates if "k=" in where}
    with pytest.raises(adjudge.InputError, match=r"row 2 of results .*object"):
        adjudge.evaluate("triage", results=[answers()[0], {"id": object()}])


def test_a_number_that_is_none_is_refused_as_in_a_file():
    rows = [{**row, "confidence": math.nan} for row in answers()]
    with pytest.raises(adjudge.InputError, match=r"results\.jsonl:1: "):
        adjudge.evaluate("triage", results=rows)


def test_options_are_the_flags(tmp_path, write_lines):
    by_flag = adjudge.evaluate("triage", results=answers(), slice="meta.source", target_risk=None, resamples=200)
    by_setting = adjudge.evaluate("triage", {"slices": ["meta.source"]}, results=answers(), resamples=200)
    assert by_flag.estimates == by_setting.estimates
    assert any("source=web" in where for _, where in by_flag.estimates)
    with pytest.raises(adjudge.ConfigError, match="slice and slices are the same setting"):
        adjudge.evaluate("triage", results=answers(), slices=["meta.a"], slice="meta.b")
    with pytest.raises(adjudge.ConfigError, match=r"triage has no setting 'nonsense'\. It has .*results"):
        adjudge.evaluate("triage", results=answers(), nonsense=1)
    with pytest.raises(adjudge.ConfigError, match="there is no protocol 'triag'"):
        adjudge.evaluate("triag", results=answers())


def test_options_win_over_a_configuration(write_lines):
    done = adjudge.evaluate("triage", {"bins": 5, "seed": 3}, results=answers(), seed=4, resamples=200)
    assert (done.manifest.config["bins"], done.manifest.seeds) == (5, {"seed": 4})


def test_a_temporary_run_lives_as_long_as_the_run(tmp_path):
    done = adjudge.evaluate("triage", results=answers(), resamples=200)
    folder, kept = done.path, done.save(tmp_path / "kept")
    estimates = done.estimates.to_arrow()
    assert folder.is_dir()
    del done
    gc.collect()
    assert not folder.exists()
    assert kept.estimates.to_arrow() == estimates
    assert adjudge.verify(kept).exit_code == 0
    with pytest.raises(adjudge.OutputError, match="exists already"):
        kept.save(tmp_path / "kept")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]


def test_tables(run):
    for frame, columns in (
        (run.estimates, ["name", "slice", "value", "low", "high", "level", "n", "method", "seed", "why", "warnings"]),
        (run.gates, ["name", "metric", "op", "bound", "on", "observed", "outcome", "why"]),
        (run.evidence, ["sample", "model", "rule", "field", "step", "outcome", "severity", "observed", "why"]),
        (run.notes, ["note"]),
    ):
        assert frame.to_arrow().column_names == columns
        assert list(frame.to_pandas().columns) == columns
        assert frame.to_polars().columns == columns
        assert len(frame) == frame.num_rows == len(frame.to_polars()) == len(pl.DataFrame(frame))
    assert {"sample", "model", "bucket", "verdict"} <= set(run.samples.to_pandas().columns)
    assert len(run.samples) == 60
    assert len(run.evidence) == 60 * run.layout.width
    assert run.notes.column("note").to_pylist()[0] == run.manifest.notes[0]


def test_a_run_is_asked_by_name(run):
    accuracy = run["accuracy", "hawk-1|no-tools"]
    assert accuracy == run["accuracy"] == run["accuracy", "configuration=hawk-1|no-tools"]
    assert accuracy == run.estimates["accuracy", "configuration=hawk-1|no-tools"]
    right = sum(row["label"] == row["prediction"] for row in answers())
    assert accuracy.value == right / 60
    with pytest.raises(adjudge.RunError, match=r"no estimate 'acuracy'; did you mean accuracy"):
        run["acuracy"]
    with pytest.raises(adjudge.RunError, match=r"has no slice 'owl'; name one of 'hawk-1\|no-tools'"):
        run["accuracy", "owl"]
    sliced = adjudge.evaluate("triage", results=answers(), slice="meta.source", resamples=200)
    with pytest.raises(adjudge.RunError, match="stands for several slices"):
        sliced["accuracy"]


def test_query_explain_gates_and_report(run, tmp_path):
    counted = run.query("select bucket, count(*)::int as n from samples group by 1 order by 1").to_arrow().to_pylist()
    assert counted == [{"bucket": "failed", "n": 60 - counted[1]["n"]}, {"bucket": "passed", "n": counted[1]["n"]}]
    with pytest.raises(adjudge.ConfigError, match="not one SELECT"):
        run.query("drop table samples")
    assert run.passed is True
    assert adjudge.evaluate("triage", results=answers(), resamples=200).passed is None
    explained = run.explain("img-003")
    assert repr(explained) == str(explained)
    assert explained.startswith("Sample img-003 ")
    assert run.report().startswith("triage · 60 samples")
    for name in ("page.html", "summary.md", "estimates.csv", "chart.svg"):
        assert run.report(tmp_path / name) == run.report()
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(adjudge.ConfigError, match=r"expected one of html, md, tex"):
        run.report(tmp_path / "x.docx")


def test_how_a_run_is_shown(run):
    title, numbers, last = repr(run).splitlines()
    assert title == "triage · 60 samples · hawk-1|no-tools|0"
    assert numbers.startswith("hawk-1|no-tools: accuracy ")
    assert last == f"every gate passed · {len(run.notes)} notes · {run.path}"
    hostile = [{**row, "model": "<script>alert(1)</script>"} for row in answers()]
    page = adjudge.evaluate("triage", results=hostile, resamples=200)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<table>") == 2


def test_runs_in_memory_are_compared_and_shown(run):
    better = adjudge.evaluate("triage", results=answers(2, right=0.99), resamples=200)
    comparison = adjudge.compare(run, better, metrics=["accuracy"])
    assert comparison.pairs[0].verdict == "better"
    assert str(comparison).startswith("COMPARABLE · triage")
    assert f"{better.path.name} is right more often" in " ".join(str(comparison).split())


def test_a_page_is_drawn_where_the_run_is_kept(tmp_path):
    kept = adjudge.evaluate("triage", results=answers(), out=tmp_path / "kept", resamples=200)
    assert (kept.path / "report.html").is_file()
    assert not (adjudge.evaluate("triage", results=answers(), resamples=200).path / "report.html").exists()
    plain = adjudge.evaluate("triage", results=answers(), out=tmp_path / "plain", report=False, resamples=200)
    assert not (plain.path / "report.html").exists()
    for each in (kept, plain):
        assert json.loads((each.path / "metrics.json").read_text()) == kept.metrics
