"""A sample for a page: verdict, evidence, scores, the answer itself, the protocol's panels and its pictures, as plain data.

The samples shown with their evidence are the worst, some of every model, and a few that passed.
Columns that are computed for the page have names that begin with @, which no column of a run has. Of pictures only files inside
the folders of the run's own input are taken, only pictures by their content, and only so many bytes: a record from outside
cannot bring another file of this machine into a report. They stand outside the run, so nothing is computed from them.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adjudge.errors import AdjudgeError
from adjudge.evidence.atoms import Atom
from adjudge.report import numbers, view
from adjudge.runs.query import hold, query
from adjudge.runs.run import Run
from adjudge.runs.section import Panel

ATOMS = 24
_SHOWN = ("id", "rule", "field", "step", "when", "severity", "message", "observed", "limits")
_BEFORE, _INSIDE, _ITEMS = 400, 2400, 12


def rows_of(run: Run, samples: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of samples.parquet by sample id, of every model; DuckDB reads wide columns only where the id fits."""
    if not samples:
        return []
    listed = ", ".join("'" + sample.replace("'", "''") + "'" for sample in dict.fromkeys(samples))
    names, rows = query(run, f"select * from samples where sample in ({listed})", threads=1)  # noqa: S608 -- quoted above
    return [dict(zip(names, row, strict=True)) for row in rows]


def rendered(run: Run, row: dict[str, Any]) -> dict[str, Any]:
    """One row of samples.parquet with its verdict, failed atoms, scores and answer, as plain data."""
    atoms = run.atoms(row)
    output = output_of(run, row)
    record = _record(run, row, atoms, output)
    failed = worst_first(atoms)
    outcomes = Counter(atom.outcome for atom in atoms)
    unchecked = Counter(atom.why or "no reason given" for atom in atoms if atom.outcome == "not_applicable")
    gating = record.get("gating") or {}
    return {
        "sample": row["sample"],
        "model": row["model"],
        "bucket": row["bucket"],
        "verdict": row["verdict"],
        "reasons": [str(reason) for reason in gating.get("reasons") or ()],
        "outcomes": {kind: outcomes[kind] for kind in ("pass", "fail", "not_applicable", "error")},
        "atoms": [{name: getattr(atom, name) for name in _SHOWN} for atom in failed[:ATOMS]],
        "more_atoms": max(0, len(failed) - ATOMS),
        "unchecked": [{"why": why, "count": count} for why, count in unchecked.items()],
        "scores": scores(record),
        "tables": _tables(record),
        "answer": _answer(row, output),
        "facts": shown_facts(record) or ([] if "response" in output else _facts(output)),
        **({"picture": record["image"]} if isinstance(record.get("image"), str) else {}),
    }


