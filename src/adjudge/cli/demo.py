"""`adjudge demo`: every protocol on generated examples."""

from __future__ import annotations

from pathlib import Path

import click

from adjudge.cli.common import PATH, report_writer, say
from adjudge.errors import OutputError


@click.command()
@click.option("--out", type=PATH, default=Path("demo"), show_default=True, help="Folder for data and runs.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Another seed makes other data, and every number changes."
)
@click.option("--protocol", "only", multiple=True, help="Only this protocol; repeat.")
@click.option("--force", is_flag=True, help="Replace an earlier demo.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def demo(out: Path, seed: int, only: tuple[str, ...], force: bool, quiet: bool) -> int:
    """Run every protocol on generated examples and print where the reports are."""
    import adjudge
    from adjudge.engine.evaluate import Options, evaluate
    from adjudge.protocols.base import Protocol, names, protocol
    from adjudge.report.text import summary

    for name in only or names():
        chosen = protocol(name)
        data, run = out / name / "data", out / name / "run"
        if run.exists() and not force:
            raise OutputError(f"{run} exists already; choose another --out, or --force to replace it")
        if type(chosen).example is Protocol.example:
            continue  # a protocol without an example
        data.mkdir(parents=True, exist_ok=True)
        config = chosen.example(data, seed)
        if config is None:
            continue
        evaluate(
            chosen,
            {**config, "seed": seed},
            Options(out=run, force=force, command=("adjudge", "demo", "--seed", str(seed)), report=report_writer),
        )
        if not quiet:
            say(summary(adjudge.load_run(run)) + "\n")
    return 0
