"""The data block of report.html: every number and text that the page shows, derived from the run alone.

The block holds raw values beside their rendered text, so that a script can read it and a person sees the same. It names
no folder and holds nothing that is written after it, so it can be made again from the finished run and compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjudge.errors import AdjudgeError
from adjudge.evidence.atoms import Atom
from adjudge.report import numbers, view
from adjudge.report.contract import contracts
from adjudge.runs.query import query
from adjudge.runs.run import Run
from adjudge.runs.writer import MANIFEST, REPORT
from adjudge.stats.estimate import Estimate

SCHEMA = "adjudge-report/1"
WORST, PASSED, ATOMS, ESTIMATES, MODES = 40, 3, 24, 3000, 400
_BEFORE, _INSIDE = 400, 2400


def data_block(run: Run) -> dict[str, Any]:
    """The whole block, as plain JSON data."""
    block = {
        "schema": SCHEMA,
        "title": view.title(run),
        "protocol": run.manifest.protocol,
        "verdict": view.verdict(run),
        "gates": gates(run),
        "buckets": _buckets(run),
        "headline": _headline(run),
        "ranking": _ranking(run),
        "pairs": _pairs(run),
        "warnings": view.warnings(run),
        "charts": run.charts,
        "failure_modes": failure_modes(run),
        "worst": worst(run),
        "estimates": _estimates(run),
        "provenance": _provenance(run),
    }
    stamped = contracts(run)
    if stamped:
        block["contracts"] = stamped
    plain: dict[str, Any] = msgspec.json.decode(encode(block))
    return plain


def encode(block: Mapping[str, Any]) -> bytes:
    """The block as the bytes that are hashed: sorted keys, no spaces."""
    return msgspec.json.encode(block, order="sorted")


def digest(block: Mapping[str, Any]) -> str:
    """SHA-256 over the block's canonical bytes."""
    return hashlib.sha256(encode(block)).hexdigest()


def gates(run: Run) -> list[dict[str, Any]]:
    """Every gate with its outcome, in the order it was given."""
    return [
        {
            "name": name,
            **gate,
            "text": numbers.number(gate["observed"]),
        }
        for name, gate in run.metrics["gates"].items()
    ]


def _buckets(run: Run) -> dict[str, Any]:
    rows = view.buckets(run)
    names = view.used_buckets(rows)
    models = [name for name in rows if name != "all"]
    shown = models if len(models) == 1 else [*(["all"] if "all" in rows else []), *models]
    return {
        "names": list(names),
        "rows": [
            {
                "label": name,
                "n": rows[name]["n"],
                "counts": {bucket: rows[name][bucket] for bucket in names},
                "shares": {
                    bucket: numbers.number(rows[name][bucket] / rows[name]["n"], percent=True)
                    if rows[name]["n"]
                    else "n/a"
                    for bucket in names
                },
            }
            for name in shown
        ],
    }


def _headline(run: Run) -> dict[str, Any]:
    found = view.headline(run)
    columns = [
        {
            "name": name,
            "label": view.words(name),
            "percent": found.percent(name),
            "scale": _scale([found.cells[key] for key in found.cells if key[1] == name], percent=found.percent(name)),
            "cells": [
                {
                    "label": view.label(slice_),
                    **_cell(
                        found.cells.get((slice_, name)),
                        percent=found.percent(name),
                        unit=numbers.unit_of(name, found.units),
                    ),
                }
                for slice_ in found.slices
            ],
        }
        for name in found.names
    ]
    level = next((item.level for item in found.cells.values()), 0.95)
    return {"key": found.key, "columns": columns, "level": numbers.number(level, percent=True)}


def _scale(cells: Sequence[Estimate], *, percent: bool) -> dict[str, Any]:
    """The ends of a column's scale: 0 to 1 for shares, otherwise what its intervals span."""
    seen = [end for cell in cells for end in (cell.low, cell.value, cell.high) if end is not None]
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    if percent and low >= 0.0 and high <= 1.0:
        low, high = 0.0, 1.0
    if low == high:
        low, high = low - 0.5, high + 0.5
    texts = [numbers.number(end, percent=percent) for end in (low, high)]
    return {"low": low, "high": high, "low_text": texts[0], "high_text": texts[1]}


def _cell(value: Estimate | None, *, percent: bool, unit: str = "") -> dict[str, Any]:
    if value is None:
        return {"value": None, "low": None, "high": None, "text": "–", "note": "not measured for this row"}
    note = value.why if value.value is None else f"n = {numbers.count(value.n)}, {value.method or 'no interval'}"
    return {
        "value": value.value,
        "low": value.low,
        "high": value.high,
        "text": numbers.estimate(value, percent=percent, unit=unit),
        "note": note,
    }


