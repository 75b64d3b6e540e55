"""The rows of the speed table, the record of them in results.json, and the page that is made of it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parent / "RESULTS.md"
PACKAGES = ("adjudge", "numpy", "pyarrow", "msgspec", "duckdb", "scipy", "scikit-learn")
LEAST_SHARE = 0.5
"""To which share of the recorded ratio a quick one may fall."""
HEAD = ("job", "size", "CPU s", "peak MB", "bytes/atom", "against", "its CPU s", "ratio", "equal", "targets", "quick")
UNITS = {
    "ratio": "ratio",
    "cpu": "CPU s",
    "peak_mb": "peak MB",
    "memory_growth": "peak memory, times that of a tenth",
    "bytes_an_atom": "bytes an atom",
}


@dataclass(frozen=True)
class Target:
    """A bound on one figure of a row at full size."""

    figure: str
    least: float | None = None
    most: float | None = None

    def words(self, row: Row) -> str:
        """The bound, and whether it is met."""
        return f"{self.bound}: {'met' if self.met(row) else f'MISSED ({self.reached(row)})'}"

    @property
    def bound(self) -> str:
        """In words."""
        return f"{UNITS[self.figure]} " + (f"≥ {self.least:g}" if self.most is None else f"≤ {self.most:g}")

    def reached(self, row: Row) -> str:
        """What the row has."""
        figure = getattr(row, self.figure)
        return "not measured" if figure is None else f"{figure:.3g}"

    def met(self, row: Row) -> bool:
        """Whether the row reaches it; a figure that is not there does not."""
        reached = getattr(row, self.figure)
        if reached is None:
            return False
        return bool(reached >= self.least if self.least is not None else reached <= self.most)


@dataclass(frozen=True)
class Row:
    """What a job took beside one yardstick. Times are the middle of the turns, and so is `ratio`, theirs over ours.

    `peak_mb` is the highest of the turns. `equal` says whether both found the same figures and is None where there is nothing to compare.
    """

    job: str
    size: int
    unit: str
    cpu: float
    peak_mb: float
    against: str = ""
    against_cpu: float | None = None
    ratio: float | None = None
    equal: bool | None = None
    bytes_an_atom: float | None = None
    memory_growth: float | None = None
    targets: tuple[Target, ...] = ()

    @property
    def key(self) -> tuple[str, int | None, str]:
        """What tells a row from others at full and quick sizes; rows of growth differ in size alone."""
        return self.job, self.size if self.job.startswith("growth") else None, self.against

    @property
    def good(self) -> bool:
        """Whether its figures are equal and its targets met."""
        return self.equal is not False and all(target.met(self) for target in self.targets)

    def cells(self, quick: str) -> list[str]:
        """The columns of `HEAD`."""
        return [
            self.job,
            f"{self.size:,} {self.unit}",
            _number(self.cpu),
            f"{self.peak_mb:,.0f}",
            _number(self.bytes_an_atom),
            self.against or "–",
            _number(self.against_cpu),
            times(self.ratio),
            {True: "yes", False: "NO", None: "–"}[self.equal],
            "; ".join(target.words(self) for target in self.targets) or "–",
            quick,
        ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def times(ratio: float | None) -> str:
    """A ratio with about three figures."""
    return "–" if ratio is None else f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.3g}×"


def markdown(rows: Sequence[Row], quick: Sequence[Row] = ()) -> str:
    """The table; the last column holds the ratio that was recorded at quick sizes."""
    small = {row.key: times(row.ratio) for row in quick}
    lines = [list(HEAD), *(row.cells(small.get(row.key, "–")) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD))]
    text = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    return "\n".join([text[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *text[1:]])


def verdict(rows: Sequence[Row]) -> str:
    """How many targets there are, and every one that is missed."""
    held = [(row, target) for row in rows for target in row.targets]
    missed = [f"{row.job}: {target.bound} ({target.reached(row)})" for row, target in held if not target.met(row)]
    different = [row.job for row in rows if row.equal is False]
    text = f"{len(held) - len(missed)} of {len(held)} targets met"
    text += f". Missed: {'; '.join(missed)}" if missed else ""
    return f"{text}. Figures differ: {'; '.join(different)}." if different else f"{text}."


def fallen(recorded: Iterable[Row], measured: Sequence[Row]) -> list[str]:
    """Every ratio under its share of the recorded one, every recorded ratio that was not measured, unequal figures."""
    new = {row.key: row for row in measured}
    problems = [f"{row.job}: the figures are not those of {row.against}" for row in measured if row.equal is False]
    for row in recorded:
        if row.ratio is None:
            continue
        ratio = new[row.key].ratio if row.key in new else None
        what = f"{row.job}, against {row.against}: "
        if row.key in new and new[row.key].size != row.size:
            problems.append(f"{what}recorded with {row.size:,} {row.unit}, measured with {new[row.key].size:,}")
        elif ratio is None:
            problems.append(f"{what}{times(row.ratio)} was recorded, nothing was measured")
        elif ratio < LEAST_SHARE * row.ratio:
            problems.append(f"{what}{times(ratio)} is under half of the recorded {times(row.ratio)}")
    return problems


def better(first: Sequence[Row], second: Sequence[Row]) -> list[Row]:
    """Of two measurements of the same rows the one with the better ratio; figures must be equal in both."""
    others = {row.key: row for row in second}
    chosen = []
    for row in first:
        other = others.get(row.key, row)
        best = max(row, other, key=lambda each: each.ratio or 0.0)
        chosen.append(replace(best, equal=False) if False in {row.equal, other.equal} else best)
    return chosen


def machine() -> dict[str, Any]:
    """Where and with what the rows were measured."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str:
    """The version of a package; yardsticks need some that a default installation does not have."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def recorded_elsewhere(record: Path, section: str) -> bool:
    """Whether the recorded rows are of another machine or other versions, so that new ones cannot stand beside them."""
    if not record.exists():
        return False
    recorded = json.loads(record.read_text(encoding="utf-8")).get(section)
    return recorded is not None and recorded["machine"] | {"date": ""} != machine() | {"date": ""}


def read(record: Path, section: str) -> list[Row]:
    """The recorded rows of a section, `full` or `quick`; none where nothing is recorded."""
    if not record.exists():
        return []
    document = json.loads(record.read_text(encoding="utf-8")).get(section, {"rows": []})
    return [Row(**row | {"targets": tuple(Target(**each) for each in row["targets"])}) for row in document["rows"]]


def write(record: Path, section: str, rows: Sequence[Row], order: Sequence[str]) -> None:
    """Record rows in place of those of the same jobs, in the order of the jobs; write the page beside the record."""
    document = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    names = {row.job for row in rows}
    kept = [row for row in read(record, section) if row.job not in names and row.job in order]
    merged = sorted([*kept, *rows], key=lambda row: order.index(row.job))
    document[section] = {"machine": machine(), "rows": [asdict(row) for row in merged]}
    record.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    record.with_name(PAGE.name).write_text(page(record), encoding="utf-8")


def page(record: Path) -> str:
    """RESULTS.md: what is recorded, in words and one table."""
    document = json.loads(record.read_text(encoding="utf-8"))
    full, quick = read(record, "full"), read(record, "quick")
    parts = ["# Speed\n", "Written by `python -m benchmarks --write`; docs/benchmarks.md says how to read it.\n"]
    for section, title in (("full", "Full sizes"), ("quick", "Quick sizes")):
        if section in document:
            where = document[section]["machine"]
            packages = ", ".join(f"{name} {version}" for name, version in where["packages"].items())
            place = f"{where['cpu']}, {where['cores']} cores, {where['memory_gib']:g} GiB, {where['system']}"
            parts.append(f"{title}: {where['date']}, {place}, Python {where['python']}; {packages}.\n")
    if full:
        return "\n".join([*parts, verdict(full) + "\n", markdown(full, quick) + "\n"])
    return "\n".join(
        [*parts, "Nothing is recorded at full size; these are the quick sizes.\n", markdown(quick, quick) + "\n"]
    )
