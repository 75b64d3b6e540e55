"""`adjudge query`: SQL over a run."""

from __future__ import annotations

import csv
import sys

import click
import msgspec

from adjudge.cli.logs import logs_as_runs
from adjudge.report.numbers import json_line, line, spreadsheet, terminal


@click.command()
@click.argument("run", type=click.Path(), metavar="RUN_OR_LOG", callback=logs_as_runs)
@click.argument("sql")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["table", "csv", "json", "jsonl"]),
    default="table",
    show_default=True,
    help="How rows are printed; json is one document, jsonl a line a row.",
)
def query(run: str, sql: str, shape: str) -> int:
    """Ask a RUN's tables with one SELECT (DuckDB); nothing is written and no other file read.

    \b
    Views: samples (one row a sample), evidence (one row an atom, with sample and model), atoms (the same, by row
    number), outputs (raw responses), rules, estimates.

    \b
    Example:
      adjudge query RUN "select rule, count(*) from evidence where outcome = 'fail' group by 1 order by 2 desc"
    """
    import adjudge
    from adjudge.runs.query import query as ask

    names, rows = ask(adjudge.load_run(run), sql)
    if shape == "csv":
        writer = csv.writer(sys.stdout)
        shown = terminal if sys.stdout.isatty() else str  # elsewhere the texts stay as they are
        writer.writerows([shown(spreadsheet(value)) for value in row] for row in (names, *rows))
    elif shape in {"json", "jsonl"}:
        lines = [
            json_line(msgspec.json.encode(dict(zip(names, row, strict=True)), enc_hook=str).decode()) for row in rows
        ]
        click.echo(
            "\n".join(lines) if shape == "jsonl" else "[" + ",\n ".join(lines) + "]", nl=bool(lines) or shape == "json"
        )
    else:
        texts = [["" if value is None else line(str(value)) for value in row] for row in (names, *rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        for cells in (texts[0], ["-" * width for width in widths], *texts[1:]):
            click.echo("  ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip())
    return 0
