"""One door to all formats: a run in, the bytes of a file out. Its estimates as CSV are made here."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adjudge.report import numbers
from adjudge.report.charts import FORMATS, draw
from adjudge.runs.run import Run

if TYPE_CHECKING:
    from adjudge.report.compared import Side

COMPARISONS = ("html", "md", "txt")
ENDINGS = ("html", "md", "tex", "csv", *FORMATS, "txt")
"""What a report can be, by the ending of its file."""
_ESTIMATE = ("name", "slice", "value", "low", "high", "level", "n", "method", "seed", "why", "warnings", "text")


def render(runs: Sequence[Run], kind: str, chart: str | None = None, *, explore: bool = True) -> bytes:
    """The bytes of a report: html, md, tex, csv, txt, or a chart as png, svg or pdf."""
    if kind in FORMATS:
        return draw(runs[0], chart, kind)
    if kind == "html":
        from adjudge.report.html import render as page

        return page(runs[0], explore=explore)
    if kind == "md":
        from adjudge.report.markdown import markdown

        return markdown(runs[0]).encode()
    if kind == "tex":
        from adjudge.report.latex import latex

        return latex(runs).encode()
    if kind == "csv":
        return estimates_csv(runs[0]).encode()
    from adjudge.report.text import summary

    return (summary(runs[0]) + "\n").encode()


def render_comparison(comparison: Mapping[str, Any], sides: Sequence[Side], kind: str) -> bytes:
    """The bytes of a comparison, given as its JSON with the systems behind it: html, md or txt."""
    if kind == "html":
        from adjudge.report.side_by_side import render as page

        return page(comparison, sides)
    if kind == "md":
        from adjudge.report.comparison_markdown import markdown

        return markdown(comparison).encode()
    from adjudge.report.comparison import text

    return (text(comparison) + "\n").encode()


def estimates_csv(run: Run) -> str:
    """One line an estimate; a value that does not exist is an empty cell, and `why` says so."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_ESTIMATE)
    for (name, where), item in run.estimates.items():
        text = numbers.estimate(item, unit=run.metric(name).unit)
        plain = item.to_dict() | {"warnings": "; ".join(item.warnings), "name": name, "slice": where, "text": text}
        writer.writerow([numbers.spreadsheet(plain[column]) for column in _ESTIMATE])
    return out.getvalue()