def shown_facts(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """What a protocol wants to be read beside a verdict (`shown` of its record): texts, numbers, or several under one name."""
    facts = []
    for name, value in (record.get("shown") or {}).items():
        items = value.items() if isinstance(value, dict) else [("", value)]
        text = ", ".join(f"{view.words(key)} {_text(item)}".strip() for key, item in items if item is not None)
        if text:
            facts.append({"label": view.words(name), "text": text[:_INSIDE]})
    return facts


def _text(value: Any) -> str:
    return numbers.number(value) if isinstance(value, float) else str(value)


def worst_first(atoms: Sequence[Atom]) -> list[Atom]:
    """The failed atoms, the critical ones first."""
    return sorted(
        (atom for atom in atoms if atom.failed), key=lambda atom: (atom.severity != "CRITICAL", atom.position)
    )


def output_of(run: Run, row: Mapping[str, Any]) -> dict[str, Any]:
    """What the run keeps of an answer; empty where it keeps nothing."""
    try:
        return run.output(row["part"], row["row"])
    except AdjudgeError:
        return {}


def _record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The protocol's own view of a sample; a protocol without one is shown by its atoms alone."""
    if run.recorder is None:
        return {}
    try:
        return run.recorder(run, row, atoms, output)
    except AdjudgeError:
        return {}


def scores(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The scores of a sample that are numbers."""
    optional = record.get("optional_scores")
    if not isinstance(optional, dict):
        return []
    return [
        {"label": view.words(name), "value": value, "text": numbers.number(value)}
        for name, value in optional.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


def _tables(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tables of a protocol's own on one sample, their cells as texts; the first column is words."""
    return [
        {
            "title": item["title"],
            "columns": list(item["columns"]),
            "rows": [[cell if isinstance(cell, str) else numbers.number(cell) for cell in row] for row in item["rows"]],
        }
        for item in record.get("tables") or ()
    ]


def _facts(output: Mapping[str, Any]) -> list[dict[str, str]]:
    """What a protocol keeps of an output instead of a text; a list, such as the answers of several runs, item by item."""
    facts = []
    for name, value in output.items():
        items = value if isinstance(value, list) else [value]
        for number, item in enumerate(items[:_ITEMS], 1):
            if name not in {"row", "file", "line"} and isinstance(item, str | int | float):
                label = f"{view.words(name)} {number}" if isinstance(value, list) else view.words(name)
                facts.append({"label": label, "text": str(item)[:_BEFORE]})
    return facts


def _answer(row: Mapping[str, Any], output: Mapping[str, Any]) -> dict[str, Any] | None:
    text = output.get("response")
    if text is None:
        return None
    start, end = row.get("start"), row.get("end")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end:
        start = end = 0
    before, inside, after = text[:start], text[start:end], text[end:]
    return {
        "before": before if len(before) <= _BEFORE else "… " + before[-_BEFORE:],
        "inside": inside if len(inside) <= _INSIDE else inside[:_INSIDE] + " …",
        "after": after if len(after) <= _INSIDE else after[: _INSIDE if not inside else _BEFORE] + " …",
        "characters": output.get("characters", len(text)),
    }


WORST, PASSED = 40, 3
BADNESS = "case s.bucket when 'failed' then 3 when 'errored' then 1 when 'passed' then 0 else 2 end"
"""A wrong answer before none, a broken instrument after both, as the page has it."""
Place = tuple[int, int]
"""Partition and number of a row."""


def worst_places(run: Run) -> tuple[list[Place], list[Place], int]:
    """Partition and number of the worst rows and of a few that passed, and how many did not pass.

    Wrong answers come before none; among them those first that fail a rule which the protocol calls `gravest`.
    """
    gravest = [str(code).replace("'", "''") for code in run.metrics.get("gravest") or ()]
    cases = " ".join(f"when '{code}' then {place}" for place, code in enumerate(gravest))
    gravity = f"min(case rule {cases} else {len(gravest)} end)" if gravest else "0"
    # The first of every bucket of every model comes before the second of any, so that no kind of failure is missing.
    _, rows = query(
        run,
        "with failed as (select part, sample as row, count(*) filter (where severity = 'CRITICAL') as critical, "  # noqa: S608 -- codes are quoted
        f"count(*) as failed, {gravity} as gravity from atoms where outcome = 'fail' group by part, sample), "
        f"placed as materialized (select s.part, s.row, s.sample, s.model, s.bucket, {BADNESS} as badness, coalesce(critical, 0) as critical, "
        f"coalesce(failed, 0) as failed, coalesce(gravity, {len(gravest)}) as gravity "
        "from samples s left join failed using (part, row)), "
        "ranked as (select *, row_number() over (partition by model, bucket, gravity "
        "order by critical desc, failed desc, sample) as place, count(*) over () as total from placed where bucket <> 'passed'), "
        "worst as (select * from ranked order by place, badness desc, gravity, critical desc, failed desc, model, sample "
        f"limit {WORST}), "
        f"fine as (select * from placed where bucket = 'passed' order by md5(sample), model limit {PASSED}) "
        "select part, row, total, -badness, gravity, -critical, -failed, model, sample, '' as draw from worst "
        "union all select part, row, 0, 0, 0, 0, 0, model, sample, md5(sample) from fine",
        threads=1,
    )
    failing = sorted((row for row in rows if row[2]), key=lambda row: row[3:9])
    fine = sorted((row for row in rows if not row[2]), key=lambda row: (row[9], row[7]))
    return [row[:2] for row in failing], [row[:2] for row in fine], failing[0][2] if failing else 0


def worst(run: Run, places: tuple[Sequence[Place], Sequence[Place], int] | None = None) -> dict[str, Any]:
    """The worst samples, with their evidence, as plain data."""
    failing, fine, not_passed = places or worst_places(run)
    hold(run, [*failing, *fine])
    return {
        "rows": [rendered(run, run.held[place][0]) for place in (*failing, *fine)],
        "not_passed": not_passed,
        "shown": len(failing),
        "query": "select sample, model, bucket, verdict from samples where bucket <> 'passed'",
    }


LARGEST, ALL = 512 << 10, 2 << 20
_KINDS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


def pictures(run: Run, names: Iterable[str], left: int = ALL) -> dict[str, str]:
    """The pictures that can be read, by the name that records give them, as long as bytes are `left`."""
    folders = _folders(run.manifest.config)
    shown: dict[str, str] = {}
    for name in dict.fromkeys(names):
        path = picture_file(folders, name)
        size = path.stat().st_size if path is not None else 0
        if path is None or not 0 < size <= min(LARGEST, left):
            continue
        content = path.read_bytes()
        kind = _kind(content)
        if kind is not None:
            shown[name] = f"data:{kind};base64,{base64.b64encode(content).decode()}"
            left -= size
    return shown


def picture_file(folders: Iterable[Path], name: str) -> Path | None:
    """The file of a picture below one of the folders; None where there is none that can be read."""
    for folder in folders:
        try:
            path = (folder / name).resolve()
            if path.is_relative_to(folder.resolve()) and path.is_file():
                return path
        except (OSError, ValueError):
            continue
    return None


def _folders(config: Any) -> list[Path]:
    """The folders of the files that a configuration names."""
    texts: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    for value in config.values() if isinstance(config, dict) else ():
        walk(value)
    folders = [Path(text).parent for text in texts if len(text) < 4096 and "\0" not in text and Path(text).suffix]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def _kind(content: bytes) -> str | None:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _KINDS.items() if content.startswith(start)), None)


