"""`adjudge verify`: recompute every number of a run."""

from __future__ import annotations

import click

from adjudge.cli.common import progress


@click.command()
@click.argument("run", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON on stdout.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def verify(run: str, as_json: bool, quiet: bool) -> int:
    """Recompute every digest, atom, verdict and number of a RUN from its own tables, without the input."""
    import adjudge
    from adjudge.engine.verify import verify as recompute
    from adjudge.report.html import check

    loaded = adjudge.load_run(run)
    total = sum(bucket["n"] for name, bucket in loaded.metrics["buckets"].items() if name == "all")
    with progress(quiet=quiet or as_json, what="verify") as update:
        problems = recompute(
            loaded,
            on_progress=None if update is None else lambda done: update(done, total or done),
            check_report=check,
        )
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode({"run": run, "holds": not problems, "problems": problems}).decode())
    elif problems:
        click.echo(f"{run} does not hold:", err=True)
        for problem in problems:
            click.echo(f"  {problem}", err=True)
    elif not quiet:
        count = len(loaded.metrics["estimates"])
        click.echo(f"{run} holds: {len(loaded.manifest.files)} files and {count} estimates recomputed", err=True)
    return 1 if problems else 0
