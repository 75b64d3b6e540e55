"""Verify: every digest from the files, every atom and verdict from the stored values, every number from the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from adjudge.engine.metrics import metrics_document
from adjudge.errors import AdjudgeError, RunError
from adjudge.protocols.base import protocol
from adjudge.provenance.canonical import file_digest, pretty
from adjudge.runs.run import Run
from adjudge.runs.writer import CHARTS, MANIFEST, METRICS, RULES
from adjudge.verdict.gates import Gate

_SHOWN = 20


def verify(
    run: Run,
    *,
    on_progress: Callable[[int], None] | None = None,
    check_report: Callable[[Run], list[str]] | None = None,
) -> list[str]:
    """Every way in which the run does not hold, each naming the file and the number; empty when it holds."""
    problems = _files(run)
    try:
        problems += _recompute(run, on_progress)
        if check_report is not None:
            problems += check_report(run)
    except AdjudgeError as error:
        problems.append(str(error))
    except OSError as error:
        if not problems:
            problems.append(f"{error.filename}: cannot be read: {error.strerror}")
    return problems


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


def _recompute(run: Run, on_progress: Callable[[int], None] | None) -> list[str]:
    manifest = run.manifest
    chosen = protocol(manifest.protocol)
    config = {
        key: value for key, value in manifest.config.items() if key not in {"limit", "gates", "columns", "json_path"}
    }
    plan = chosen.plan(config)
    problems = []
    if msgspec.json.decode((run.path / RULES).read_bytes())["rules"] != msgspec.json.decode(
        msgspec.json.encode(plan.rules)
    ):
        problems.append(f"{RULES}: the rules are not those that the configuration gives with this version")
    problems += plan.attach(run.path)
    partials: list[Any] = []
    rows = 0
    for part, samples, evidence in run.batches():
        found = [
            f"evidence/part-{part:05d}.parquet: {text}" if text.startswith("evidence: ") else text
            for text in plan.recheck(samples, evidence)
        ]
        problems += [text for text in found if text not in problems]
        partials.append(plan.partial(samples, evidence))
        rows += samples.num_rows
        if on_progress is not None:
            on_progress(rows)
        if len(problems) > _SHOWN:
            return problems
    if not partials:
        raise RunError(f"{run.path} holds no samples")
    measured = plan.finish(partials)
    gates = [Gate.parse(text) for text in manifest.config.get("gates") or ()]
    document = metrics_document(chosen, plan, measured, (*plan.default_gates(), *gates))
    stored = (run.path / METRICS).read_bytes()
    if stored != pretty(document):
        problems += _differences(METRICS, msgspec.json.decode(stored), msgspec.json.decode(pretty(document)))
    if (run.path / CHARTS).read_bytes() != pretty(measured.charts):
        problems.append(f"{CHARTS}: the charts are not those that the tables give")
    for name, content in plan.files(measured).items():
        if not (run.path / name).is_file() or (run.path / name).read_bytes() != content:
            problems.append(f"{name}: is not what the tables give")
    for name, value in {**plan.digests, **measured.digests}.items():
        if manifest.digests.get(name) != value:
            problems.append(f"{MANIFEST}: digest {name} is not that of the content")
    return problems


def _differences(where: str, stored: Any, again: Any) -> list[str]:
    """The numbers that differ, by their path."""
    found: list[str] = []

    def walk(path: str, a: Any, b: Any) -> None:
        if len(found) >= _SHOWN or (a == b and type(a) is type(b)):
            return
        if isinstance(a, dict) and isinstance(b, dict):
            for key in sorted(a.keys() | b.keys()):
                walk(f"{path}.{key}", a.get(key), b.get(key))
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for index, (x, y) in enumerate(zip(a, b, strict=True)):
                name = x.get("name") if isinstance(x, dict) else None
                walk(f"{path}[{f'{name}, ' + str(x.get('slice')) if name else index}]", x, y)
        else:
            found.append(f"{where}: {path.removeprefix('.')} is {_short(a)}, recomputed {_short(b)}")

    walk("", stored, again)
    return found or [f"{where}: is not written as this version writes it"]


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:59] + "…"
