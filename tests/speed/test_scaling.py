"""The curves and the large run: what a process costs with its children, rows, the line of slope 1, when a bound holds."""

from __future__ import annotations

import subprocess
import sys

import pytest
from benchmarks import _jobs, _results, large, scaling
from benchmarks._process import Cost, cost
from benchmarks._rows import Results, Row

TWO = """
import subprocess, sys, time
held = bytearray(b"x") * 40_000_000
if sys.argv[1:]:
    child = subprocess.Popen([sys.executable, "-c", open(sys.argv[1]).read()])
    time.sleep(0.5)
    child.wait()
else:
    time.sleep(1)
print("done")
"""


def rows(*figures):
    return [Row("scaling, flight S1", size, "samples", cpu, mb) for size, cpu, mb in figures]


def test_the_memory_of_children_is_counted_too(root, tmp_path):
    program = tmp_path / "two.py"
    program.write_text(TWO)
    ask = "import sys; from benchmarks._process import cost; c = cost(sys.argv[1:]); print(c.peak_mb, c.together_mb, c.said)"
    command = [sys.executable, "-c", ask, sys.executable, str(program), str(program)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout
    peak, together, printed = said.split(" ", 2)
    assert printed.count("done") == 2
    assert 40 < float(peak) < 75
    assert 80 < float(together) < 150


def test_a_command_that_fails_is_an_error():
    with pytest.raises(subprocess.CalledProcessError):
        cost([sys.executable, "-c", "raise SystemExit(3)"])
    assert cost([sys.executable, "-c", "raise SystemExit(1)"], codes=(0, 1)).said == b""


def test_a_curve_is_measured_size_by_size(monkeypatch):
    monkeypatch.setattr(scaling, "LEAST", 20)
    found = scaling.curve("consistency", 200, 1).rows
    assert [(row.size, row.unit, row.against) for row in found] == [
        (20, "pairs", None),
        (200, "pairs", "20 pairs, times 10"),
    ]
    assert found[1].ratio == pytest.approx(10 * found[0].cpu_seconds / found[1].cpu_seconds)
    assert found[1].met is None  # start-up alone
    assert len({row.key for row in found}) == 2


@pytest.mark.parametrize(
    "last, mb, met, flat", [(10.0, 400, True, True), (12.0, 400, False, True), (9, 800, True, False)]
)
def test_a_million_records_must_cost_ten_times_a_tenth(monkeypatch, last, mb, met, flat):
    figures = iter([Cost(1.0, 1.0, 300.0, None, b""), Cost(1.0, 1.0, 300.0, None, b""), Cost(last, 1.0, mb, None, b"")])
    monkeypatch.setattr(scaling, "cost", lambda *_, **__: next(figures))
    monkeypatch.setitem(scaling.WHAT, "flight S1", ("samples", lambda *_: []))
    found = scaling.curve("flight S1", 1_000_000, 1)
    assert [row.met for row in found.rows] == [None, None, met]
    assert [bound.met for bound in found.bounds] == [flat]


def test_the_dashed_line_has_slope_one_and_ends_at_the_largest_size():
    drawn = scaling.specification(rows((10_000, 2.0, 300), (100_000, 5.0, 500), (1_000_000, 40.0, 600)))
    slope, lines = drawn["vconcat"][0]["layer"]
    assert [(point["n"], point["cpu"]) for point in slope["data"]["values"]] == [
        (10_000, pytest.approx(0.4)),
        (100_000, pytest.approx(4.0)),
        (1_000_000, 40.0),
    ]
    assert [point["mb"] for point in lines["data"]["values"]] == [300, 500, 600]


def test_writing_the_table_draws_the_curves(monkeypatch, tmp_path):
    measured = Results(tuple(rows((10_000, 2.0, 300), (100_000, 5.0, 500))))
    monkeypatch.setattr(_results, "run", lambda *_, **__: {"scaling": measured})
    record = tmp_path / "results.json"
    assert _results.main(["--only", "scaling", "--write", "--record", str(record)]) == 0
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "(scaling.svg)" in text
    assert "| flight S1 | 100,000 | 5 | 50.0 | 500 |" in text
    assert "flight S1" in (tmp_path / "scaling.svg").read_text(encoding="utf-8")


def test_curves_and_the_large_run_are_no_part_of_the_quick_table(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(_results, "run", lambda names, *_, **__: asked.append(list(names)) or {})
    _results.main(["--quick", "--write", "--record", str(tmp_path / "results.json")])
    _results.main(["--write", "--record", str(tmp_path / "results.json")])
    assert {"scaling", "large"} <= set(asked[-1]) - set(asked[0])
    assert {"flight", "extractor", "queries"} <= set(asked[0])
    assert list(_jobs.JOBS) == asked[-1]


@pytest.mark.parametrize(
    "size, together, met",
    [(10_000_000, 1500.0, True), (10_000_000, 2500.0, False), (50_000, 2500.0, False), (50_000, 1500.0, None)],
)
def test_only_the_whole_size_proves_that_memory_is_bounded(size, together, met):
    made = large.row("x", size, "pairs", Cost(9.0, 5.0, 700.0, together, b""), (None, None), equal=True)
    assert (made.met, made.peak_mb) == (met, 700.0)


def test_a_large_run_needs_room(tmp_path, capsys):
    with pytest.raises(SystemExit):
        large.main(["--records", str(10**12), "--folder", str(tmp_path)])
    assert "GB are needed" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
