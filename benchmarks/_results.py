"""`python -m benchmarks` without a name: the speed table of all jobs, its record, and the quick check against it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import scaling
from benchmarks._jobs import FULL, JOBS, QUICK, Plan, run
from benchmarks._rows import Results, Row, fallen, markdown

FOLDER = Path(__file__).parent
CHART = "scaling.svg"
AGAIN, RECORDED = 3, 3
"""How often a quick job that fell behind is measured again, and how many measurements a record is the middle of."""
PACKAGES = ("adjudge", "numpy", "pyarrow", "msgspec", "duckdb", "numba", "scipy", "scikit-learn")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=JOBS, metavar="JOB", help=f"some of: {', '.join(JOBS)}")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, and exit code 1 where a ratio fell under its share of the recorded one",
    )
    parser.add_argument("--repeat", type=int, help="the least of so many measurements counts (3; quick: 1)")
    parser.add_argument(
        *("--size", "--sizes"),
        nargs="+",
        default=[],
        metavar="NAME=N",
        help=f"other sizes than {', '.join(f'{name}={size}' for name, size in FULL.items())}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows, bounds and machine here")
    parser.add_argument("--write", action="store_true", help="keep what was measured in RESULTS.md and results.json")
    parser.add_argument(
        "--record", type=Path, default=FOLDER / "results.json", help="what --write writes and --quick reads"
    )
    given = parser.parse_args(argv)
    sizes = dict(QUICK if given.quick else FULL)
    for word in given.size:
        name, _, size = word.partition("=")
        if name not in sizes or not size.isdecimal() or not int(size):
            parser.error(f"--size {word}: expected NAME=N with a name of {', '.join(sizes)}")
        sizes[name] = int(size)
    plan = Plan(sizes, given.repeat or (1 if given.quick else 3), given.quick)
    names = [name for name, job in JOBS.items() if (name in given.only if given.only else job.quick or not given.quick)]
    start = time.perf_counter()
    recorded = read(given.record)
    problems: list[str] = []
    if not given.quick:
        found = run(names, plan)
    elif given.write:
        found = typical([quick(names, plan, at_once=2) for _ in range(RECORDED)])
    else:
        found = quick(names, plan, at_once=2)
        for _ in range(AGAIN):
            again = [name for name, one in found.items() if check(recorded, one, whole=False)]
            for name, one in quick(again, plan).items():  # one after the other: a neighbour may have disturbed it
                found[name] = better(found[name], one)
        problems = check(recorded, sum(found.values(), Results()), whole=given.only is None)
    results = sum(found.values(), Results())
    print(markdown(results.rows), "", *results.bounds, *(f"BROKE OFF {one}" for one in results.failed), sep="\n")
    print(f"{time.perf_counter() - start:.0f} s of wall time", *problems, sep="\n")
    document = results.document() | {"machine": machine(), "repeat": plan.repeat, "sizes": sizes}
    if given.json is not None:
        given.json.write_text(dump(document), encoding="utf-8")
    if given.write:
        section = "quick" if given.quick else "full"
        recorded[section] = merged(recorded.get(section), document) if given.only else document
        given.record.write_text(dump(recorded), encoding="utf-8")
        given.record.with_name("RESULTS.md").write_text(page(recorded), encoding="utf-8")
        if curves := scaling.of(Results.of(recorded.get("full", {"rows": ()})).rows):
            given.record.with_name(CHART).write_text(scaling.chart(curves), encoding="utf-8")
    return 0 if results.good and not problems else 1


def quick(names: Sequence[str], plan: Plan, *, at_once: int = 1) -> dict[str, Results]:
    """Jobs at small sizes, without targets, which are for full ones."""
    found = run(names, plan, at_once=at_once) if names else {}
    return {
        name: Results(tuple(dataclasses.replace(row, target=None, met=None) for row in one.rows), (), one.failed)
        for name, one in found.items()
    }


def typical(several: Sequence[dict[str, Results]]) -> dict[str, Results]:
    """Of some measurements the middle one of each row, so that no lucky one is what later ones are held to."""
    found: dict[str, Results] = {}
    for name, last in several[-1].items():
        alike = [one[name] for one in several]
        if any(one.failed for one in alike):
            found[name] = next(one for one in alike if one.failed)
            continue
        rows = []
        for row in last.rows:
            same = sorted((r for one in alike for r in one.rows if r.key == row.key), key=lambda r: r.ratio or 0.0)
            unequal = [r for r in same if r.equal is False]
            rows.append(unequal[0] if unequal else same[len(same) // 2])
        found[name] = dataclasses.replace(last, rows=tuple(rows))
    return found


def better(first: Results, second: Results) -> Results:
    """Two measurements of one job: for each row the least time of either side, as the least counts elsewhere too."""
    before = {row.key: row for row in first.rows}

    def combined(row: Row) -> Row:
        old = before.get(row.key)
        if row.ratio is None or old is None or old.ratio is None:
            return row
        ours = min(row.cpu_seconds, old.cpu_seconds)
        theirs = min(row.ratio * row.cpu_seconds, old.ratio * old.cpu_seconds)
        return dataclasses.replace(row, cpu_seconds=ours, ratio=theirs / ours)

    return dataclasses.replace(second, rows=tuple(map(combined, second.rows)))


def check(recorded: dict[str, Any], results: Results, *, whole: bool = True) -> list[str]:
    """What fell behind the quick section of the record, row by row; nothing where there is none."""
    if "quick" not in recorded:
        return []
    known: Sequence[Row] = Results.of(recorded["quick"]).rows
    if not whole:
        measured = {row.key for row in results.rows}
        known = [row for row in known if row.key in measured]
    return fallen(known, results.rows)


def merged(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """A section in which the rows of some jobs were measured again; those keep their place."""
    if old is None:
        return new
    before, after = Results.of(old), Results.of(new)
    rows = {row.key: row for row in (*before.rows, *after.rows)}
    bounds = {bound.what: bound for bound in (*before.bounds, *after.bounds)}
    return new | Results(tuple(rows.values()), tuple(bounds.values()), after.failed).document()


def read(path: Path) -> dict[str, Any]:
    """What was recorded; empty where nothing was."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def dump(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def machine() -> dict[str, Any]:
    """Where and when, as far as it changes a figure."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": packages,
        "date": datetime.now(UTC).date().isoformat(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or "unknown"


def page(recorded: dict[str, Any]) -> str:
    """RESULTS.md."""
    parts = ["# Speed\n", "Written by `python -m benchmarks --write`; how to read it: docs/benchmarks.md.\n"]
    for section, title in (("full", "Full sizes"), ("quick", "Quick sizes, against which new figures are held")):
        if section not in recorded:
            continue
        document = recorded[section]
        results, where = Results.of(document), document["machine"]
        packages = ", ".join(f"{name} {number}" for name, number in where["packages"].items())
        place = f"{where['cpu']}, {where['cores']} cores, {where['memory_gib']:g} GiB, {where['system']}"
        made = f"{where['date']}, {place}, Python {where['python']}; {packages}. Least CPU of {document['repeat']}.\n"
        parts += [f"## {title}\n", made, markdown(results.rows) + "\n"]
        parts += ["".join(f"- {bound}\n" for bound in results.bounds)] if results.bounds else []
        parts += ["".join(f"- broke off: {failure}\n" for failure in results.failed)] if results.failed else []
        if section == "full":
            parts.append(_verdict(results) + "\n")
            if curves := scaling.of(results.rows):
                parts += [f"![CPU seconds and memory as the input grows]({CHART})\n", scaling.table(curves) + "\n"]
    return "\n".join(parts)


def _verdict(results: Results) -> str:
    """How many targets there are, and every one that is missed."""
    held = [row for row in results.rows if row.met is not None]
    missed = [f"{row.name} against {row.against or 'its bound'} ({row.target})" for row in held if not row.met]
    missed += [bound.what for bound in results.bounds if not bound.met]
    differ = [row.name for row in results.rows if row.equal is False]
    total = len(held) + len(results.bounds)
    said = f"{total - len(missed)} of {total} targets met"
    said += f"; missed: {'; '.join(missed)}" if missed else ""
    return f"{said}; figures differ: {'; '.join(differ)}." if differ else f"{said}."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
