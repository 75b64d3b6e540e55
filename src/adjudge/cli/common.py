"""What the commands share: flags, configuration files, progress, and how a run's result is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from adjudge.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

RUN_FLAGS = ("out", "limit", "workers", "cluster", "gates", "force", "report", "as_json", "quiet")
"""The flags of `run_options` that `evaluate_and_show` takes; the others are the protocol's."""


def place(given: str) -> str | Path:
    """A folder as a path, and a URL as it is: as a path it would lose a slash."""
    from adjudge.readers.remote import is_url

    return given if is_url(given) else Path(given)


class Spread(click.Command):
    """A mixin that lets one flag of `spread` take several files, as the shell expands a pattern."""

    spread: tuple[str, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the flag before every further word; a URL with `*` becomes the files it names."""
        from adjudge.readers.remote import is_url, matching

        given: list[str] = []
        flag: str | None = None
        follow = False
        for word in args:
            if word.startswith("-") and word != "-":
                flag, follow = (word if word in self.spread else None), False
                given.append(word)
            elif flag is None:
                given.append(word)
            else:
                for found in matching(word) if is_url(word) else [word]:
                    given += [flag, found] if follow else [found]
                    follow = True
        return super().parse_args(ctx, given)


def run_options(command: F) -> F:
    """The flags that every protocol has."""
    for option in reversed(
        (
            click.option(
                "--config", "config_file", type=click.Path(), help="YAML file with any of these flags; flags win."
            ),
            click.option("--out", type=place, metavar="PATH", help="Run directory [runs/<protocol>-<UTC time>]."),
            click.option("--seed", type=int, help="Seed of every resampling [0]."),
            click.option(
                "--column",
                "columns",
                multiple=True,
                metavar="OURS=THEIRS",
                help="What a key is called in your files (id=question_id, or of one role: reference:id=key); repeat.",
            ),
            click.option("--json-path", metavar="$.KEY", help="Where the records sit inside one JSON object."),
            click.option("--limit", type=int, help="Judge only the first N records of each outputs file."),
            click.option("--workers", type=int, help="Processes [1]; the result is the same to the byte."),
            click.option(
                "--cluster",
                metavar="ADDRESS",
                help="Run on a Dask cluster: tcp://HOST:PORT, or `local` for --workers processes.",
            ),
            click.option(
                "--gate", "gates", multiple=True, metavar="'METRIC[.low|.high] >= X'", help="A bound to hold; repeat."
            ),
            click.option("--force", is_flag=True, help="Replace an existing run at --out."),
            click.option(
                "--report/--no-report", default=True, help="Whether report.html is drawn into the run [report]."
            ),
            click.option("--json", "as_json", is_flag=True, help="Print metrics.json on stdout and nothing else."),
            click.option("--quiet", is_flag=True, help="Print nothing but errors."),
        )
    ):
        command = option(command)
    return command


def configuration(path: str | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration file with the flags that were given on top."""
    found: dict[str, Any] = {}
    if path is not None:
        import yaml

        try:
            loaded = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: is not YAML: {error}") from None
        if not isinstance(loaded, dict):
            raise ConfigError(f"{path}: expected a table of settings, found {type(loaded).__name__}")
        found = {str(key).replace("-", "_"): value for key, value in loaded.items()}
    for key, value in flags.items():
        if value is not None and value != ():
            found[key] = list(value) if isinstance(value, tuple) else value
    return found


@contextmanager
def progress(*, quiet: bool, what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar with rate and time left on a terminal; nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, rate="")

        def update(done: int, total: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, total=total, rate=f"{speed:,.0f}/s" if speed else "")

        yield update


def evaluate_and_show(
    name: str,
    settings: dict[str, Any],
    *,
    out: str | Path | None,
    limit: int | None,
    workers: int | None,
    cluster: str | None = None,
    gates: tuple[str, ...],
    force: bool,
    as_json: bool,
    quiet: bool,
    report: bool = True,
    on_run: Callable[[Path], None] | None = None,
) -> int:
    """Run a protocol, hand its folder to `on_run`, show what came out, and return the exit code."""
    from adjudge.engine.evaluate import Options, evaluate
    from adjudge.engine.remote import Place
    from adjudge.protocols.base import protocol
    from adjudge.verdict.gates import Gate

    workers = settings.pop("workers", 1) if workers is None else workers
    cluster = settings.pop("cluster", None) if cluster is None else cluster
    wanted = tuple(Gate.parse(text) for text in (*settings.pop("gates", ()), *gates))
    configured = settings.pop("out", None)
    target = Place(out or configured or None, force=force)
    limit = settings.pop("limit", None) if limit is None else limit
    for name_of_flag in ("limit", "workers", "cluster"):
        settings.pop(name_of_flag, None)
    with progress(quiet=quiet or as_json, what=name) as update:
        path = evaluate(
            protocol(name),
            settings,
            Options(
                out=target.folder,
                workers=workers,
                cluster=cluster,
                limit=limit,
                force=force,
                gates=wanted,
                command=("adjudge", *sys.argv[1:]),
                on_progress=update,
                report=report_writer if report else None,
            ),
        )
    target.settle()
    if on_run is not None:
        on_run(path)
    return show(path, as_json=as_json, quiet=quiet)


def show(path: Path, *, as_json: bool, quiet: bool) -> int:
    """Print a finished run: metrics.json byte for byte, or a table for people on stderr."""
    from adjudge.runs.run import Run
    from adjudge.runs.writer import METRICS

    run = Run(path)
    if as_json:
        sys.stdout.buffer.write((path / METRICS).read_bytes())
        sys.stdout.buffer.flush()
    elif not quiet:
        from adjudge.report.text import summary

        click.echo(summary(run), err=True)
    return 1 if run.metrics["pass"] is False else 0


def report_writer(folder: Path) -> tuple[bytes, str]:
    """report.html of a run folder, and the digest of the data block it embeds; what the engine takes as `report`."""
    import pyarrow as pa

    import adjudge
    from adjudge.report.html import write

    pa.default_memory_pool().release_unused()  # what the evaluation does not hold any more
    return write(adjudge.load_run(folder))
