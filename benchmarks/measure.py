"""How a job of the speed table is measured: beside its yardsticks by turns, as its input grows, and with a second worker."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.process import Cost, cost
from benchmarks.table import Row, Target

ADJUDGE = str(Path(sys.executable).parent / "adjudge")
LOOP = "sum(i * i % 7 for i in range(40_000_000))"

Figures = dict[str, Any]


@dataclass(frozen=True)
class Yardstick:
    """A program that ours is timed against; `figures` picks out of our JSON what the yardstick prints."""

    label: str
    command: tuple[str, ...]
    figures: Callable[[Any], Figures] | None = None
    least: float | None = None


@dataclass(frozen=True)
class Job:
    """A command on generated data beside its yardsticks. `group` is what --only names.

    In commands `{data}` stands for the folder of the generated files, `{run}` for the run directory, and `{sample}`, where
    `prepare` makes a run beforehand, for the id of one of its samples.
    """

    name: str
    group: str
    unit: str
    full: int
    quick: int
    data: tuple[str, ...]
    command: tuple[str, ...]
    yardsticks: tuple[Yardstick, ...]
    targets: tuple[Target, ...] = ()
    prepare: tuple[str, ...] = ()

    @property
    def evaluates(self) -> bool:
        """Whether it leaves a run whose atoms can be weighed."""
        return "--out" in self.command

    def rows(self, folder: Path, *, quick: bool, turns: int) -> list[Row]:
        """Measure ours and every yardstick by turns."""
        size = self.quick if quick else self.full
        names = {"data": str(generated(folder, self.data, size)), "run": str(folder / "run")}
        if self.prepare:
            names["run"] += f"-of-{size}"
            if not Path(names["run"]).exists():
                _ours(self.prepare, names)
            with (Path(names["data"]) / "reference.jsonl").open(encoding="utf-8") as lines:
                names["sample"] = json.loads(lines.readline())["id"]
        ours: list[Cost] = []
        theirs: list[list[Cost]] = [[] for _ in self.yardsticks]
        for _ in range(turns):
            ours.append(_ours(self.command, names))
            for costs, yardstick in zip(theirs, self.yardsticks, strict=True):
                costs.append(cost(_filled(yardstick.command, names)))
        row = Row(self.name, size, self.unit, _middle(ours), max(each.peak_mb for each in ours))
        if self.evaluates and not quick:
            row = replace(row, bytes_an_atom=_bytes_an_atom(folder / "run"))
        rows = []
        for place, (costs, yardstick) in enumerate(zip(theirs, self.yardsticks, strict=True)):
            targets = (*(self.targets if place == 0 else ()), *_ratio(yardstick.least))
            rows.append(
                replace(
                    row,
                    against=yardstick.label,
                    against_cpu=_middle(costs),
                    ratio=statistics.median(other.cpu / own.cpu for own, other in zip(ours, costs, strict=True)),
                    equal=_equal(yardstick, ours[-1].printed, costs[-1].printed),
                    targets=() if quick else targets,
                )
            )
        shutil.rmtree(folder / "run", ignore_errors=True)
        return rows


@dataclass(frozen=True)
class Growth:
    """One evaluation at ten and a hundred times its size: CPU seconds and memory; the ratio is 1 where time grows as the input."""

    name: str
    group: str
    unit: str
    data: tuple[str, ...]
    command: tuple[str, ...]
    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    targets: tuple[Target, ...] = ()

    def rows(self, folder: Path, *, quick: bool, turns: int) -> list[Row]:
        """Measure size by size; nothing at quick sizes, where start is most of the time."""
        rows: list[Row] = []
        for size in () if quick else self.sizes:
            names = {"data": str(generated(folder, self.data, size)), "run": str(folder / "run")}
            costs = [_ours(self.command, names) for _ in range(turns)]
            row = Row(self.name, size, self.unit, _middle(costs), max(each.peak_mb for each in costs))
            row = replace(row, bytes_an_atom=_bytes_an_atom(folder / "run"))
            if rows:
                before = rows[-1]
                row = replace(
                    row,
                    against=f"itself with {before.size:,}",
                    against_cpu=before.cpu,
                    ratio=before.cpu / before.size / (row.cpu / row.size),
                    memory_growth=row.peak_mb / before.peak_mb,
                )
            rows.append(row)
            shutil.rmtree(folder / "run")
        return [*rows[:-1], *(replace(row, targets=self.targets) for row in rows[-1:])]


@dataclass(frozen=True)
class Workers:
    """One evaluation with one worker and with two: the ratio is of wall seconds, and every file must be the same."""

    name: str
    group: str
    unit: str
    data: tuple[str, ...]
    command: tuple[str, ...]
    full: int = 1_000_000

    def rows(self, folder: Path, *, quick: bool, turns: int) -> list[Row]:
        """Measure by turns, and between them what a second core gives two loops that only compute."""
        if quick:
            return []
        names = {"data": str(generated(folder, self.data, self.full)), "run": str(folder / "run")}
        pairs, loops, equal = [], [], True
        for _ in range(turns):
            one = _ours(self.command, names)
            files = _digests(folder / "run")
            loops.append(2 * _loops(1) / _loops(2))
            two = _ours([*self.command, "--workers", "2"], names)
            equal = equal and _digests(folder / "run") == files
            pairs.append((one, two))
        shutil.rmtree(folder / "run")
        gain = statistics.median(one.wall / two.wall for one, two in pairs)
        against = f"one worker, wall time (two loops gain {statistics.median(loops):.2f}×)"
        cpu, alone = (_middle([pair[k] for pair in pairs]) for k in (1, 0))
        peak = max(two.peak_mb for _, two in pairs)
        return [Row(self.name, self.full, self.unit, cpu, peak, against, alone, gain, equal)]


def _ratio(least: float | None) -> tuple[Target, ...]:
    return () if least is None else (Target("ratio", least=least),)


def _filled(command: Sequence[str], names: dict[str, str]) -> list[str]:
    words = []
    for word in command:
        for name, value in names.items():
            word = word.replace(f"{{{name}}}", value)  # noqa: PLW2901 -- one placeholder after the other
        words.append(word)
    return words


def _ours(command: Sequence[str], names: dict[str, str]) -> Cost:
    """Run a command of ours; what an evaluation before it has left is no work of this one. 1 says that a gate failed."""
    evaluates = "--out" in command
    if evaluates:
        shutil.rmtree(names["run"], ignore_errors=True)
    return cost(_filled(command, names), codes=(0, 1) if evaluates else (0,))


def _middle(costs: Sequence[Cost]) -> float:
    return statistics.median(each.cpu for each in costs)


def generated(folder: Path, data: Sequence[str], size: int) -> Path:
    """The folder of generated files, made by a process of its own unless they are there."""
    path = folder / "-".join([*data, str(size)])
    if data and not path.exists():
        command = [sys.executable, "-m", "benchmarks.data", *data, "--samples", str(size), "--out", str(path)]
        cost(command)
    return path


def _bytes_an_atom(run: Path) -> float:
    printed = cost([ADJUDGE, "query", str(run), "select count(*) as n from evidence", "--format", "json"]).printed
    (row,) = json.loads(printed)
    return sum(path.stat().st_size for path in (run / "evidence").iterdir()) / int(row["n"])


def _digests(run: Path) -> dict[str, str]:
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    return {file["path"]: file["sha256"] for file in manifest["files"]}


def _loops(copies: int) -> float:
    """The wall seconds of so many loops at once."""
    loop = f"{sys.executable} -c '{LOOP}' & "
    return cost(["/bin/sh", "-c", loop * copies + "wait"]).wall


def _equal(yardstick: Yardstick, ours: bytes, theirs: bytes) -> bool | None:
    if yardstick.figures is None:
        return None
    return same(yardstick.figures(_documents(ours)), json.loads(theirs))


def _documents(printed: bytes) -> Any:
    """A JSON document, or the list of one on each line."""
    try:
        return json.loads(printed)
    except ValueError:
        return [json.loads(line) for line in printed.splitlines()]


def same(ours: Any, theirs: Any) -> bool:
    """Whether every figure of theirs is ours, but for the last bits of a sum."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and all(key in ours and same(ours[key], value) for key, value in theirs.items())
    if isinstance(theirs, float) and isinstance(ours, float | int):
        return abs(ours - theirs) <= 1e-9 * max(1.0, abs(theirs))
    return bool(ours == theirs)
