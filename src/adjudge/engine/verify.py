"""Verify: every digest from the files, every atom and verdict from the stored values, every number from the tables.

A run that another version made is never called altered: what this version recomputes to the same value holds, what it
adds or words otherwise is said, and what it cannot recompute is listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import msgspec

from adjudge.engine.differences import Difference, differences
from adjudge.engine.matching import Matching
from adjudge.engine.metrics import Counted, metrics_document
from adjudge.engine.promises import citation_problems, column_problems
from adjudge.engine.versions import made_by_another
from adjudge.errors import AdjudgeError, ConfigError, RunError
from adjudge.evidence.graph import only_rules
from adjudge.protocols.base import Measured, Plan, Protocol, protocol
from adjudge.provenance.canonical import file_digest, pretty
from adjudge.runs.run import Run
from adjudge.runs.writer import CHARTS, INTAKE, MANIFEST, METRICS, RULES, SAMPLES
from adjudge.verdict.gates import Gate

_SHOWN = 20
_WORDS = frozenset({"notes", "comparable", "declared", "factors", "headline", "dataset_columns", "sections"})
"""Keys of metrics.json that are words about its numbers; another version may choose others."""
ENGINE_KEYS = frozenset({"limit", "gates", "columns", "json_path"})
"""Keys of a manifest's configuration that are the engine's, not the protocol's."""


