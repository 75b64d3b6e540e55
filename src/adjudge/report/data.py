"""The data block of report.html: every number and text that the page shows, derived from the run alone.

The block holds raw values beside their rendered text, so that a script can read it and a person sees the same. It names
no folder and holds nothing that is written after it, so it can be made again from the finished run and compared. The samples
shown with their evidence are the worst, some of every model, and a few that passed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjudge.report import numbers, view
from adjudge.report.explore import BADNESS, PAGE_BYTES, Explorer, explorer
from adjudge.report.samples import rendered
from adjudge.report.sections import contracts, sections
from adjudge.report.view import answer
from adjudge.runs.query import hold, query
from adjudge.runs.run import Run
from adjudge.runs.writer import MANIFEST, REPORT
from adjudge.stats.estimate import SHARE, Estimate

WORST, PASSED = 40, 3
Place = tuple[int, int]


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


SCHEMA = "adjudge-report/1"
ESTIMATES, MODES, MODELS, STARTS = 3000, 400, 100, 6
_AROUND = 1_500_000  # scripts, styles, axes of charts, the worst samples
_HALF = 0.5  # what stays below it would be lost on a scale from 0 to 1


def data_block(run: Run, explore: bool = False) -> tuple[dict[str, Any], Explorer | None]:
    """The whole block, as plain JSON data, and the samples that the page explores, if it does."""
    places = worst_places(run)
    modes, headline = failure_modes(run), _headline(run)
    tables = [section.block() for section in sections(run)]
    mark_shown(headline, [table for table in tables if table["place"] == "first"])
    block = {
        "schema": SCHEMA,
        "title": view.title(run),
        "protocol": run.manifest.protocol,
        "verdict": view.verdict(run),
        "gates": gates(run),
        "gates_in_words": view.gates_in_words(run),
        "buckets": _buckets(run),
        "failing": _failing(run),
        "headline": headline,
        "ranking": _ranking(run),
        "pairs": _pairs(run),
        "warnings": view.warnings(run),
        "charts": run.charts,
        "failure_modes": modes,
        "answer": answer(run, modes["rows"]),
        "estimates": _estimates(run),
        "provenance": provenance(run),
    }
    if tables:
        block["sections"] = tables
    stamped = contracts(run)
    if stamped:
        block["contracts"] = stamped
    samples = explorer(run, [*places[0], *places[1]], PAGE_BYTES - page_bytes(block)) if explore else None
    if samples is not None:
        block["explore"] = samples.summary
    block["worst"] = worst(run, places)
    return msgspec.json.decode(encode(block)), samples


def page_bytes(block: Mapping[str, Any]) -> int:
    """At least what a page takes beside packed samples: its data, escaped; twice that as tables; charts drawn; all else."""
    data, charts = encode(block), len(msgspec.json.encode(block.get("charts", [])))
    escaped = len(data) + 5 * sum(data.count(sign) for sign in (b"<", b">", b"&"))
    return 3 * escaped + 2 * charts + _AROUND


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
            "text": view.gate_number(run, gate, "observed"),
            "must": view.gate_must(run, gate),
        }
        for name, gate in run.metrics["gates"].items()
    ]


def _buckets(run: Run) -> dict[str, Any]:
    rows = view.buckets(run)
    models = [name for name in rows if name != "all"]
    shown = models if len(models) == 1 else [*(["all"] if "all" in rows else []), *models[:MODELS]]
    return {**view.bucket_block({name: rows[name] for name in shown}), "folded": max(0, len(models) - MODELS)}


def _failing(run: Run) -> dict[str, Any]:
    """The systems with a sample that did not pass, by the column that names systems; whether there are several in all."""
    column = view.system_column(run)
    _, rows = query(
        run,
        f"select {column}::varchar, bool_and(bucket = 'passed') from samples group by all order by all",  # noqa: S608 -- one of two names
        threads=1,
    )
    names = [name for name, passed in rows if not passed]
    return {"by": column, "systems": names[:STARTS], "folded": len(names[STARTS:]), "alone": len(rows) == 1}


def _headline(run: Run) -> dict[str, Any]:
    headline = view.headline(run)
    columns = [
        {
            "name": name,
            "label": headline.title(name),
            "percent": headline.metrics[name].unit == SHARE,
            "scale": _scale(
                [headline.cells[key] for key in headline.cells if key[1] == name], headline.metrics[name].unit
            ),
            "cells": [
                {
                    "label": view.label(slice_),
                    **_cell(headline.cells.get((slice_, name)), headline.metrics[name].unit),
                }
                for slice_ in headline.slices[:MODELS]
            ],
        }
        for name in headline.names
    ]
    level = next((item.level for item in headline.cells.values()), 0.95)
    return {"key": headline.key, "columns": columns, "level": numbers.number(level, unit="%")}


def mark_shown(headline: Mapping[str, Any], tables: Sequence[Mapping[str, Any]]) -> None:
    """Name, for every headline column, the column of `tables` that shows the same numbers, so that none stands twice."""
    shown = [
        (column["title"], {row[0]["text"]: row[index]["text"] for row in table["rows"]})
        for table in tables
        for index, column in enumerate(table["columns"])
        if column["numeric"]
    ]
    for column in headline["columns"]:
        texts = {cell["label"]: cell["text"] for cell in column["cells"]}
        for title, others in shown:
            alone = len(texts) == len(others) == 1 and title == column["label"]
            if others == texts if len(set(texts.values())) > 1 else alone and [*others.values()] == [*texts.values()]:
                column["shown_as"] = title


def _scale(cells: Sequence[Estimate], unit: str) -> dict[str, Any]:
    """The ends of a column's scale: 0 to 1 where that is what the numbers fill, otherwise what their intervals span."""
    seen = [end for cell in cells for end in (cell.low, cell.value, cell.high) if end is not None]
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    if low >= 0.0 and high <= 1.0 and (unit == SHARE or high > _HALF or low == high):
        low, high = 0.0, 1.0
    if low == high:
        low, high = min(0.0, low), max(0.0, high)
    texts = [numbers.number(end, unit=unit) for end in (low, high)]
    return {"low": low, "high": high, "low_text": texts[0], "high_text": texts[1]}


