"""The speed table: its page is made of its record, a ratio that fell is noticed, what a process starts is counted."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import data, many_models, measure, table
from benchmarks.jobs import JOBS
from benchmarks.table import Row, Target

from adjudge.protocols.base import names
from adjudge.readers.sources import BOUNDS

ROW = Row("triage", 4000, "rows", 1.0, 120.0, "a scorer", 4.0, 4.0, equal=True)


def changed(**what):
    return dataclasses.replace(ROW, **what)


def test_the_page_is_made_of_the_record():
    assert table.PAGE.read_text(encoding="utf-8") == table.page(table.RECORD)


def test_modules_are_compiled_before_they_are_measured(tmp_path, monkeypatch):
    package = tmp_path / "measured_package"
    package.mkdir()
    (package / "__init__.py").write_text("ONE = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    command.compile_package(package.name)
    assert Path(cache_from_source(str(package / "__init__.py"))).exists()


def test_every_job_with_a_quick_size_is_recorded_at_that_size():
    recorded = {(row.job, row.against): row.size for row in table.read(table.RECORD, "quick")}
    jobs = [job for job in JOBS if isinstance(job, measure.Job)]
    assert recorded == {(job.name, each.label): job.quick for job in jobs for each in job.yardsticks}


@pytest.mark.parametrize(
    "new, problems",
    [
        ([ROW], []),
        ([changed(ratio=2.0)], []),
        ([changed(ratio=40.0)], []),
        ([changed(ratio=1.99)], ["triage, against a scorer: 1.99× is under half of the recorded 4×"]),
        ([changed(equal=False)], ["triage: the figures are not those of a scorer"]),
        ([changed(size=10)], ["triage, against a scorer: recorded with 4,000 rows, measured with 10"]),
        ([changed(against="other")], ["triage, against a scorer: 4× was recorded, nothing was measured"]),
        ([], ["triage, against a scorer: 4× was recorded, nothing was measured"]),
    ],
)
def test_a_ratio_may_fall_to_half(new, problems):
    assert table.fallen([ROW], new) == problems


@pytest.mark.parametrize(
    "target, row, words",
    [
        (Target("ratio", least=4.0), ROW, "ratio ≥ 4: met"),
        (Target("ratio", least=4.1), ROW, "ratio ≥ 4.1: MISSED (4)"),
        (Target("peak_mb", most=100.0), ROW, "peak MB ≤ 100: MISSED (120)"),
        (Target("bytes_an_atom", most=3.5), ROW, "bytes an atom ≤ 3.5: MISSED (not measured)"),
        (Target("bytes_an_atom", most=3.5), changed(bytes_an_atom=0.0), "bytes an atom ≤ 3.5: met"),
    ],
)
def test_what_was_not_measured_meets_no_target(target, row, words):
    assert target.words(row) == words
    assert changed(targets=(target,), bytes_an_atom=row.bytes_an_atom).good == words.endswith("met")


@pytest.fixture
def job(monkeypatch):
    """Stands in for all jobs; each measurement takes the next rows of the list."""
    rows = []

    class Stub:
        name, group = "triage", "triage"

        def rows(self, folder, *, quick, turns):
            found = rows.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

    monkeypatch.setattr(command, "JOBS", (Stub(),))
    return rows


def test_a_job_that_fell_behind_is_measured_again(job, tmp_path, capsys):
    record = tmp_path / "results.json"
    slow = [changed(ratio=1.3)]
    job[:] = [[ROW]]
    assert command.main(["--quick", "--write", "--record", str(record)]) == 0
    assert "triage" in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    job[:] = [slow, slow, [ROW]]
    assert command.main(["--quick", "--record", str(record)]) == 0
    job[:] = [slow, slow, slow, [ROW]]
    assert command.main(["--quick", "--record", str(record)]) == 1
    assert "1.3× is under half of the recorded 4×" in capsys.readouterr().out
    assert job == [[ROW]]


def test_unequal_figures_and_a_job_that_breaks_off_fail(job, tmp_path, capsys):
    record = ["--record", str(tmp_path / "results.json")]
    job[:] = [[changed(equal=False)], [ROW], [ROW]]
    assert command.main(["--quick", *record]) == 1
    job[:] = [RuntimeError("no space left")]
    assert command.main(record) == 1
    assert "triage broke off: no space left" in capsys.readouterr().out
    job[:] = [[changed(targets=(Target("ratio", least=9.0),))]]
    assert command.main(record) == 1
    assert "0 of 1 targets met. Missed: triage: ratio ≥ 9 (4)." in capsys.readouterr().out


def test_rows_of_other_jobs_stay_and_the_order_is_that_of_the_jobs(tmp_path):
    record = tmp_path / "results.json"
    table.write(record, "full", [ROW, changed(job="gone")], ["triage", "gone"])
    table.write(record, "full", [changed(job="flight")], ["flight", "triage"])
    assert [row.job for row in table.read(record, "full")] == ["flight", "triage"]
    assert table.read(record, "quick") == []
    assert not table.recorded_elsewhere(record, "full")
    document = json.loads(record.read_text(encoding="utf-8"))
    document["full"]["machine"]["cpu"] = "another"
    record.write_text(json.dumps(document), encoding="utf-8")
    assert table.recorded_elsewhere(record, "full")


ORPHAN = """
import subprocess, sys
busy = "import os, time; os.setsid(); start = time.process_time()\\nwhile time.process_time() < start + 0.4: pass"
subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands over processes that outlive their parent")
def test_a_process_that_outlives_its_parent_is_counted(root):
    ask = "import sys; from benchmarks.process import cost; print(cost([sys.executable, '-c', sys.argv[1]]).cpu)"
    found = subprocess.run([sys.executable, "-c", ask, ORPHAN], capture_output=True, text=True, check=True, cwd=root)
    assert float(found.stdout) > 0.4


