"""How fast the flight evaluation is, read to written, beside a mere parse and an evaluator with one object per atom.

Every measurement is a fresh process, in seconds of CPU, user and system, right after the same one has run, which does not
count: a virtual machine may give its free memory back to its host, and who asks for it next pays for that, from a tenth to a
third of what ours takes. All are timed by turns, `--repeat` times: the least of each is shown, and the ratio that counts is
the middle one of the turns.

Ours counts from the start of the process to its end, imports included; the yardsticks count their work alone. They are
`flight_stdlib` (the same files) and, on a slice whose buckets, verdicts and scores must be ours, `flight_objects` and
`flight_dataclasses`. What a slice takes is scaled to one sample, and what starting a process takes does not grow with the
samples: there only the work counts, on both sides, from the first byte read to the last one written.

Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ATOMS = {"S1": 67, "M3": 237}
MOST_OF_STDLIB, LEAST_OF_OBJECTS, LEAST_OF_DATACLASSES = 1.2, 15.0, 100.0
PROGRAM = "from adjudge.cli.main import run; run()"
# The same command, which says in the end what it took once everything was imported.
_TIMED = """
import time
from adjudge.engine.process import one_thread_for_products
one_thread_for_products()
import adjudge.cli.flight, adjudge.engine.evaluate, adjudge.protocols.flight.plan, llvmlite.binding
from adjudge.cli.main import run
start = time.process_time()
try:
    run()
finally:
    print(time.process_time() - start)
