"""`adjudge explain`: one sample's verdict with the evidence it rests on."""

from __future__ import annotations

from pathlib import Path

import click

from adjudge.cli.common import place, say
from adjudge.cli.logs import logs_as_runs


@click.command()
@click.argument("run", type=place, metavar="RUN_OR_LOG", callback=logs_as_runs)
@click.argument("sample")
@click.option("--model", help="Which model's answer, where the run has several.")
@click.option("--all", "everything", is_flag=True, help="List every atom that passed, and the whole answer.")
def explain(run: str | Path, sample: str, model: str | None, everything: bool) -> int:
    """Print the verdict on one sample with its evidence, and the answer with what was read from it marked.

    \b
    Example:
      adjudge explain runs/demo-flight F01-0017 --model falcon-a
    """
    import adjudge
    from adjudge.report.explain import explain as render

    say(render(adjudge.load_run(run), sample, model, everything=everything), err=False)
    return 0