def test_a_command_that_fails_says_its_last_line(root):
    ask = "import sys; from benchmarks.process import cost; cost([sys.executable, '-c', 'import nothing_there'], codes=(0,))"
    found = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False, cwd=root)
    assert "ended with 1: ModuleNotFoundError" in found.stderr


@pytest.mark.parametrize("kind", ["flight", "triage", "consistency", "gui-actions", "gui-texts", "anomaly", "scores"])
def test_generated_files_depend_on_the_seed_alone(kind, tmp_path):
    first, again, other = (
        data.write(kind, 200, tmp_path / name, seed=seed) for name, seed in zip("abc", (5, 5, 6), strict=True)
    )
    for one, two, three in zip(first, again, other, strict=True):
        assert one.read_bytes() == two.read_bytes() != three.read_bytes()


def test_generated_records_differ_in_shape(tmp_path):
    (path,) = data.write("consistency", 400, tmp_path)
    lines = path.read_bytes().splitlines()
    records = [json.loads(line) for line in lines]
    ids = [record["qid"] for record in records]
    assert len(set(ids)) == 400
    assert len({len(each) for each in ids}) > 10
    assert len({tuple(record) for record in records}) > 10
    assert any(b"\\u" in line for line in lines)
    assert not all(line.isascii() for line in lines)
    assert {"flags" in record for record in records} == {True, False}


@pytest.mark.parametrize(
    "ours, theirs, equal",
    [
        ({"n": 3, "more": 1}, {"n": 3}, True),
        ({"a": {"b": 0.1 + 0.2}}, {"a": {"b": 0.3}}, True),
        ({"a": 0.3001}, {"a": 0.3}, False),
        ({"a": None}, {"a": 0.3}, False),
        ({"n": 3}, {"n": 3, "more": 1}, False),
    ],
)
def test_figures_are_the_same_but_for_the_last_bits(ours, theirs, equal):
    assert measure.same(ours, theirs) == equal


def test_as_many_models_as_are_measured_may_be_judged_without_a_flag():
    assert set(many_models.FILES) <= {*names(), "raters"}
    assert BOUNDS["models"][0] >= many_models.MODELS
    assert BOUNDS["raters"][0] >= many_models.MODELS


@pytest.mark.parametrize("name", many_models.FILES)
def test_files_of_many_models_are_judged(tmp_path, name):
    words = many_models.FILES[name](tmp_path, 12, 4)
    done = subprocess.run(
        [measure.ADJUDGE, *words, "--out", tmp_path / "run", "--no-report", "--json"], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
