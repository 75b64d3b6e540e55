"""`adjudge verify`: recompute every number of a run, and say what was proven and what was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from adjudge.cli.common import PATH, Spread, progress, say
from adjudge.cli.logs import logs_as_runs

if TYPE_CHECKING:
    from pathlib import Path

    from adjudge.engine.verify import Verification

_SHOWN = 12


@click.command(cls=Spread, spread=("--inputs",))
@click.argument("run", type=click.Path(), metavar="RUN_OR_LOG", callback=logs_as_runs)
@click.option("--inputs", multiple=True, type=PATH, help="The files that were judged: judge them again; repeat.")
@click.option("--expect", metavar="SHA256", help="The digest that was printed with the run, or published.")
@click.option("--key", type=PATH, help="The SSH public key (or allowed signers) that must have signed the run.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def verify(run: str, inputs: tuple[Path, ...], expect: str | None, key: Path | None, as_json: bool, quiet: bool) -> int:
    """Recompute every digest, atom, verdict and number of a RUN from its own tables.

    What the run alone cannot prove is listed, with the flag that proves it: the input files, a digest that was published,
    a key that signed it (docs/trust.md).

    \b
    Exit codes: 0 it holds · 1 it does not · 3 another version made it and not all of it can be recomputed here.
    """
    import adjudge
    from adjudge.engine.prove import prove
    from adjudge.report.html import check

    loaded = adjudge.load_run(run)
    with progress(quiet=quiet or as_json, what="verify") as update:
        result = prove(
            loaded,
            inputs=inputs,
            expect=expect,
            key=key,
            on_progress=None if update is None else lambda done: update(done, done),
            check_report=check,
        )
    if as_json:
        import msgspec

        listed = ("problems", "made_by", "not_recomputed", "added", "checked", "not_checked")
        outcome = {name: getattr(result, name) for name in listed}
        document = {"run": run, "holds": result.exit_code == 0, **outcome}
        click.echo(msgspec.json.encode(document).decode())
    elif result.exit_code or not quiet:
        say("\n".join([*_lines(run, result, len(loaded.manifest.files)), *_lists(result)]))
    return result.exit_code


def _lines(run: str, result: Verification, files: int) -> list[str]:
    """The outcome, for people."""
    by = "" if result.made_by is None else f"  made by {result.made_by}"
    if result.problems:
        return [f"{run} does not hold:", *([by] if by else []), *(f"  {problem}" for problem in result.problems)]
    if result.not_recomputed:
        return [
            f"{run}: its files are whole and its promises hold, but not all of it can be recomputed here:",
            by,
            *(f"  not recomputed: {what}" for what in result.not_recomputed),
        ]
    lines = [f"{run} holds: {files} files and {result.estimates} estimates recomputed"]
    if by:
        lines.append(by)
    if result.added:
        more = f" and {len(result.added) - _SHOWN} more" if len(result.added) > _SHOWN else ""
        lines.append(f"  this version adds: {', '.join(result.added[:_SHOWN])}{more}")
    return lines


def _lists(result: Verification) -> list[str]:
    """What was proven and what was not, wrapped."""
    import textwrap

    lines = []
    for title, items in (("Checked", result.checked), ("Not checked", result.not_checked)):
        if items:
            lines.append(title)
        for item in items:
            lines += textwrap.wrap(item, 100, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)
    return lines
