"""A run's estimates as CSV: full precision for machines, the rendered text beside it."""

from __future__ import annotations

import csv
import io

from adjudge.report import numbers
from adjudge.report.numbers import spreadsheet
from adjudge.runs.run import Run

COLUMNS = ("name", "slice", "value", "low", "high", "level", "n", "method", "seed", "why", "warnings", "text")


def estimates_csv(run: Run) -> str:
    """One line an estimate; a value that does not exist is an empty cell, and `why` says so."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (name, where), item in run.estimates.items():
        text = numbers.estimate(item, unit=run.metric(name).unit)
        plain = item.to_dict() | {"warnings": "; ".join(item.warnings), "name": name, "slice": where, "text": text}
        writer.writerow([spreadsheet(plain[column]) for column in COLUMNS])
    return out.getvalue()