def _cell(value: Estimate | None, unit: str) -> dict[str, Any]:
    if value is None:
        return {"value": None, "low": None, "high": None, "text": "–", "note": "not measured for this row"}
    note = value.why if value.value is None else f"n = {numbers.count(value.n)}, {value.method or 'no interval'}"
    return {
        "value": value.value,
        "low": value.low,
        "high": value.high,
        "text": numbers.estimate(value, unit=unit),
        "note": note,
    }


def _ranking(run: Run) -> dict[str, Any] | None:
    comparison = view.tie_groups(run)
    if comparison is None:
        return None
    metric = run.metric(str(comparison.get("metric", "score")))
    return {
        "metric": metric.title,
        "rows": [
            {
                "rank": item["rank"],
                "model": item["model"],
                "value": item["value"],
                "text": numbers.number(item["value"], unit=metric.unit),
                "letters": view.letters(item),
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
        cells = [_cell(Estimate.from_dict(pair[key]), run.metric(key).unit) for key in columns]
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
    return {"columns": [run.metric(key).title for key in columns], "rows": rows}


def _estimates(run: Run) -> dict[str, Any]:
    rows = []
    for (name, where), value in list(run.estimates.items())[:ESTIMATES]:
        cell = _cell(value, run.metric(name).unit)
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
        threads=1,
    )
    titles = {entry["code"]: entry["title"] for rule in run.layout.rules for entry in (rule, *rule["variants"])}
    modes = [
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
    return {"rows": modes[:MODES], "total": len(modes)}


def provenance(run: Run) -> dict[str, Any]:
    """How a run came to be: command, inputs, digests, seeds, versions and the whole configuration."""
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
