"""`adjudge verify`: recompute every number of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from adjudge.cli.common import progress, say

if TYPE_CHECKING:
    from adjudge.engine.verify import Verification

_SHOWN = 12


@click.command()
@click.argument("run", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON on stdout.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def verify(run: str, as_json: bool, quiet: bool) -> int:
    """Recompute every digest, atom, verdict and number of a RUN from its own tables, without the input.

    \b
    Exit codes: 0 it holds · 1 it does not · 3 another version made it and not all of it can be recomputed here.
    """
    import adjudge
    from adjudge.engine.verify import verify as recompute
    from adjudge.report.html import check

    loaded = adjudge.load_run(run)
    total = sum(bucket["n"] for name, bucket in loaded.metrics["buckets"].items() if name == "all")
    with progress(quiet=quiet or as_json, what="verify") as update:
        result = recompute(
            loaded,
            on_progress=None if update is None else lambda done: update(done, total or done),
            check_report=check,
        )
    if as_json:
        import msgspec

        document = {
            "run": run,
            "holds": result.exit_code == 0,
            "problems": result.problems,
            "made_by": result.made_by,
            "not_recomputed": result.not_recomputed,
            "added": result.added,
        }
        click.echo(msgspec.json.encode(document).decode())
    elif result.exit_code or not quiet:
        files, estimates = len(loaded.manifest.files), len(loaded.metrics["estimates"])
        say("\n".join(_lines(run, result, files, estimates)))
    return result.exit_code


def _lines(run: str, result: Verification, files: int, estimates: int) -> list[str]:
    """What to tell a person."""
    by = "" if result.made_by is None else f"  made by {result.made_by}"
    if result.problems:
        return [f"{run} does not hold:", *([by] if by else []), *(f"  {problem}" for problem in result.problems)]
    if result.not_recomputed:
        return [
            f"{run}: its files are whole and its promises hold, but not all of it can be recomputed here:",
            by,
            *(f"  not recomputed: {what}" for what in result.not_recomputed),
        ]
    lines = [f"{run} holds: {files} files and {estimates} estimates recomputed"]
    if by:
        lines.append(by)
    if result.added:
        more = f" and {len(result.added) - _SHOWN} more" if len(result.added) > _SHOWN else ""
        lines.append(f"  this version adds: {', '.join(result.added[:_SHOWN])}{more}")
    return lines
