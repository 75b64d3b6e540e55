"""The speed table: `python -m benchmarks [--quick] [--only NAME …] [--write]`. How to read it: docs/benchmarks.md.

`python -m benchmarks coverage` and `python -m benchmarks operating_point` are studies of the statistics,
`python -m benchmarks many_models` one of runs with 10,000 models.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks import table
from benchmarks.jobs import JOBS
from benchmarks.measure import ADJUDGE, Growth, Job, Workers
from benchmarks.table import Row

STUDIES = ("coverage", "many_models", "operating_point")
TURNS, MEASURED_AGAIN = 3, 2


def compile_package(name: str) -> None:
    """Compile the modules of a package, as pip does with what it installs: a shell may forbid Python to keep what it compiles."""
    spec = find_spec(name)
    for folder in (spec and spec.submodule_search_locations) or ():
        compileall.compile_dir(folder, quiet=2)


def main(argv: Sequence[str]) -> int:
    if argv and argv[0] in STUDIES:
        return int(importlib.import_module(f"benchmarks.{argv[0]}").main(list(argv[1:])))
    groups = list(dict.fromkeys(job.group for job in JOBS))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=groups, metavar="NAME", help=f"of {', '.join(groups)}")
    parser.add_argument("--quick", action="store_true", help="small sizes; fails where a ratio fell to under half")
    parser.add_argument("--write", action="store_true", help="record the rows in results.json and RESULTS.md")
    parser.add_argument("--turns", type=int, help="how often each is run [3; --quick without --write: 1]")
    parser.add_argument("--record", type=Path, default=table.RECORD, help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if not Path(ADJUDGE).exists():
        parser.error(f"{ADJUDGE} is missing: install the project into this Python first (`make bench` does)")
    compile_package("adjudge")
    jobs = [job for job in JOBS if chosen.only is None or job.group in chosen.only]
    turns = chosen.turns or (1 if chosen.quick and not chosen.write else TURNS)
    recorded = table.read(chosen.record, "quick") if chosen.quick and not chosen.write else []
    section = "quick" if chosen.quick else "full"
    if chosen.write and chosen.only and table.recorded_elsewhere(chosen.record, section):
        parser.error("the other rows were recorded on another machine or with other versions: --write without --only")
    rows: list[Row] = []
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="adjudge-bench-") as folder:
        for job in jobs:
            print(job.name, file=sys.stderr, flush=True)
            held = [row for row in recorded if row.job == job.name]
            try:
                measured = _measured(job, Path(folder), held, quick=chosen.quick, turns=turns)
            except (RuntimeError, ValueError) as error:
                problems.append(f"{job.name} broke off: {error}")
                continue
            rows += measured
            problems += table.fallen(held, measured)
    print(table.markdown(rows, table.read(chosen.record, "quick")))
    if chosen.write:
        table.write(chosen.record, section, rows, [job.name for job in JOBS])
    if not chosen.quick:
        print(f"\n{table.verdict(rows)}")
    print(*problems, sep="\n")
    return 1 if problems or not all(row.good for row in rows) else 0


def _measured(
    job: Job | Growth | Workers, folder: Path, recorded: Sequence[Row], *, quick: bool, turns: int
) -> list[Row]:
    """The rows of a job; one that fell behind is measured again, since a busy neighbour goes and a slower program stays."""
    rows = job.rows(folder, quick=quick, turns=turns)
    for _ in range(MEASURED_AGAIN):
        if not table.fallen(recorded, rows):
            break
        rows = table.better(rows, job.rows(folder, quick=quick, turns=TURNS))
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