def _ranking(run: Run) -> dict[str, Any] | None:
    comparison = view.tie_groups(run)
    if comparison is None:
        return None
    metric = str(comparison.get("metric", "score"))
    percent = numbers.is_share(metric, view.units(run))
    return {
        "metric": view.words(metric),
        "rows": [
            {
                "rank": item["rank"],
                "model": item["model"],
                "value": item["value"],
                "text": numbers.number(item["value"], percent=percent),
                "letters": "".join(str(letter) for letter in item.get("tie_groups") or ()),
            }
            for item in comparison["ranking"]
        ],
    }


def _pairs(run: Run) -> dict[str, Any] | None:
    """Paired differences, where the protocol compares its models: every estimate of a pair is a column."""
    comparison = run.metrics.get("comparison")
    pairs = comparison.get("pairs") if isinstance(comparison, dict) else None
    if not isinstance(pairs, list) or not pairs or not all(isinstance(pair, dict) and "a" in pair for pair in pairs):
        return None
    columns = [key for key, value in pairs[0].items() if isinstance(value, dict) and "value" in value]
    rows = []
    for pair in pairs:
        cells = []
        for key in columns:
            found = Estimate.from_dict(pair[key])
            cells.append(_cell(found, percent=key.startswith(("eligibility", "rate", "accuracy"))))
        adjusted = pair.get("p_holm")
        rows.append(
            {
                "a": pair["a"],
                "b": pair["b"],
                "cells": cells,
                "p": pair.get("p"),
                "p_text": numbers.p_value(pair.get("p"), pair.get("log10_p")),
                "p_holm": adjusted,
                "p_holm_text": numbers.p_value(adjusted),
            }
        )
    return {"columns": [view.words(key) for key in columns], "rows": rows}


def _estimates(run: Run) -> dict[str, Any]:
    units = view.units(run)
    rows = []
    for (name, where), value in list(run.estimates().items())[:ESTIMATES]:
        cell = _cell(value, percent=numbers.is_share(name, units), unit=numbers.unit_of(name, units))
        rows.append(
            {
                "name": name,
                "slice": where,
                **{key: cell[key] for key in ("value", "low", "high", "text")},
                "n": value.n,
                "method": value.method,
                "why": value.why,
                "warnings": list(value.warnings),
            }
        )
    return {"rows": rows, "total": len(run.metrics["estimates"])}


def failure_modes(run: Run) -> dict[str, Any]:
    """Failed and broken atoms by model and rule, most first."""
    _, rows = query(
        run,
        "with failed as (select part, sample as row, rule, "
        "count(*) filter (where outcome = 'fail' and severity = 'CRITICAL') as critical, "
        "count(*) filter (where outcome = 'fail' and severity <> 'CRITICAL') as warning, "
        "count(*) filter (where outcome = 'error') as broken "
        "from atoms where outcome in ('fail', 'error') group by all) "
        "select s.model, f.rule, sum(critical)::bigint, sum(warning)::bigint, sum(broken)::bigint, count(*)::bigint as samples "
        "from failed f join samples s using (part, row) group by all order by samples desc, f.rule, s.model",
    )
    titles = {entry["code"]: entry["title"] for rule in run.layout.rules for entry in (rule, *rule["variants"])}
    found = [
        {
            "model": model,
            "rule": rule,
            "title": titles.get(rule, rule),
            "critical": critical,
            "warning": warning,
            "broken": broken,
            "samples": samples,
        }
        for model, rule, critical, warning, broken, samples in rows
    ]
    return {"rows": found[:MODES], "total": len(found)}