_STATUSES = np.frombuffer(b"pfu", dtype=np.uint8)  # pass, fail, unknown, as the table of an agent has them
_LISTS = ("reason_words", "reason_quotes", "reason_verified", "quotes", "quotes_verified", "votes", "refused")


def panels_of(run: Run) -> list[Panel]:
    """The panels of the installed protocol; none where it cannot make them for this run."""
    try:
        return list(run.panels(run))
    except AdjudgeError:
        return []


def panel_columns(
    run: Run, panels: Sequence[Panel], samples: pa.Table, outputs: pa.Table | None
) -> dict[str, Sequence[Any]]:
    """The columns that the panels compute for a batch."""
    columns: dict[str, Sequence[Any]] = {}
    for panel in panels:
        if panel.values is not None:
            columns |= {f"@{name}": values for name, values in panel.values(run, samples, outputs).items()}
    return columns


def agent_of(run: Run) -> dict[str, Any] | None:
    """Who judged, and the titles of the checklist; None where a run keeps nothing of it."""
    if run.agent is None:
        return None
    return {
        "name": run.agent["agent"],
        "model": run.agent["model"],
        "language_model": run.agent["language_model"],
        "items": [item["title"] for item in run.agent["checklist"]],
        "rules": [item["rules"] for item in run.agent["checklist"]],
    }


def agent_columns(samples: pa.Table, table: pa.Table | None) -> dict[str, Sequence[Any]]:
    """Checklist, reasons, votes and quotes of a batch, from the partition's `table` of how verdicts came about."""
    if table is None:
        return {}
    rows = table.take(samples.column("row"))
    statuses = rows.column("status").to_pylist()
    columns: dict[str, Sequence[Any]] = {
        "@status": [_STATUSES[np.frombuffer(codes, dtype=np.uint8)].tobytes().decode() for codes in statuses],
        "@decided_by": rows.column("decided_by").to_pylist(),
        "@reasons": [
            [list(pair) for pair in zip(worst or (), sizes or (), strict=True)]
            for worst, sizes in zip(
                rows.column("reason_worst").to_pylist(), rows.column("reason_sizes").to_pylist(), strict=True
            )
        ],
    }
    stored = {name: rows.column(name) for name in _LISTS}
    return columns | {
        f"@{name}": column.to_pylist() for name, column in stored.items() if column.null_count < len(rows)
    }
