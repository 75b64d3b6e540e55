"""Charts of names that a renderer does not take: drawn all the same, or a note on the page, and never a lost run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import adjudge
from adjudge.report import charts

BAR = {
    "data": {"values": [{"name": "a", "value": 2}]},
    "mark": "bar",
    "encoding": {"x": {"field": "name", "type": "nominal"}, "y": {"field": "value", "type": "quantitative"}},
}
HUGE = {
    "data": {"sequence": {"start": 0, "stop": 1e9}},
    "mark": "point",
    "encoding": {"x": {"field": "data", "type": "quantitative"}},
}
ENDLESS = {  # a median over every row's 200,000 neighbours: no memory to speak of
    **HUGE,
    "data": {"sequence": {"start": 0, "stop": 2e5}},
    "transform": [{"window": [{"op": "median", "field": "data", "as": "m"}], "frame": [-100_000, 100_000]}],
}


def named(name):
    return {**BAR, "data": {"values": [{"name": name, "value": 2}]}}


@pytest.fixture
def renamed(config, tmp_path):
    """The configuration of a small evaluation of one model with another name."""

    def rename(name):
        first = Path(config["outputs"][0]).read_text(encoding="utf-8").splitlines()[:20]
        path = tmp_path / "outputs.jsonl"
        path.write_text("".join(json.dumps(json.loads(row) | {"model": name}) + "\n" for row in first))
        return {**config, "outputs": [str(path)]}

    return rename


@pytest.mark.parametrize(
    "name", ["m\x1b", "m\x00", "m\ufffe", "m\u2028", "long " * 6_000], ids=lambda name: ascii(name)[:9]
)
def test_a_run_of_a_model_with_a_strange_name_is_made_drawn_and_holds(renamed, tmp_path, name):
    run = adjudge.evaluate("flight", renamed(name), out=tmp_path / "run", limit=20)
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure") == len(run.charts) > 0
    assert "could not be drawn" not in page
    adjudge.verify(run)


def test_a_chart_that_ends_the_renderer_is_a_note_and_the_run_holds(renamed, tmp_path, monkeypatch):
    monkeypatch.setattr(charts, "terminal", lambda text: text)
    run = adjudge.evaluate("flight", renamed("m\x1b"), out=tmp_path / "run", limit=20)
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "This chart could not be drawn: the renderer ended with SIGABRT." in page
    adjudge.verify(run)


@pytest.mark.parametrize(
    "chart, limit, most, why",
    [(ENDLESS, "_SECONDS", 3, "it takes longer than 3 seconds"), (HUGE, "_MEMORY", 1 << 30, "the renderer ended")],
    ids=["endless", "huge"],
)
def test_time_and_memory_are_limited_and_the_other_charts_are_drawn(monkeypatch, chart, limit, most, why):
    monkeypatch.setattr(charts, limit, most)
    before, refused, after = charts.svgs([BAR, chart, BAR])
    assert before.picture == after.picture != None  # noqa: E711 -- of a chain
    assert refused.picture is None
    assert refused.why.startswith(why)


def test_after_three_ends_no_further_chart_is_tried(monkeypatch):
    monkeypatch.setattr(charts, "terminal", lambda text: text)
    drawings = charts.svgs([named("m\x1b")] * 5)
    assert [drawing.picture for drawing in drawings] == [None] * 5
    assert [drawing.why for drawing in drawings[3:]] == ["other charts ended the renderer"] * 2


def test_two_long_names_stay_two():
    first, second = (charts.label("x" * 30_000 + end) for end in "ab")
    assert first != second
    assert len(first) <= 300
    assert charts.label("a b\tcä") == "a b\tcä"


def test_a_run_is_in_its_place_before_it_is_drawn(config, tmp_path, monkeypatch):
    seen = []

    def fails(folder):
        adjudge.verify(folder)
        seen.append(folder)
        raise MemoryError

    monkeypatch.setattr("adjudge.cli.common.report_writer", fails)
    with pytest.raises(MemoryError) as caught:
        adjudge.evaluate("flight", config, out=tmp_path / "run", limit=5)
    assert seen == [tmp_path / "run"]
    assert f"the run is whole at {tmp_path / 'run'}, without its page" in caught.value.__notes__[0]
    adjudge.verify(tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="address space is limited where there is fork")
def test_little_address_space_costs_the_charts_and_not_the_run(renamed, tmp_path):
    code = (
        "import resource, sys, json, adjudge;"
        "adjudge.evaluate('flight', json.loads(sys.argv[1]), out=sys.argv[2] + '/warm', limit=2, report=False);"
        "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30));"
        "adjudge.verify(adjudge.evaluate('flight', json.loads(sys.argv[1]), out=sys.argv[2] + '/run', limit=5))"
    )
    words = [sys.executable, "-c", code, json.dumps(renamed("m")), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "This chart could not be drawn" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