def worst(run: Run) -> dict[str, Any]:
    """The samples with the most critical failures, some of every model, and a few that passed, with their evidence."""
    select = (
        "with failed as (select part, sample as row, count(*) filter (where severity = 'CRITICAL') as critical, "
        "count(*) as failed from atoms where outcome = 'fail' group by all), "
        "placed as (select s.sample, s.model, s.bucket, coalesce(critical, 0) as critical, coalesce(failed, 0) as failed "
        "from samples s left join failed using (part, row)) "
    )
    # The first of every bucket of every model comes before the second of any, so that no kind of failure is missing.
    ranked = (
        ", ranked as (select *, row_number() over (partition by model, bucket order by critical desc, failed desc, sample) "
        "as place, count(*) over () as total from placed where bucket <> 'passed') "
        "select sample, model, total, critical, failed from ranked order by place, critical desc, failed desc, model, sample"
    )
    chosen = sorted(
        query(run, f"{select}{ranked} limit {WORST}")[1], key=lambda row: (-row[3], -row[4], row[1], row[0])
    )
    sampled = f" select sample, model from placed where bucket = 'passed' order by md5(sample), model limit {PASSED}"  # noqa: S608 -- a number of our own
    passed = query(run, select + sampled)[1]
    picked = [(sample, model) for sample, model, *_ in (*chosen, *passed)]
    rows = _rows(run, [sample for sample, _ in picked])
    return {
        "rows": [_sample(run, rows[key]) for key in picked],
        "not_passed": int(chosen[0][2]) if chosen else 0,
        "shown": len(chosen),
        "query": "select sample, model, bucket, verdict from samples where bucket <> 'passed'",
    }


def _rows(run: Run, samples: Sequence[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows of samples.parquet by sample and model; DuckDB reads wide columns only where the id fits."""
    if not samples:
        return {}
    listed = ", ".join("'" + sample.replace("'", "''") + "'" for sample in dict.fromkeys(samples))
    names, rows = query(run, f"select * from samples where sample in ({listed})")  # noqa: S608 -- quoted above
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return {(row["sample"], row["model"]): row for row in found}


def _sample(run: Run, row: dict[str, Any]) -> dict[str, Any]:
    found = run.atoms(row)
    output = _output(run, row)
    record = _record(run, row, found, output)
    failed = sorted((atom for atom in found if atom.failed), key=lambda a: (a.severity != "CRITICAL", a.position))
    outcomes = {
        kind: sum(atom.outcome == kind for atom in found) for kind in ("pass", "fail", "not_applicable", "error")
    }
    gating = record.get("gating") or {}
    return {
        "sample": row["sample"],
        "model": row["model"],
        "bucket": row["bucket"],
        "verdict": row["verdict"],
        "reasons": [str(reason) for reason in gating.get("reasons") or ()],
        "outcomes": outcomes,
        "atoms": [_atom(atom) for atom in failed[:ATOMS]],
        "more_atoms": max(0, len(failed) - ATOMS),
        "unchecked": _unchecked(found),
        "scores": _scores(record),
        "answer": _answer(row, output),
        "facts": [] if "response" in output else _facts(output),
    }


def _output(run: Run, row: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return run.output(row["part"], row["row"])
    except AdjudgeError:
        return {}


def _record(run: Run, row: dict[str, Any], found: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The protocol's own view of a sample; a protocol without one is shown by its atoms alone."""
    if run.recorder is None:
        return {}
    try:
        return run.recorder(run, row, found, output)
    except AdjudgeError:
        return {}


def _atom(atom: Atom) -> dict[str, Any]:
    return {
        "rule": atom.rule,
        "field": atom.field,
        "step": atom.step,
        "severity": atom.severity,
        "message": atom.message,
        "observed": atom.observed,
        "limits": atom.limits,
    }


def _unchecked(found: Sequence[Atom]) -> list[dict[str, Any]]:
    reasons: dict[str, int] = {}
    for atom in found:
        if atom.outcome == "not_applicable":
            reasons[atom.why or "no reason given"] = reasons.get(atom.why or "no reason given", 0) + 1
    return [{"why": why, "count": count} for why, count in reasons.items()]


def _scores(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    scores = record.get("optional_scores")
    if not isinstance(scores, dict):
        return []
    return [
        {"label": view.words(name), "value": value, "text": numbers.number(value)}
        for name, value in scores.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


def _facts(output: Mapping[str, Any]) -> list[dict[str, str]]:
    """What a protocol keeps of an output instead of a text."""
    return [
        {"label": view.words(name), "text": str(value)[:_BEFORE]}
        for name, value in output.items()
        if name not in {"row", "file", "line"} and isinstance(value, str | int | float)
    ]


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


def _provenance(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    return {
        "timestamp": manifest.timestamp,
        "command": list(manifest.command),
        "protocol": f"{manifest.protocol} {manifest.protocol_version}",
        "schema_version": manifest.schema_version,
        "digests": {name: value for name, value in manifest.digests.items() if name != "report_data"},
        "seeds": manifest.seeds,
        "inputs": [msgspec.to_builtins(item) for item in manifest.inputs],
        "files": [msgspec.to_builtins(item) for item in manifest.files if item.path not in {REPORT, MANIFEST}],
        "environment": manifest.environment,
        "config": manifest.config,
    }
