"""The check of the quick speed table: what it compares, and that a slower extractor does not pass it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest
from benchmarks import _jobs, _results, parts
from benchmarks._rows import Bound, Results, Row, fallen, markdown

from adjudge.readers.extract import Extractor

ROW = Row("extractor", 4000, "texts", 0.01, 120.0, "json.loads", 4.0, True, "≥ 1×", True)


def changed(**what):
    return dataclasses.replace(ROW, **what)


@pytest.mark.parametrize(
    "new, said",
    [
        ([ROW], []),
        ([changed(ratio=2.0)], []),
        ([changed(ratio=40.0)], []),
        ([changed(ratio=1.99)], ["extractor, against json.loads: 1.99× is under 0.5 of the recorded 4.00×"]),
        ([changed(equal=False)], ["extractor: the figures are no longer equal"]),
        ([changed(equal=None)], []),
        ([changed(ratio=None)], ["extractor, against json.loads: 4.00× was recorded, nothing was measured"]),
        ([changed(against="msgspec")], ["extractor, against json.loads: 4.00× was recorded, nothing was measured"]),
        ([changed(size=10)], ["extractor, against json.loads: recorded with 4,000 texts, measured with 10"]),
        ([], ["extractor, against json.loads: 4.00× was recorded, nothing was measured"]),
        ([ROW, changed(name="new", ratio=0.1)], []),
    ],
)
def test_a_ratio_may_fall_to_half(new, said):
    assert fallen([ROW], new) == said


@pytest.mark.parametrize(
    "row, least", [(changed(name="gui text, read to written"), 4 / 3), (changed(unit="start"), 4 / 3), (ROW, 2.0)]
)
def test_where_start_up_is_most_of_the_time_a_ratio_may_fall_to_a_third(row, least):
    assert fallen([row], [dataclasses.replace(row, ratio=least * 1.01)]) == []
    assert len(fallen([row], [dataclasses.replace(row, ratio=least * 0.99)])) == 1


def test_a_row_without_a_baseline_is_not_held():
    assert fallen([changed(ratio=None)], [changed(ratio=None, cpu_seconds=9.0)]) == []


def test_the_record_is_read_as_it_was_written(tmp_path):
    results = Results(
        (ROW, changed(name="other", peak_mb=None)), (Bound("bytes", 3.2, "at most 8", met=True),), ("x: y",)
    )
    path = tmp_path / "results.json"
    path.write_text(_results.dump({"quick": results.document()}), encoding="utf-8")
    assert Results.of(_results.read(path)["quick"]) == results
    assert _results.read(tmp_path / "none.json") == {}


def test_without_a_record_nothing_is_held():
    assert _results.check({}, Results((changed(ratio=0.01),))) == []


def test_some_jobs_alone_are_held_to_their_own_rows():
    recorded = {"quick": Results((ROW, changed(name="writer"))).document()}
    assert _results.check(recorded, Results((ROW,)), whole=False) == []
    assert len(_results.check(recorded, Results((ROW,)))) == 1
    assert len(_results.check(recorded, Results((changed(ratio=1.0),)), whole=False)) == 1


@pytest.fixture
def figures(monkeypatch):
    """Stands in for the processes of the jobs; each call takes the next figures of a job."""
    given: dict[str, list[Results]] = {}

    def run(names, plan, *, at_once=1):
        return {name: given[name].pop(0) for name in names}

    monkeypatch.setattr(_results, "run", run)
    return given


def quick(record, *words):
    return _results.main(["--quick", "--only", "extractor", "--record", str(record), *words])


def test_the_quick_run_fails_when_three_more_measurements_are_as_slow(figures, tmp_path, capsys):
    record = tmp_path / "results.json"
    slow, fast = Results((changed(ratio=1.3, cpu_seconds=0.03),)), Results((ROW,))
    figures["extractor"] = [fast] * 3
    assert quick(record, "--write") == 0
    assert "extractor" in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    figures["extractor"] = [slow] * 4
    assert quick(record) == 1
    assert figures["extractor"] == []
    assert "extractor, against json.loads: 1.30× is under 0.5 of the recorded 4.00×" in capsys.readouterr().out
    figures["extractor"] = [slow, slow, fast]
    assert quick(record) == 0
    assert figures["extractor"] == []
    figures["extractor"] = [slow, Results(failed=("extractor: gone",))]
    assert quick(record) == 1


def test_of_two_measurements_the_least_time_of_either_side_counts():
    def measured(ours, theirs):
        return Results((changed(cpu_seconds=ours, ratio=theirs / ours),))

    both = _results.better(measured(ours=0.03, theirs=0.04), measured(ours=0.02, theirs=0.09)).rows[0]
    assert (both.cpu_seconds, both.ratio) == (0.02, pytest.approx(2.0))
    assert _results.better(measured(1, 1), Results((changed(ratio=None),))).rows[0].ratio is None


def test_what_is_recorded_is_the_middle_of_three(figures, tmp_path):
    record = tmp_path / "results.json"
    figures["extractor"] = [Results((changed(ratio=ratio),)) for ratio in (9.0, 3.0, 5.0)]
    assert quick(record, "--write") == 0
    (kept,) = Results.of(_results.read(record)["quick"]).rows
    assert kept.ratio == 5.0
    figures["extractor"] = [Results((changed(equal=equal),)) for equal in (True, False, True)]
    assert quick(record, "--write") == 1
    figures["extractor"] = [Results((ROW,)), Results(failed=("extractor: gone",)), Results((ROW,))]
    assert quick(record, "--write") == 1


def test_a_job_that_breaks_off_fails_the_run(figures, tmp_path, capsys):
    figures["extractor"] = [Results(failed=("extractor: no space left (exit code 1)",))]
    assert quick(tmp_path / "results.json") == 1
    assert "BROKE OFF extractor: no space left" in capsys.readouterr().out


def test_a_full_run_says_what_it_missed(figures, tmp_path):
    record = tmp_path / "results.json"
    bounds = (Bound("bytes", 9.0, "at most 8", met=False),)
    figures["extractor"] = [Results((ROW, changed(name="slow", met=False)), bounds)]
    assert _results.main(["--only", "extractor", "--write", "--record", str(record)]) == 1
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "1 of 3 targets met; missed: slow against json.loads (≥ 1×); bytes." in text
    assert "differ" not in text
    assert set(json.loads(record.read_text(encoding="utf-8"))) == {"full"}


def test_measuring_some_jobs_again_keeps_the_other_rows(figures, tmp_path):
    record = tmp_path / "results.json"
    for results in (Results((ROW, changed(name="writer"))), Results((changed(ratio=5.0),))):
        figures["extractor"] = [results] * 3
        assert quick(record, "--write") == 0
    kept = Results.of(_results.read(record)["quick"]).rows
    assert [(row.name, row.ratio) for row in kept] == [("extractor", 5.0), ("writer", 4.0)]


@pytest.mark.parametrize("size", ["s1", "s1=", "s1=many", "s1=0", "speed=3"])
def test_a_size_that_is_none_is_refused(size, capsys):
    with pytest.raises(SystemExit):
        _results.main(["--size", size])
    assert "expected NAME=N" in capsys.readouterr().err


def test_the_table_shows_an_unknown_as_a_dash():
    line = markdown([changed(ratio=None, equal=None, peak_mb=None, against=None, target=None, met=None)]).splitlines()[
        -1
    ]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["extractor", "4,000 texts", "400,000", "0.01", "–", "–", "–", "–", "–", ""]


def test_every_size_has_a_quick_one():
    assert _jobs.FULL.keys() == _jobs.QUICK.keys()


def test_three_times_the_work_in_the_extractor_is_noticed(monkeypatch):
    extract = Extractor.extract

    def slow(self, text):
        extract(self, text)
        extract(self, text)
        return extract(self, text)

    recorded = parts.extractor(1000, 5)
    assert recorded.equal
    assert fallen([recorded], [parts.extractor(1000, 5)]) == []
    monkeypatch.setattr(Extractor, "extract", slow)
    (said,) = fallen([recorded], [parts.extractor(1000, 5)])
    assert said.startswith("extractor, against json.loads of the same objects")


PLANTED = """
from adjudge.readers.extract import Extractor
once = Extractor.extract
Extractor.extract = lambda self, text: (once(self, text), once(self, text), once(self, text))[2]
"""


def test_the_command_fails_on_an_extractor_that_takes_three_times_as_long(root, tmp_path):
    def measured(*words):
        command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "extractor", *words]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        record = ["--record", str(tmp_path / "results.json")]
        return subprocess.run(
            [*command, *record], cwd=root, env=environment, capture_output=True, text=True, check=False
        )

    assert measured("--write").returncode == 0
    assert measured().returncode == 0
    (tmp_path / "sitecustomize.py").write_text(PLANTED)
    slow = measured()
    assert slow.returncode == 1
    assert "extractor, against json.loads of the same objects" in slow.stdout.splitlines()[-1]


@pytest.mark.parametrize("part, atoms", [("reader", 1), ("rules", 67), ("writer", 67)])
def test_a_part_finds_what_its_baseline_finds(part, atoms):
    row = parts.PARTS[part](300, 1)
    assert row.equal
    assert row.size == 300 * atoms


FLIGHT = {
    "rows": [
        {"task": task, "what": what, "samples": samples, "cost": {"cpu": cpu, "wall": cpu, "memory": 300_000_000}}
        for task, what, samples, cpu in (
            ("S1", "adjudge", 1000, 0.5),
            ("S1", "json.loads of the same files", 1000, 0.4),
            ("S1", "adjudge --workers 2", 1000, 0.6),
            ("S1", "a Struct per atom, on a slice", 100, 0.5),
            ("M3", "adjudge", 1000, 2.0),
            ("M3", "json.loads of the same files", 1000, 1.0),
        )
    ],
    "targets": [
        {"what": "S1, bytes an atom", "reached": 3.0, "bound": 8.0, "at_most": True, "met": True},
        {"what": "S1, CPU against json.loads", "reached": 1.25, "bound": 1.2, "at_most": True, "met": False},
        {
            "what": "S1, less CPU than a Struct per atom, on a slice, judged alike",
            "reached": 10.0,
            "bound": 8.0,
            "at_most": False,
            "met": True,
        },
    ],
}


def test_the_figures_of_flight_become_rows():
    results = _jobs.JOBS["flight"].rows(FLIGHT)
    assert [(row.name, row.against, row.ratio, row.equal, row.target, row.met) for row in results.rows] == [
        ("flight S1, read to written", "json.loads of the same files", 0.8, None, "≥ 0.83× (1.2× its CPU)", False),
        ("flight S1, read to written", "a Struct per atom, on a slice", 10.0, True, "≥ 8×", True),
        ("flight M3, read to written", "json.loads of the same files", 0.5, None, None, None),
    ]
    assert [(bound.what, bound.target) for bound in results.bounds] == [("flight S1, bytes an atom", "at most 8")]
