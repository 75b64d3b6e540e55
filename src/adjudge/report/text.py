"""The terminal summary of a run: where every sample ended, the headline estimates, gates, warnings, what to do next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from textwrap import TextWrapper
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.report import numbers, view
from adjudge.report.contracts import contracts
from adjudge.report.numbers import WIDTH, line, shell, short_lines, table
from adjudge.runs.run import Run
from adjudge.runs.writer import REPORT, SAMPLES

_ROWS = 24
_NOTES = 2
"""Notes that are shown of a run under a contract, whose page has them all."""


def summary(run: Run) -> str:
    """The run in plain text that fits 100 columns, for any protocol."""
    stamped = contracts(run) if view.stamped(run) else []
    first, buckets, estimates = _sections(run, "first"), _buckets(run), _headline(run)
    blocks = [
        view.title(run),
        _contracts(stamped),
        *((estimates, *first, *_negative(stamped), buckets) if stamped else (*first, buckets, estimates)),
        *_sections(run, "results"),
        _ranking(run),
        _gates(run),
        *_checklists(stamped),
        _warnings(run, _NOTES if stamped else None),
        _next(run),
    ]
    return "\n\n".join(block for block in blocks if block)


def _contracts(stamped: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for item in stamped:
        name = f"{line(item['name'], 32)}: " if item["name"] else ""
        lines.append(f"{name}{line(item['sentence'])}")
        lines += [f"{name}{line(item['calibration'])}"] if item["calibration"] else []
        lines += [f"violates {entry['code']}: {line(entry['reason'])}" for entry in item["violations"]]
    return "\n".join(textwrap.fill(text, WIDTH, subsequent_indent="    ") for text in lines)


def _negative(stamped: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    wrap = TextWrapper(WIDTH, initial_indent="  ", subsequent_indent="    ")
    for item in stamped:
        if item["negative"]:
            head = "Negative results" + (f" of {line(item['name'], 32)}" if item["name"] else "")
            yield "\n".join([head, *(wrap.fill(line(text)) for text in item["negative"])])


def _checklists(stamped: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for item in stamped:
        texts = ["Checklist" + (f" of {line(item['name'], 32)}" if item["name"] else "")]
        for entry in item["checklist"]:
            command = f": {entry['closed_by']}" if entry["closed_by"] else ""
            texts.append(f"  {entry['outcome']:<8}{line(entry['line'])}{line(command)}")
        yield "\n".join(texts)


def _sections(run: Run, place: str) -> list[str]:
    blocks = []
    for section in view.sections(run, place):
        if not section.terminal:
            continue
        rows = section.rows[: section.terminal]
        body = list(zip(*(short_lines(column, 48) for column in zip(*rows, strict=True)), strict=True))
        hidden = len(section.rows) - len(body)
        parts = [
            line(section.title),
            textwrap.fill(line(section.note), WIDTH) if section.note else "",
            table([line(title) for title in section.head], body, left=section.left) if body else line(section.empty),
            f"… and {numbers.count(hidden)} more (adjudge report)" if hidden else "",
        ]
        blocks.append("\n".join(part for part in parts if part))
    return blocks


def _buckets(run: Run) -> str:
    rows = view.buckets(run)
    if not rows:
        return ""
    names = view.used_buckets(rows)
    models = [name for name in rows if name != "all"]
    shown = models[:_ROWS]
    labels = short_lines(shown, 32)
    if "all" in rows and len(models) != 1:
        shown, labels = [*shown, "all"], [*labels, "all"]
    body = [
        [label, *(numbers.count(rows[name][bucket]) for bucket in names), numbers.count(rows[name]["n"])]
        for name, label in zip(shown, labels, strict=True)
    ]
    return "Where every sample ended\n" + table(["", *names, "n"], body) + _more(len(models), "adjudge query")


def _headline(run: Run) -> str:
    headline = view.headline(run)
    if not headline.names:
        return ""
    level = next(iter(headline.cells.values())).level
    head, body = headline.table()
    labels = short_lines([label for label, *_ in body[:_ROWS]], 32)
    rows = [[label, *texts] for label, (_, *texts) in zip(labels, body, strict=False)]
    if len(headline.slices) == 1:
        head[0] = ""
    text = f"Estimates with {numbers.number(level, unit='%')} intervals\n{table(head, rows)}"
    reasons = {
        f"{view.label(where)}, {headline.title(name)}: n/a, {item.why}"
        for (where, name), item in headline.cells.items()
        if item.value is None
    }
    return "\n".join([text + _more(len(body), "metrics.json"), *(line(reason, WIDTH) for reason in sorted(reasons))])


def _ranking(run: Run) -> str:
    comparison = view.tie_groups(run)
    if comparison is None:
        return ""
    metric = run.metric(str(comparison.get("metric", "score")))
    ranked = comparison["ranking"][:_ROWS]
    rows = [
        [str(item["rank"]), name, numbers.number(item["value"], unit=metric.unit), view.letters(item)]
        for item, name in zip(ranked, short_lines([str(item["model"]) for item in ranked], 32), strict=True)
    ]
    head = ["rank", "", metric.title, "tie group"]
    return (
        "Ranking (paired tests, Holm-adjusted; who shares a letter cannot be told apart;\n"
        "rank: 1 + the models whose first tie group is better)\n"
        f"{table(head, rows, left=2)}{_more(len(comparison['ranking']), 'metrics.json')}"
    )


def _gates(run: Run) -> str:
    gates = run.metrics["gates"]
    if not gates:
        return ""
    wrap = TextWrapper(WIDTH, initial_indent="  ", subsequent_indent=" " * 11)
    lines = [f"Gates: {view.gates_in_words(run)}"]
    for name, gate in gates.items():
        must = "" if gate["op"] in name else f"{view.gate_must(run, gate)}; "
        words = f"{str(gate['outcome']).upper():<7}  {line(name)}  ({must}{view.gate_observed(run, gate)})"
        lines.append(wrap.fill(words))
    return "\n".join(lines)


def _warnings(run: Run, most: int | None) -> str:
    warnings = view.warnings(run)
    wrap = TextWrapper(WIDTH, initial_indent="  ! ", subsequent_indent="    ", break_long_words=False)
    lines = [wrap.fill(line(text)) for text in warnings[:most]]
    hidden = len(warnings) - len(lines)
    lines += [f"    … and {hidden} more notes (adjudge report)"] if hidden else []
    return "\n".join(["Read these before the numbers", *lines]) if warnings else ""


def _next(run: Run) -> str:
    lines = [f"Run      {run.path}"]
    if (run.path / REPORT).is_file():
        lines.append(f"Report   {run.path / REPORT}")
    example = first_failure(run)
    if example is not None:
        sample, model = example
        named = f" --model {shell(model)}" if model else ""
        lines.append(f"Explain  adjudge explain {run.path} {shell(sample)}{named}")
    lines.append(f"Verify   adjudge verify {run.path}")
    lines.append(f"Digest   sha256:{run.digest}")
    return "\n".join(lines)


def first_failure(run: Run) -> tuple[str, str | None] | None:
    """A sample worth looking at: the first that failed, otherwise the first; None for an empty run."""
    columns = pq.read_table(run.path / SAMPLES, columns=["sample", "model", "bucket"], use_threads=False)
    if not columns.num_rows:
        return None
    failed = columns.column("bucket").cast(pa.string()).index("failed").as_py()
    row = columns.slice(max(failed, 0), 1).to_pylist()[0]
    several = len(columns.column("model").unique()) > 1
    return str(row["sample"]), str(row["model"]) if several else None


def _more(total: int, where: str) -> str:
    return f"\n… and {numbers.count(total - _ROWS)} more ({where})" if total > _ROWS else ""
