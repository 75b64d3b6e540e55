"""What is done with a finished run, and the start of the command: report, queries over its atoms, `adjudge --help`.

`python -m benchmarks runs report|counts|lookup|start`. The run is one of flight S1. Queries are warm: each was asked
once before. They are held to seconds of the wall clock, which is what a person waits; the bounds are for 1e8 atoms, and
a smaller run leaves them open. Without a name, all.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._rows import Results, Row, by_turns, markdown, timed
from benchmarks.flight import PROGRAM, command

SAMPLES = {"report": 200_000, "counts": 1_500_000, "lookup": 1_500_000, "start": 1}
FULL = 100_000_000
REPORT_SECONDS, REPORT_BYTES, COUNT_SECONDS, LOOKUP_SECONDS, START_SECONDS = 10.0, 5_000_000, 1.0, 0.2, 0.3
_COUNTS = "select rule, severity, count(*) from evidence group by all"


def report(run: Any, repeat: int) -> Row:
    """report.html of a run; the data block in the page must be the one whose digest the manifest gets."""
    from adjudge.report import data, html

    seconds, (page, digest) = timed(lambda: html.write(_fresh(run)), repeat, time.process_time)
    equal = data.digest(html.block_of(page)) == digest
    target = f"≤ {REPORT_SECONDS:g} s, ≤ 5 MB (it is {len(page) / 1e6:.1f})"
    met = seconds <= REPORT_SECONDS and len(page) <= REPORT_BYTES
    return Row("report.html", run.samples.num_rows, "samples", seconds, _peak(), None, None, equal, target, met)


def counts(run: Any, repeat: int) -> Row:
    """Atoms by rule and severity through `adjudge query`, against Arrow row group by row group."""
    from adjudge.runs.query import query

    seconds, ratio, ((_, rows), others) = by_turns(lambda: query(run, _COUNTS), lambda: _counted(run), repeat)
    waited, _ = timed(lambda: query(run, _COUNTS), repeat, time.perf_counter)
    found = {(rule, severity): number for rule, severity, number in rows}
    atoms = sum(found.values())
    target, met = _bound(COUNT_SECONDS, waited, atoms)
    what = "Arrow, row group by row group"
    return Row(
        "counts by rule and severity",
        atoms,
        "atoms",
        seconds,
        _peak(),
        what,
        ratio,
        found == others,
        target,
        met,
    )


def _counted(run: Any) -> dict[tuple[str, str], int]:
    import pyarrow.parquet as pq

    total: Counter[tuple[str, str]] = Counter()
    for _, path in run.parts():
        file = pq.ParquetFile(path)
        for index in range(file.num_row_groups):
            table = file.read_row_group(index, columns=["rule", "severity"])
            for row in table.group_by(["rule", "severity"]).aggregate([([], "count_all")]).to_pylist():
                total[row["rule"], row["severity"]] += row["count_all"]
    return dict(total)


def lookup(run: Any, repeat: int) -> Row:
    """One sample with all its atoms and its answer, as `adjudge explain` reads it, against a query for its atoms."""
    from adjudge.runs.query import query

    table = run.columns(["sample"])
    name = table.column("sample")[table.num_rows // 3].as_py()
    fresh = _fresh(run)
    sql = f"select rule, field, step, outcome, severity from evidence where sample = '{name}'"  # noqa: S608 -- our own id
    seconds, ratio, (record, (_, rows)) = by_turns(lambda: fresh.record(name), lambda: query(run, sql), repeat)
    waited, _ = timed(lambda: fresh.record(name), repeat, time.perf_counter)
    row = fresh.find(name)[0]
    ours = Counter((a.rule, a.field, a.step, a.outcome, a.severity) for a in fresh.atoms(row))
    equal = ours == Counter(rows) and record["sample_id"] == name
    atoms = table.num_rows * len(rows)
    target, met = _bound(LOOKUP_SECONDS, waited, atoms)
    what = "a query for its atoms"
    return Row("lookup of one sample", atoms, "atoms", seconds, _peak(), what, ratio, equal, target, met, 1)


def _bound(most: float, waited: float, atoms: int) -> tuple[str, bool | None]:
    """The target in words, and whether it is met; a miss on fewer atoms is one, but reaching it there proves nothing."""
    met = None if waited <= most and atoms < FULL else waited <= most
    return f"≤ {most:g} s at 1e8 atoms (took {waited:.3g})", met


def start(repeat: int) -> Row:
    """`adjudge --help`, against an interpreter that imports click alone."""
    seconds, peak, text = _child(repeat, PROGRAM, "--help")
    plain, _, _ = _child(repeat, "import click")
    shown = b"Usage: adjudge" in text
    met = seconds <= START_SECONDS and shown
    what = "python -c 'import click'"
    return Row("adjudge --help", 1, "start", seconds, peak, what, plain / seconds, None, f"≤ {START_SECONDS:g} s", met)


def _child(repeat: int, program: str, *arguments: str) -> tuple[float, float, bytes]:
    """The least CPU seconds and megabytes of a program in a process of its own, and what it printed."""
    seconds, peak, text = float("inf"), float("inf"), b""
    name = "import sys; sys.argv[0] = 'adjudge'; "
    for _ in range(repeat + 3):  # short and cheap
        command = [sys.executable, "-c", name + program, *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            text = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        seconds = min(seconds, usage.ru_utime + usage.ru_stime)
        peak = min(peak, usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 1024))
    return seconds, peak, text


def _fresh(run: Any) -> Any:
    """The run as one who has read nothing of it yet."""
    import adjudge

    return adjudge.load_run(run.path)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def _run(folder: Path, samples: int) -> Any:
    """A flight run, made in a process of its own so that its memory is not counted here."""
    import adjudge

    if not (folder / "run").exists():
        step = [sys.executable, "-m", "benchmarks.flight"]
        subprocess.run([*step, "data", "S1", str(samples), str(folder)], check=True)
        subprocess.run([*command("S1", *_files(folder), folder / "run"), "--workers", "2"], check=True)
        for path in _files(folder):
            path.unlink()
    return adjudge.load_run(folder / "run")


def _files(folder: Path) -> tuple[Path, Path]:
    return folder / "outputs-S1.jsonl", folder / "reference-S1.jsonl"


OF_A_RUN: dict[str, Callable[[Any, int], Row]] = {"report": report, "counts": counts, "lookup": lookup}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks runs", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=", ".join(SAMPLES))
    parser.add_argument("--samples", type=int, help="of the run (report: 200,000, counts and lookup: 1,500,000)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    given = parser.parse_args(argv)
    if unknown := set(given.what) - set(SAMPLES):
        parser.error(f"{', '.join(sorted(unknown))} is not one of {', '.join(SAMPLES)}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="adjudge-runs-") as name:
        for what in given.what or SAMPLES:
            if what == "start":
                rows.append(start(given.repeat))
                continue
            samples = given.samples or SAMPLES[what]
            rows.append(OF_A_RUN[what](_run(Path(name) / str(samples), samples), given.repeat))
    results = Results(tuple(rows))
    print(markdown(results.rows))
    if given.json is not None:
        given.json.write_text(json.dumps(results.document(), indent=2) + "\n", encoding="utf-8")
    return 0 if results.good else 1
