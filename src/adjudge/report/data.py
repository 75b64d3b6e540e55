"""The data block of report.html: every number and text that the page shows, derived from the run alone.

The block holds raw values beside their rendered text, so that a script can read it and a person sees the same. It names
no folder and holds nothing that is written after it, so it can be made again from the finished run and compared.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjudge.report import numbers, view
from adjudge.report.contracts import contracts
from adjudge.report.explore import PAGE_BYTES, Explorer, explorer
from adjudge.report.numbers import line
from adjudge.report.samples import worst, worst_places
from adjudge.runs.query import query
from adjudge.runs.run import Run
from adjudge.runs.writer import MANIFEST, REPORT
from adjudge.stats.estimate import SHARE, Estimate

SCHEMA = "adjudge-report/1"
ESTIMATES, MODES, MODELS, STARTS = 3000, 400, 100, 6
_TIES = 4
_AROUND = 1_500_000  # scripts, styles, axes of charts, the worst samples
_HALF = 0.5  # what stays below it would be lost on a scale from 0 to 1


def data_block(run: Run, explore: bool = False) -> tuple[dict[str, Any], Explorer | None]:
    """The whole block, as plain JSON data, and the samples that the page explores, if it does."""
    places = worst_places(run)
    modes, headline = failure_modes(run), _headline(run)
    tables = [section.block() for section in view.sections(run)]
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
    if view.stamped(run):
        block["contracts"] = contracts(run)
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
        {"name": name, **gate, "text": view.gate_number(run, gate, "observed"), "must": view.gate_must(run, gate)}
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
    columns = []
    for name in headline.names:
        unit, cells = headline.metrics[name].unit, [headline.cells.get((slice_, name)) for slice_ in headline.slices]
        shown = zip(headline.slices[:MODELS], cells, strict=False)
        columns.append(
            {
                "name": name,
                "label": headline.title(name),
                "percent": unit == SHARE,
                "scale": _scale([cell for cell in cells if cell is not None], unit),
                "cells": [{"label": view.label(slice_), **_cell(cell, unit)} for slice_, cell in shown],
            }
        )
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
    ends = {"value": value.value, "low": value.low, "high": value.high}
    return {**ends, "text": numbers.estimate(value, unit=unit), "note": note}


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
    rows = [
        {
            "a": pair["a"],
            "b": pair["b"],
            "cells": [_cell(Estimate.from_dict(pair[key]), run.metric(key).unit) for key in columns],
            "p": pair.get("p"),
            "p_text": numbers.p_value(pair.get("p"), pair.get("log10_p")),
            "p_holm": pair.get("p_holm"),
            "p_holm_text": numbers.p_value(pair.get("p_holm")),
        }
        for pair in pairs
    ]
    return {"columns": [run.metric(key).title for key in columns], "rows": rows}


def _estimates(run: Run) -> dict[str, Any]:
    kept = ("value", "low", "high", "n", "method", "why", "warnings")
    rows = [
        {
            "name": name,
            "slice": where,
            "text": numbers.estimate(estimate, unit=run.metric(name).unit),
            **{key: getattr(estimate, key) for key in kept},
        }
        for (name, where), estimate in list(run.estimates.items())[:ESTIMATES]
    ]
    return {"rows": rows, "total": len(run.metrics["estimates"])}


def failure_modes(run: Run) -> dict[str, Any]:
    """Failed and broken atoms by model and rule, most first."""
    names, rows = query(
        run,
        "with failed as (select part, sample as row, rule, "
        "count(*) filter (where outcome = 'fail' and severity = 'CRITICAL') as critical, "
        "count(*) filter (where outcome = 'fail' and severity <> 'CRITICAL') as warning, "
        "count(*) filter (where outcome = 'error') as broken "
        "from atoms where outcome in ('fail', 'error') group by all) "
        "select s.model, f.rule, sum(critical)::bigint as critical, sum(warning)::bigint as warning, "
        "sum(broken)::bigint as broken, count(*)::bigint as samples "
        "from failed f join samples s using (part, row) group by all order by samples desc, f.rule, s.model",
        threads=1,
    )
    titles = view.rule_titles(run)
    modes = [dict(zip(names, row, strict=True)) for row in rows]
    for mode in modes:
        mode["title"] = titles.get(mode["rule"], mode["rule"])
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


def answer(run: Run, modes: Sequence[Mapping[str, Any]]) -> str:
    """The sentence, from the headline estimates, the ranking and the failure `modes`; numbers stand below it, so it has few."""
    clauses = [_ends(run) or _passed(run), _most_failed(run, modes)]
    text = "; ".join(clause for clause in clauses if clause)
    return f"{text}." if text else ""


def _ends(run: Run) -> str:
    """The best and the worst of several by the metric that ranks them, else by the first shown."""
    shown, ranking = view.headline(run), view.tie_groups(run)
    name = str(ranking["metric"]) if ranking else next((each for each in shown.names), "")
    if name not in shown.names:
        return ""
    estimates = {where: shown.cells.get((where, name)) for where in shown.slices}
    known: dict[str, Estimate] = {where: cell for where, cell in estimates.items() if cell and cell.value is not None}
    if len(known) < 2 or shown.metrics[name].better is None:
        return ""
    order = sorted(known, key=lambda where: known[where].value or 0.0, reverse=shown.metrics[name].better == "higher")
    first, last = (line(view.label(where), 40) for where in (order[0], order[-1]))
    metric = shown.title(name)
    if known[order[0]].value == known[order[-1]].value:
        return f"All {len(order)} are equal by {metric}"
    tied = _tied(ranking) if ranking else []
    if len(tied) == len(order):
        return f"By {metric} no two of {len(order)} can be told apart"
    best, worst = ("highest", "lowest") if shown.metrics[name].better == "higher" else ("lowest", "highest")
    shared = f" (not told apart from {', '.join(tied[1:])})" if 1 < len(tied) <= _TIES and tied[0] == first else ""
    open_ = ", but their intervals overlap" if not ranking and _overlap(known[order[0]], known[order[-1]]) else ""
    return f"{first} has the {best} {metric}{shared} and {last} the {worst}{open_}"


def _overlap(a: Estimate, b: Estimate) -> bool:
    """Whether intervals share a value; an absent one shares all."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return True
    return a.low <= b.high and b.low <= a.high


def _tied(ranking: Mapping[str, Any]) -> list[str]:
    """The first of a ranking with all that share a letter with it."""
    places = ranking["ranking"]
    best = set(view.letters(places[0]))
    return [line(str(place["model"]), 40) for place in places if best & set(view.letters(place))]


def _passed(run: Run) -> str:
    rows = view.buckets(run)
    row = rows.get("all") or next(iter(rows.values()), None)
    if row is None:
        return ""
    return f"{numbers.count(row['passed'])} of {numbers.count(row['n'])} samples passed"


def _most_failed(run: Run, modes: Sequence[Mapping[str, Any]]) -> str:
    """The rule that failed on most samples; of two, the one with more critical failures, then the first of the rule table."""
    counts: Counter[str] = Counter()
    critical: Counter[str] = Counter()
    for mode in modes:
        counts[mode["rule"]] += mode["samples"]
        critical[mode["rule"]] += mode["critical"]
    if not counts:
        return "no rule failed"
    order = list(view.rule_titles(run))
    first = min(counts, key=lambda code: (-counts[code], -critical[code], order.index(code) if code in order else -1))
    title = next(str(mode["title"]) for mode in modes if mode["rule"] == first)
    times = "once" if counts[first] == 1 else f"{numbers.count(counts[first])} times"
    return f"what failed most often, {times}: “{line(title, 160)}”"
