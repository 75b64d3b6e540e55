"""The jobs of the speed table: which benchmark each one runs, at what size, and its figures as rows of the table.

Every job is a process of its own that writes its figures as JSON; here, and nowhere else, these become rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._rows import WHOLE, Bound, Results, Row

Document = dict[str, Any]

FULL: dict[str, int] = {
    "s1": 200_000,
    "m3": 50_000,
    "slice": 10_000,
    "triage": 2_000_000,
    "pairs": 1_000_000,
    "steps": 1_000_000,
    "objects": 100_000,
    "scores": 10_000_000,
    "report": 200_000,
    "queries": 1_500_000,
    "batch": 16_384,
    "workers": 2_000_000,
    "scaling": 1_000_000,
    "large": 10_000_000,
}
QUICK: dict[str, int] = {
    "s1": 20_000,
    "m3": 4000,
    "slice": 500,
    "triage": 30_000,
    "pairs": 30_000,
    "steps": 20_000,
    "objects": 5000,
    "scores": 100_000,
    "report": 5000,
    "queries": 5000,
    "batch": 4000,
    "workers": 50_000,
    "scaling": 10_000,
    "large": 50_000,
}


@dataclass(frozen=True)
class Plan:
    """How a table is made: sizes by name, how often each measurement is repeated, and whether it is the quick one."""

    sizes: Mapping[str, int]
    repeat: int
    quick: bool = False


@dataclass(frozen=True)
class Job:
    """A benchmark with its arguments, and how its figures become rows."""

    benchmark: str
    arguments: Callable[[Plan], list[str]]
    rows: Callable[[Document], Results]
    quick: bool = True
    """Whether it is a part of the quick table."""


def run(names: Sequence[str], plan: Plan, *, at_once: int = 1) -> dict[str, Results]:
    """What each job gave, in the order of the names; a job that breaks off is named and the others go on."""
    with ThreadPoolExecutor(at_once) as pool:
        return dict(zip(names, pool.map(lambda name: _one(name, JOBS[name], plan), names), strict=True))


def _one(name: str, job: Job, plan: Plan) -> Results:
    print(f"{name} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="adjudge-bench-") as folder:
        figures = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "benchmarks", job.benchmark, *job.arguments(plan), "--json", str(figures)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # A missed target is exit code 1 with figures; without figures the job broke off.
        if not figures.exists():
            last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            return Results(failed=(f"{name}: {last} (exit code {done.returncode})",))
        return job.rows(json.loads(figures.read_text(encoding="utf-8")))


def _flight(document: Document) -> Results:
    """A row for each yardstick; the benchmark breaks off where those with an object per atom disagree with ours."""
    rows: list[Row] = []
    targets = {target["what"]: target for target in document["targets"]}
    for task in ("S1", "M3"):
        own = {row["what"]: row for row in document["rows"] if row["task"] == task}
        ours, cost = own["adjudge"], own["adjudge"]["cost"]
        for what, row in own.items():
            if what.startswith("adjudge"):
                continue
            ratio = row["cost"]["cpu"] / row["samples"] / (cost["cpu"] / ours["samples"])
            most = targets.get(f"{task}, CPU against {what.partition(' ')[0]}")
            least = targets.get(f"{task}, less CPU than {what}, judged alike")
            said = most and f"≥ {1 / most['bound']:.2f}× ({most['bound']:g}× its CPU)"
            held = most or least
            if least:
                ratio = least["reached"]
            elif most:
                ratio = 1 / most["reached"]
            rows.append(
                Row(
                    f"flight {task}, {WHOLE}",
                    ours["samples"],
                    "samples",
                    cost["cpu"],
                    cost["memory"] / 1e6,
                    what,
                    ratio,
                    True if least else None,
                    said or (least and f"≥ {least['bound']:g}×"),
                    held and held["met"],
                )
            )
    others = [target for what, target in targets.items() if "CPU" not in what]
    return Results(tuple(rows), tuple(_bound(f"flight {target['what']}", target) for target in others))


def _bound(what: str, target: Document) -> Bound:
    sign = "at most" if target.get("at_most", True) else "at least"
    return Bound(what, target["reached"], f"{sign} {target['bound']:g}", target["met"])


def _triage(document: Document) -> Results:
    ours, plain = document["rows"]
    ratio, *others = document["targets"]
    row = Row(
        f"triage, {WHOLE}",
        ours["rows"],
        "rows",
        ours["cpu_seconds"],
        ours["peak_mb"],
        plain["name"],
        ours["ratio"],
        ours["equal"],
        f"≥ {ours['target']:g}×",
        ratio["met"],
    )
    return Results((row,), tuple(_bound(f"triage {one['what']}", one) for one in others))


def _consistency(document: Document) -> Results:
    own = {row["name"]: row for row in document["rows"]}
    ours = own["adjudge"]
    rows = []
    for name, against in (("loading", "a scorer that loads all rows"), ("streaming", "a scorer that streams")):
        row = own[name]
        rows.append(
            Row(
                f"consistency, {WHOLE}",
                ours["rows"],
                "pairs",
                ours["cpu_seconds"],
                ours["peak_mb"],
                against,
                row["ratio"],
                row["equal"],
                None if row["target"] is None else f"≥ {row['target'].removesuffix(' at least')}",
                None if row["target"] is None else row["met"],
            )
        )
    bounds = [
        Bound(f"consistency, MB of memory, {name}", own[name]["peak_mb"], own[name]["target"], own[name]["met"])
        for name in ("adjudge", "with report")
    ]
    return Results(tuple(rows), tuple(bounds))


def _gui(document: Document) -> Results:
    rows = []
    for row in document["rows"]:
        kind, _, which = row["name"].partition(": ")
        if which == "adjudge":
            rows.append(
                Row(
                    f"gui {kind}, {WHOLE}",
                    row["rows"],
                    "steps",
                    row["cpu_seconds"],
                    row["peak_mb"],
                    "an object per step and atom",
                    row["ratio"],
                    row["equal"],
                    f"≥ {row['target']:g}×",
                    row["met"],
                )
            )
    return Results(tuple(rows))


def _anomaly(document: Document) -> Results:
    row = Row(
        "anomaly statistics, 2,000 resamples",
        document["rows"],
        "scores",
        document["cpu_seconds"],
        document["peak_mb"],
        "scikit-learn's AUROC alone (scaled)",
        document["ratio"],
        document["equal"],
        "≤ twice one sort, ≤ 4 GiB",
        document["met"],
    )
    return Results((row,))


def _stats(document: Document) -> Results:
    rows = [
        Row(
            row["what"],
            row["rows"],
            "resamples" if row["what"].startswith("F1") else "rows",
            row["ours"],
            document["peak_mb"],
            row["other"],
            row["theirs"] / row["ours"],
            row["equal"],
            f"≥ {row['ratio']:,.0f}×" if row["limit"] is None else f"≤ {row['limit']:g} s",
            row["met"],
        )
        for row in document["rows"]
    ]
    return Results(tuple(rows))


def _repeat(plan: Plan) -> list[str]:
    return ["--repeat", str(plan.repeat)]


def _arguments(*pairs: tuple[str, str], words: Sequence[str] = ()) -> Callable[[Plan], list[str]]:
    """The words of a command line: each flag with its size, and how often to repeat."""

    def made(plan: Plan) -> list[str]:
        return [*words, *(word for flag, size in pairs for word in (flag, str(plan.sizes[size]))), *_repeat(plan)]

    return made


def _anomaly_arguments(plan: Plan) -> list[str]:
    flights, attacks = (100, 7) if plan.sizes["scores"] >= 1_000_000 else (10, 7)
    return [
        *("--flights", str(flights), "--attacks", str(attacks)),
        *("--samples", str(-(-plan.sizes["scores"] // flights // attacks))),
    ]


def _of_part(part: str) -> Job:
    return Job("parts", _arguments(("--samples", "batch"), words=[part]), Results.of)


def _of_run(what: str, size: str) -> Job:
    return Job("runs", _arguments(("--samples", size), words=what.split()), Results.of)


JOBS: dict[str, Job] = {
    "flight": Job("flight", _arguments(("--samples-s1", "s1"), ("--samples-m3", "m3"), ("--slice", "slice")), _flight),
    "triage": Job("triage", _arguments(("--rows", "triage")), _triage),
    "consistency": Job("consistency", _arguments(("--pairs", "pairs")), _consistency),
    "gui": Job("gui", _arguments(("--steps", "steps"), ("--objects", "objects")), _gui),
    "anomaly": Job("anomaly", _anomaly_arguments, _anomaly),
    "stats": Job("stats", lambda plan: ["--quick"] if plan.quick else [], _stats),
    "extractor": _of_part("extractor"),
    "reader": _of_part("reader"),
    "rules": _of_part("rules"),
    "writer": _of_part("writer"),
    "report": _of_run("report", "report"),
    "queries": _of_run("counts lookup", "queries"),
    "start": _of_run("start", "batch"),
    "workers": Job("workers", _arguments(("--records", "workers")), Results.of, quick=False),
    "scaling": Job("scaling", _arguments(("--most", "scaling")), Results.of, quick=False),
    "large": Job("large", lambda plan: ["--records", str(plan.sizes["large"])], Results.of, quick=False),
}
