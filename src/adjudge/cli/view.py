"""`adjudge view`: a run's page in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from adjudge.cli.common import PATH, report_writer, say
from adjudge.errors import OutputError


@click.command()
@click.argument("run", type=PATH)
@click.option("--open/--no-open", "show", default=True, help="Whether the browser is asked to open it [open].")
def view(run: Path, show: bool) -> int:
    """Open report.html of a RUN in the browser; where the run has none, it is drawn into it first.

    \b
    Example:
      adjudge view runs/a
    """
    import adjudge
    from adjudge.runs.writer import REPORT

    adjudge.load_run(run)
    page = run / REPORT
    if not page.is_file():
        draw_page(run)
    address = page.resolve().as_uri()
    if show and not webbrowser.open(address):
        raise OutputError(f"no browser could be opened; the page is {address}")
    say(address, err=False)
    return 0


def draw_page(run: Path) -> None:
    """Draw report.html of a run folder into it, anew where it is there."""
    from adjudge.runs.run import Run
    from adjudge.runs.writer import REPORT, add_to_run

    manifest = Run(run).manifest
    page, manifest.digests["report_data"] = report_writer(run)
    add_to_run(run, {REPORT: page}, manifest)