@dataclass
class Verification:
    """What came of recomputing a run.

    `problems` are ways in which it does not hold. Where another version made it, `made_by` says which, `not_recomputed`
    is what this version computes otherwise or not at all, and `added` what it has beyond the run or says in
    other words and pictures.
    """

    problems: list[str] = field(default_factory=list)
    made_by: str | None = None
    not_recomputed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 holds, 1 does not hold, 3 made by another version and not wholly recomputable here."""
        return 1 if self.problems else 3 if self.not_recomputed else 0

    def differ(self, what: str) -> None:
        """Something was recomputed to another value."""
        kept = self.problems if self.made_by is None else self.not_recomputed
        if what not in kept:
            kept.append(what)


def verify(
    run: Run,
    *,
    on_progress: Callable[[int], None] | None = None,
    check_report: Callable[[Run], list[str]] | None = None,
) -> Verification:
    """Recompute a run from its own tables, and hold every digest against its files."""
    result = Verification(_files(run))
    try:
        chosen = protocol(run.manifest.protocol)
        result.made_by = made_by_another(run.manifest, chosen)
        _recompute(run, chosen, result, on_progress)
        if check_report is not None:
            for problem in check_report(run):
                result.differ(problem)
    except AdjudgeError as error:
        result.problems.append(str(error))
    except OSError as error:
        if not result.problems:
            result.problems.append(f"{error.filename}: cannot be read: {error.strerror}")
    return result


def _files(run: Run) -> list[str]:
    problems = []
    listed = {entry.path: entry for entry in run.manifest.files}
    present = {path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()} - {MANIFEST}
    for name, entry in listed.items():
        path = run.path / name
        if not path.resolve().is_relative_to(run.path.resolve()):
            problems.append(f"{name}: lies outside the run")
        elif name not in present:
            problems.append(f"{name}: is missing")
        elif path.stat().st_size != entry.bytes or file_digest(path) != entry.sha256:
            problems.append(f"{name}: its content is not the one in the manifest")
    problems += [f"{name}: is not listed in the manifest" for name in sorted(present - listed.keys())]
    return problems


def _recompute(run: Run, chosen: Protocol, result: Verification, on_progress: Callable[[int], None] | None) -> None:
    plan = _plan(run, chosen, result)
    result.problems += [] if plan is None else plan.attach(run.path)
    counted, partials, rows = Counted(), list[Any](), 0
    for part, samples, evidence in run.batches():
        broken = column_problems(samples, evidence.n)
        result.problems += [f"{SAMPLES}: {text}" for text in broken or citation_problems(samples, evidence)]
        if broken:
            return
        counted.tally.add(samples, evidence)
        if plan is not None:
            for text in plan.recheck(samples, evidence):
                where = f"evidence/part-{part:05d}.parquet: " if text.startswith("evidence: ") else ""
                result.differ(where + text)
            partials.append(plan.partial(samples, evidence))
        rows += samples.num_rows
        if on_progress is not None:
            on_progress(rows)
        if len(result.problems) > _SHOWN:
            return
    if not rows:
        raise RunError(f"{run.path} holds no samples")
    _, broken = counted.tally.closed(run.metrics["buckets"])
    result.problems += [f"{METRICS}: {text}" for text in broken]
    if plan is None:
        return
    _numbers(run, chosen, plan, plan.finish(partials), counted, result)


def _plan(run: Run, chosen: Protocol, result: Verification) -> Plan | None:
    """The plan that made the run, with the rules it had; None where this version cannot make it."""
    stored = msgspec.json.decode((run.path / RULES).read_bytes())["rules"]
    config = {key: value for key, value in run.manifest.config.items() if key not in ENGINE_KEYS}
    codes = [rule["code"] for rule in stored]
    try:
        with nullcontext() if result.made_by is None else only_rules(codes):
            plan = chosen.plan(config)
    except ConfigError as error:
        if result.made_by is None:
            raise
        result.not_recomputed.append(f"all numbers: this version does not take the run's configuration: {error}")
        return None
    tables = msgspec.json.decode(msgspec.json.encode(plan.rules))
    if stored == tables:
        return plan
    if result.made_by is None:
        result.problems.append(f"{RULES}: the rules are not those that the configuration gives with this version")
        return plan
    ours = {rule["code"]: rule for rule in tables}
    changed = [rule["code"] for rule in stored if ours.get(rule["code"]) != rule]
    what = ", ".join(changed[:_SHOWN]) or "their order"
    result.not_recomputed.append(f"atoms, verdicts and numbers: this version has other rules ({what})")
    return None


def _numbers(
    run: Run, chosen: Protocol, plan: Plan, measured: Measured, counted: Counted, result: Verification
) -> None:
    """Hold metrics.json, charts, further files and digests against what the tables give."""
    manifest, intake = run.manifest, _intake(run)
    if intake is not None:
        counted.matching = Matching.from_dict(intake)
    gates = [Gate.parse(text) for text in manifest.config.get("gates") or ()]
    document, broken = metrics_document(chosen, plan, measured, counted, (*plan.default_gates(), *gates))
    result.problems += [f"{METRICS}: {text}" for text in broken if f"{METRICS}: {text}" not in result.problems]
    stored = (run.path / METRICS).read_bytes()
    again = pretty(document)
    if stored != again:
        for difference in differences(msgspec.json.decode(stored), msgspec.json.decode(again), _SHOWN):
            _place(difference, result)
        if result.made_by is None and not result.problems:
            result.problems.append(f"{METRICS}: is not written as this version writes it")
    drawn = pretty(measured.charts)
    if result.made_by is not None and (run.path / CHARTS).read_bytes() != drawn:
        result.added.append(f"{CHARTS}: drawn in another way")
    elif (run.path / CHARTS).read_bytes() != drawn:
        result.differ(f"{CHARTS}: the charts are not those that the tables give")
    for name, content in plan.files(measured).items():
        if not (run.path / name).is_file() or (run.path / name).read_bytes() != content:
            result.differ(f"{name}: is not what the tables give")
    another = manifest.protocol_version != chosen.version
    for name, value in {**plan.digests, **measured.digests}.items():
        if another and name == "schema":
            continue  # which columns are stored belongs to the version
        if manifest.digests.get(name) != value:
            result.differ(f"{MANIFEST}: digest {name} is not that of the content")
    if result.made_by is None and manifest.notes != [*document["notes"], *((intake or {}).get("notes") or ())]:
        result.problems.append(f"{MANIFEST}: the notes are not those that the tables give")


def _intake(run: Run) -> dict[str, Any] | None:
    path = run.path / INTAKE
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.is_file() else None


def _place(difference: Difference, result: Verification) -> None:
    """A number that differs is a problem, or in a run of another version one that is not recomputed."""
    if result.made_by is not None and difference.path == "protocol_version":
        return  # `made_by` says it
    worded = re.split(r"[.\[]", difference.path)[0] in _WORDS
    if result.made_by is not None and (difference.added or worded):
        result.added.append(difference.path)
    else:
        result.differ(f"{METRICS}: {difference.words}")
