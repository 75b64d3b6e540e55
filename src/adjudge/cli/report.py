"""`adjudge report`: a run in other shapes."""

from __future__ import annotations

from pathlib import Path

import click

from adjudge.cli.common import print_bytes, say, write_file
from adjudge.cli.intact import refuse_altered_runs, unverified_option
from adjudge.cli.logs import logs_as_runs
from adjudge.errors import ConfigError, NotComparable, OutputError

_FORMATS = ("html", "md", "tex", "csv", "png", "svg", "pdf", "txt")  # as in report.render, which is heavy to import


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN_OR_LOG[::MODEL] …", callback=logs_as_runs)
@click.option("-o", "--output", help="File to write; its ending chooses the format. - is standard output.")
@click.option("--format", "kind", type=click.Choice(_FORMATS), help="Format, where the file's ending does not say.")
@click.option("--chart", help="Which chart (png, svg, pdf) [the first].")
@click.option("--list-charts", is_flag=True, help="Print the names of the run's charts.")
@click.option(
    "--explore",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Whether the page holds the samples.",
)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@unverified_option
def report(  # noqa: PLR0913 -- click hands every flag over by its name
    runs: tuple[str, ...],
    output: str | None,
    kind: str | None,
    chart: str | None,
    list_charts: bool,
    explore: str,
    force: bool,
    unverified: bool,
) -> int:
    """Write a run as a page, a Markdown summary, LaTeX tables, CSV, or one of its charts as a figure.

    Several runs are compared, the first being what the others are held against: differences with intervals, and the
    samples that flipped. Runs that may not be compared leave a page with the reasons and no numbers (exit 3).

    \b
    Examples:
      adjudge report runs/a                        the summary, as after the run
      adjudge report runs/a -o report.html         one self-contained page
      adjudge report runs/a -o summary.md          for a pull request
      adjudge report runs/a runs/b -o both.html    side by side, or .md; adjudge compare has the settings
      adjudge report runs/s1 runs/m3 -o tables.tex several runs: LaTeX tables over the tasks
      adjudge report runs/a -o figure.pdf --chart violations
    """
    import adjudge
    from adjudge.report.render import COMPARISONS, render

    chosen = kind or _ending(output)
    target = None if output is None or output == "-" else Path(output)
    if target is not None and target.exists() and not force:
        raise OutputError(f"{target} exists already; --force replaces it")
    refuse_altered_runs(runs, unverified=unverified)
    several = len(runs) > 1 or ("::" in runs[0] and not Path(runs[0]).is_dir())
    if several and chosen != "tex" and not list_charts:
        if chosen not in COMPARISONS:
            raise ConfigError(
                f"several runs become one file as {', '.join(COMPARISONS)} (compared) or tex (tables), not {chosen}"
            )
        return _compared(runs, chosen, target)
    loaded = [adjudge.load_run(path) for path in runs]
    if list_charts:
        for run in loaded:
            say("\n".join(str(item["name"]) for item in run.charts), err=False)
        return 0
    _put(target, render(loaded, chosen, chart, explore=explore == "on"))
    return 0


def _compared(runs: tuple[str, ...], kind: str, target: Path | None) -> int:
    from adjudge.cli.compare import comparison_document, sides
    from adjudge.report.render import render_comparison

    document = comparison_document(runs)
    _put(target, render_comparison(document, sides(runs), kind))
    if not document["pairs"]:
        raise NotComparable(document["reasons"])
    return 0


def _put(target: Path | None, data: bytes) -> None:
    if target is None:
        print_bytes(data)
    else:
        write_file(target, data)
        say(f"{target}: {len(data):,} bytes")


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
