"""`adjudge report`: a run in other shapes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from adjudge.errors import ConfigError, OutputError

_FORMATS = ("html", "md", "tex", "csv", "png", "svg", "pdf", "txt")


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("-o", "--output", help="File to write; its ending chooses the format. - is standard output.")
@click.option("--format", "kind", type=click.Choice(_FORMATS), help="Format, where the file's ending does not say.")
@click.option("--chart", help="Which chart (png, svg, pdf) [the first].")
@click.option("--list-charts", is_flag=True, help="Print the names of the run's charts.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
def report(
    runs: tuple[Path, ...], output: str | None, kind: str | None, chart: str | None, list_charts: bool, force: bool
) -> int:
    """Write a run as a page, a Markdown summary, LaTeX tables, CSV, or one of its charts as a figure.

    \b
    Examples:
      adjudge report runs/a                        the summary, as after the run
      adjudge report runs/a -o report.html         one self-contained page
      adjudge report runs/a -o summary.md          for a pull request
      adjudge report runs/s1 runs/m3 -o tables.tex several runs: LaTeX tables over the tasks
      adjudge report runs/a -o figure.pdf --chart eligibility_rate
    """
    import adjudge

    loaded = [adjudge.load_run(path) for path in runs]
    if list_charts:
        for run in loaded:
            click.echo("\n".join(str(item["name"]) for item in run.charts))
        return 0
    chosen = kind or _ending(output)
    if len(loaded) > 1 and chosen != "tex":
        raise ConfigError(
            "several runs become one file only as LaTeX tables (-o tables.tex); adjudge compare compares runs"
        )
    from adjudge.report.render import render

    data = render(loaded, chosen, chart)
    if output is None or output == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return 0
    target = Path(output)
    if target.exists() and not force:
        raise OutputError(f"{target} exists already; --force replaces it")
    try:
        target.write_bytes(data)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}") from None
    click.echo(f"{target}: {len(data):,} bytes", err=True)
    return 0


def _ending(output: str | None) -> str:
    if output is None or output == "-":
        return "txt"
    ending = Path(output).suffix.removeprefix(".").lower()
    ending = {"htm": "html", "markdown": "md", "latex": "tex"}.get(ending, ending)
    if ending not in _FORMATS:
        raise ConfigError(
            f"{output}: the ending {ending!r} names no format; expected one of {', '.join(_FORMATS)}, or --format"
        )
    return ending
