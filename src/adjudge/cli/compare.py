"""`adjudge compare`: paired comparison of runs, after the guard has said that it is valid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adjudge.cli.common import PATH, numbers, print_bytes, say, write_file
from adjudge.cli.intact import refuse_altered_runs, unverified_option
from adjudge.cli.logs import logs_as_runs
from adjudge.errors import ConfigError, NotComparable

if TYPE_CHECKING:
    from adjudge.report.compared import Side
    from adjudge.runs.run import Run


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN_OR_LOG[::MODEL] …", callback=logs_as_runs)
@click.option("--model", help="The model to take from every run.")
@click.option("--model-a", help="The model to take from the first run.")
@click.option("--model-b", help="The model to take from the second run (or from the only one).")
@click.option("--metric", "metrics", multiple=True, help="Compare this metric only; repeat.")
@click.option("--slice", "slices", multiple=True, metavar="COLUMN", help="Also compare within each value; repeat.")
@click.option(
    "--factor",
    metavar="model|tools|vision|structuring|prompt|temperature|KEY",
    help="The one thing that may vary, KEY being any recorded setting; of one run, pairs what differs in it alone.",
)
@click.option(
    "--margin",
    multiple=True,
    metavar="X or METRIC=X",
    help="Differences within ±X do not matter: 0.02 is 2 points, or that share of a score's range.",
)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Chance of a false alarm over all tests.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of every resampling.")
@click.option("--evidence", type=int, default=20, show_default=True, help="Flipped samples shown with evidence.")
@click.option("--force", is_flag=True, help="Compare even what is not comparable; the result says so.")
@click.option("--fail-on-worse", is_flag=True, help="Exit 1 when any metric is worse.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON on stdout and nothing else.")
@click.option("-o", "--output", type=PATH, help="Write it to a file: .html a page, .md a summary, else JSON.")
@click.option(
    "--out", "keep", type=PATH, is_eager=True, help="Folder for the runs that logs are judged into [they are not kept]."
)
@unverified_option
def compare(
    runs: tuple[str, ...],
    margin: tuple[str, ...],
    fail_on_worse: bool,
    as_json: bool,
    output: Path | None,
    keep: Path | None,
    unverified: bool,
    **asked: Any,
) -> int:
    """Compare runs of any protocol on the samples they share; the first is the baseline.

    A run with several models is named RUN::MODEL; one run alone is compared model by model. Runs on different data, or
    judged differently, are not compared (exit 3). A log of another tool is judged first, as by adjudge score.

    \b
    Examples:
      adjudge compare runs/before runs/after --margin 0.02
      adjudge compare runs/demo::falcon-a runs/demo::owl-c --json
      adjudge compare runs/before runs/after --margin 0.02 -o compared.html
      adjudge compare demo/triage/run --factor tools
      adjudge compare a.eval b.eval
    """
    from adjudge.provenance.canonical import pretty
    from adjudge.report.comparison import text
    from adjudge.report.render import COMPARISONS, render_comparison

    del keep  # the runs are there already
    refuse_altered_runs(runs, unverified=unverified)
    margins = numbers("--margin", margin, "X or METRIC=X")
    document = comparison_document(runs, margin=margins.pop("", None), margins=margins, **asked)
    if output is not None:
        kind = output.suffix.removeprefix(".").lower()
        models = {name: asked[name] for name in ("model", "model_a", "model_b")}
        known = kind in COMPARISONS
        write_file(output, render_comparison(document, sides(runs, **models), kind) if known else pretty(document))
    if as_json:
        print_bytes(pretty(document))
    if not document["pairs"]:
        if not as_json:
            say("NOT_COMPARABLE")
        raise NotComparable(document["reasons"])
    if not as_json:
        say(text(document))
    worse = any(metric["verdict"] == "worse" for pair in document["pairs"] for metric in pair["metrics"])
    return 1 if fail_on_worse and worse else 0


def comparison_document(runs: Sequence[str], **asked: Any) -> dict[str, Any]:
    """The comparison as plain data; a refused one has its reasons and no pairs."""
    from adjudge.comparisons.comparison import compare as run_comparison

    try:
        return run_comparison(*runs, **asked).to_dict()
    except NotComparable as error:
        return {"status": "NOT_COMPARABLE", "reasons": error.reasons, "forced": False, "pairs": []}


def sides(runs: Sequence[str], **models: str | None) -> list[Side]:
    """The systems that the arguments name, each with its run opened the way reports want it."""
    import adjudge
    from adjudge.comparisons.systems import select
    from adjudge.report.compared import Side

    opened: dict[Path, Run] = {}
    systems = select(runs, **models)
    for system in systems:
        path = system.run.path
        if path not in opened:
            try:
                opened[path] = adjudge.load_run(path)
            except ConfigError:  # of a protocol that is not installed: shown without its record view
                opened[path] = system.run
    return [Side(system.name, system.model, opened[system.run.path]) for system in systems]