"""
MOST_BYTES, MOST_MEMORY = 8.0, 1_000_000_000


@dataclass(frozen=True)
class Cost:
    """What one process took: seconds of CPU and of the wall clock, its largest resident set in bytes, and what it said.

    That are the seconds of CPU that its work took, without its start.
    """

    cpu: float
    wall: float
    memory: int
    work: float | None = None

    def of_work(self) -> float:
        """Seconds of CPU for the work alone."""
        assert self.work is not None, "the process did not say"
        return self.work


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    task: str
    what: str
    samples: int
    cost: Cost
    bytes_an_atom: float | None = None

    def __str__(self) -> str:
        each = self.cost.cpu / self.samples
        atoms = "" if self.bytes_an_atom is None and "object" not in self.what else f"{ATOMS[self.task] / each:,.0f}"
        size = "" if self.bytes_an_atom is None else f"{self.bytes_an_atom:.2f}"
        cells = (f"{self.samples:,}", f"{1 / each:,.0f}", atoms, f"{each * 1e6:.1f}", size)
        return f"| {self.task} | {self.what} | {' | '.join(cells)} | {self.cost.memory / 1e6:,.0f} |"


@dataclass(frozen=True)
class Target:
    """A figure that must not be missed."""

    what: str
    reached: float
    bound: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.reached <= self.bound if self.at_most else self.reached >= self.bound

    def __str__(self) -> str:
        sign = "at most" if self.at_most else "at least"
        return f"{'met   ' if self.met else 'MISSED'} {self.what}: {self.reached:,.2f} ({sign} {self.bound:,.2f})"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks flight", description=__doc__)
    parser.add_argument("--samples-s1", type=int, default=200_000)
    parser.add_argument("--samples-m3", type=int, default=50_000)
    parser.add_argument("--slice", type=int, default=10_000, help="samples that the per-object evaluator judges")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of everything, once; start-up then weighs ten times"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    chosen = parser.parse_args(argv)
    share, repeat = (10, 1) if chosen.quick else (1, chosen.repeat)
    rows: list[Row] = []
    targets: list[Target] = []
    with tempfile.TemporaryDirectory(prefix="adjudge-flight-") as folder:
        for task, samples in (("S1", chosen.samples_s1 // share), ("M3", chosen.samples_m3 // share)):
            few = min(samples, chosen.slice // share)
            found, reached = _task(Path(folder) / task, task, samples, few, repeat)
            rows += found
            targets += reached
    print("| task | what | samples | samples/s | atoms/s | CPU µs/sample | bytes/atom | peak MB |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    print(*rows, "", *targets, sep="\n")
    if chosen.json is not None:
        document = {"rows": [asdict(row) for row in rows], "targets": [asdict(t) | {"met": t.met} for t in targets]}
        chosen.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0 if all(target.met for target in targets) else 1


def _task(folder: Path, task: str, samples: int, few: int, repeat: int) -> tuple[list[Row], list[Target]]:
    """All rows of one task, and what they must reach."""
    _run("data", task, samples, folder)
    _run("data", task, few, folder / "slice")
    files, slice_files = _files(folder, task), _files(folder / "slice", task)
    ours, stdlib, objects, dataclasses = [], [], [], []
    for _ in range(repeat):
        ours.append(_second(_ours, task, files, folder / "run"))
        stdlib.append(_second(_run, "stdlib", *files))
        if task == "S1":
            objects.append(_second(_run, "objects", *slice_files, folder / "slice" / "records.jsonl"))
            dataclasses.append(_second(_run, "dataclasses", *slice_files, folder / "slice" / "dataclasses.jsonl"))
    size = sum(path.stat().st_size for path in (folder / "run" / "evidence").iterdir()) / samples / ATOMS[task]
    rows = [
        Row(task, "adjudge", samples, _least(ours), size),
        Row(task, "json.loads of the same files", samples, _least(stdlib)),
    ]
    targets = [
        Target(f"{task}, bytes an atom", size, MOST_BYTES),
        Target(f"{task}, MB of memory", rows[0].cost.memory / 1e6, (MOST_MEMORY + 16 * samples) / 1e6),
    ]
    if task == "S1":
        share = statistics.median(own.cpu / other.of_work() for own, other in zip(ours, stdlib, strict=True))
        targets.append(Target("S1, CPU against json.loads", share, MOST_OF_STDLIB))
        run = folder / "slice" / "run"
        _cost(command(task, *slice_files, run))
        for what, costs, name, least in (
            ("a Struct per atom, on a slice", objects, "records", LEAST_OF_OBJECTS),
            ("a dataclass per atom, on a slice", dataclasses, "dataclasses", LEAST_OF_DATACLASSES),
        ):
            _run("compare", folder / "slice" / f"{name}.jsonl", run)
            rows.append(Row(task, what, few, _least(costs)))
            turns = (other.of_work() / few / (own.of_work() / samples) for own, other in zip(ours, costs, strict=True))
            ratio = statistics.median(turns)
            targets.append(Target(f"S1, less CPU than {what}, judged alike", ratio, least, at_most=False))
    return rows, targets


def _files(folder: Path, task: str) -> tuple[Path, Path]:
    return folder / f"outputs-{task}.jsonl", folder / f"reference-{task}.jsonl"


def _least(costs: Sequence[Cost]) -> Cost:
    return min(costs, key=lambda cost: cost.cpu)


def _second(measure: Callable[..., Cost], *arguments: object) -> Cost:
    """What it takes right after it was done once."""
    measure(*arguments)
    return measure(*arguments)


def _ours(task: str, files: tuple[Path, Path], out: Path) -> Cost:
    shutil.rmtree(out, ignore_errors=True)  # what a run before has left is no work of this one
    return _cost(command(task, *files, out, program=_TIMED))


def _run(step: str, *arguments: object) -> Cost:
    """One step in a process of its own; where it says what its work took, that counts."""
    cost = _cost([sys.executable, "-m", "benchmarks.flight", step, *map(str, arguments)])
    return cost if cost.work is None else replace(cost, cpu=cost.work)


def _cost(words: list[str]) -> Cost:
    start = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(cpu, time.perf_counter() - start, memory, float(said) if said else None)


def _data(task: str, samples: str, folder: str) -> None:
    from benchmarks.flight_data import write

    write(task, int(samples), Path(folder))


def command(task: str, outputs: Path, reference: Path, out: Path, program: str = PROGRAM) -> list[str]:
    """What a user would type, without a report."""
    files = ["--outputs", str(outputs), "--reference", str(reference), "--out", str(out)]
    return [sys.executable, "-c", program, "flight", "--task", task, *files, "--force", "--no-report", "--quiet"]


def _stdlib(outputs: str, reference: str) -> None:
    from benchmarks.flight_stdlib import run

    start = time.process_time()
    run(Path(outputs), Path(reference))
    print(time.process_time() - start)


def _objects(outputs: str, reference: str, records: str) -> None:
    from benchmarks.flight_objects import run

    start = time.process_time()
    run(Path(outputs), Path(reference), Path(records))
    print(time.process_time() - start)


def _compare(records: str, run: str) -> None:
    """Refuse to go on when the two evaluators disagree on any sample."""
    import adjudge

    def close(a: Any, b: Any) -> bool:
        return a == b or (isinstance(a, float) and isinstance(b, float) and abs(a - b) <= 1e-9 * max(abs(a), abs(b)))

    with Path(records).open(encoding="utf-8") as lines:
        theirs = {record["sample_id"]: record for record in map(json.loads, lines)}
    names = ("bucket", "verdict", "availability", "constraint", "error", "total", "mae", "rmse", "rubric")
    table = adjudge.load_run(run).samples.select(["sample", *names]).to_pylist()
    if len(table) != len(theirs):
        raise SystemExit(f"{len(table)} samples against {len(theirs)}")
    for row in table:
        for name in names:
            other = theirs[row["sample"]][name]
            if not close(row[name], other):
                raise SystemExit(f"{row['sample']}: {name} is {row[name]}, the per-object evaluator says {other}")


def _dataclasses(outputs: str, reference: str, records: str) -> None:
    from benchmarks.flight_dataclasses import run

    start = time.process_time()
    run(Path(outputs), Path(reference), Path(records))
    print(time.process_time() - start)


STEPS: dict[str, Callable[..., None]] = {
    "data": _data,
    "stdlib": _stdlib,
    "objects": _objects,
    "dataclasses": _dataclasses,
    "compare": _compare,
}

if __name__ == "__main__":
    STEPS[sys.argv[1]](*sys.argv[2:])
