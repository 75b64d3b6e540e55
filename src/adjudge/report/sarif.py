"""SARIF 2.1.0: every failed check at the file and line of the input row it is about, for code-scanning views.

A run does not store lines, since the order of the input changes nothing in it; they are found again in the input files
where those are still there with the content that was judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np

from adjudge.evidence.atoms import Atom, atoms
from adjudge.evidence.vocabulary import Outcome, Severity
from adjudge.report import view
from adjudge.report.numbers import line
from adjudge.runs.query import query
from adjudge.runs.run import Run

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RESULTS = 5000
_LEVEL = {"CRITICAL": "error", "WARNING": "warning", "INFO": "note"}
_IDS, _MODELS = ("id", "sample_id", "sample"), ("model", "model_name")


def sarif(run: Run, *, limit: int = RESULTS) -> bytes:
    """The log: one result a failed atom, criticals first; instrument errors as notifications of the tool."""
    failed, broken, left_out = _collect(run, limit)
    places = _places(run, {(row["sample"], row["model"]) for row, _ in failed})
    titles = view.rule_titles(run)
    index = {code: number for number, code in enumerate(titles)}
    results = [
        {
            "ruleId": atom.rule,
            "ruleIndex": index[atom.rule],
            "level": _LEVEL[atom.severity],
            "message": {"text": line(f"{row['model']}, sample {row['sample']}: {atom.message}")},
            "locations": [_location(row, places.get((row["sample"], row["model"])))],
            "partialFingerprints": {"adjudgeAtom/v1": hashlib.sha256(atom.id.encode()).hexdigest()},
            "properties": {"sample": row["sample"], "model": row["model"], "field": atom.field, "step": atom.step},
        }
        for row, atom in failed
    ]
    notifications = [
        {"level": "error", "message": {"text": line(f"{atom.rule} failed on {row['sample']}: {atom.message}")}}
        for row, atom in broken
    ]
    if left_out:
        notifications.append(
            {"level": "note", "message": {"text": f"{left_out} more failed checks are in the run: adjudge query"}}
        )
    rules = [
        {"id": code, "name": code.replace(".", "_"), "shortDescription": {"text": title}}
        for code, title in titles.items()
    ]
    version = run.manifest.environment.get("adjudge", "unknown")
    log_of_run = {
        "tool": {"driver": {"name": "adjudge", "version": version, "rules": rules}},
        "invocations": [{"executionSuccessful": not broken, "toolExecutionNotifications": notifications}],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [log_of_run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=1) + b"\n"


Found = list[tuple[dict[str, Any], Atom]]


def _collect(run: Run, limit: int) -> tuple[Found, Found, int]:
    """Failed atoms (criticals first, then in the order of the run), broken ones, and how many failed ones were left out."""
    critical: Found = []
    other: Found = []
    broken: Found = []
    total = 0
    for _, samples, evidence in run.batches():
        failed = evidence.failed()
        grave = evidence.failed(Severity.CRITICAL).any(axis=0)
        errors = (evidence.outcome == Outcome.ERROR).any(axis=0)
        total += int(failed.sum())
        mask = np.zeros(evidence.n, dtype=bool)
        if len(critical) < limit:
            mask |= grave
        if len(critical) + len(other) < limit:
            mask |= failed.any(axis=0)
        if len(broken) < limit:
            mask |= errors
        wanted = np.flatnonzero(mask)
        rows = samples.select(["sample", "model"]).take(wanted).to_pylist()
        for row, number in zip(rows, wanted.tolist(), strict=True):
            for atom in atoms(evidence, number, row["model"], row["sample"]):
                if atom.outcome == "error":
                    broken.append((row, atom))
                elif atom.failed:
                    (critical if atom.severity == "CRITICAL" else other).append((row, atom))
    shown = (critical + other)[:limit]
    return shown, broken[:limit], total - len(shown)


def _places(run: Run, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, int | None]]:
    """File and line of each wanted (sample, model): as stored, or from input files that are still as they were judged."""
    stored = _stored(run, wanted)
    if stored:
        return stored
    sizes = {item.name: item for item in run.manifest.inputs}
    places: dict[tuple[str, str], tuple[str, int | None]] = {}
    for path in _paths(run.manifest.config):
        known = sizes.get(path.name)
        if known is None or not path.is_file() or path.stat().st_size != known.bytes:
            continue
        for number, key in _keys(path):
            if key in wanted:
                places.setdefault(key, (path.as_posix(), number))
    return places


def _stored(run: Run, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, int | None]]:
    """Places from the outputs table, where the protocol keeps them there."""
    columns, _ = query(run, "select * from outputs limit 0")
    if not {"file", "line"} <= set(columns):
        return {}
    _, rows = query(run, "select s.sample, s.model, o.file, o.line from outputs o join samples s using (part, row)")
    return {
        (sample, model): (file, line_number)
        for sample, model, file, line_number in rows
        if file is not None and (sample, model) in wanted
    }


def _paths(config: Mapping[str, Any]) -> Iterable[Path]:
    for value in config.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and item.endswith(".jsonl"):
                yield Path(item)


def _keys(path: Path) -> Iterable[tuple[int, tuple[str, str]]]:
    with path.open("rb") as stream:
        for number, text in enumerate(stream, 1):
            try:
                record = msgspec.json.decode(text)
            except msgspec.DecodeError:
                continue
            if isinstance(record, dict):
                sample = next((record[name] for name in _IDS if name in record), None)
                model = next((record[name] for name in _MODELS if name in record), None)
                if sample is not None and model is not None:
                    yield number, (str(sample), str(model))


def _location(row: Mapping[str, Any], place: tuple[str, int | None] | None) -> dict[str, Any]:
    logical = [{"name": row["sample"], "fullyQualifiedName": f"{row['model']}/{row['sample']}", "kind": "element"}]
    if place is None:
        return {"logicalLocations": logical}
    file, number = place
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(Path(file))}}
    if number is not None:
        physical["region"] = {"startLine": number}
    return {"physicalLocation": physical, "logicalLocations": logical}


def _uri(path: Path) -> str:
    """Relative to where the command runs, as code-scanning views want it; a file elsewhere by its whole address."""
    try:
        return quote(path.resolve().relative_to(Path.cwd()).as_posix())
    except ValueError:
        return path.resolve().as_uri()
