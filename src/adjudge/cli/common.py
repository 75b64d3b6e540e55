"""What the commands share: flags, configuration files, progress, and how a run's result is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import click

from adjudge.cli.start import LOGS, with_logs
from adjudge.errors import ConfigError, OutputError
from adjudge.provenance.redact import redacted
from adjudge.report.numbers import terminal
from adjudge.verdict.gates import Gate

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
RUN_FLAGS = ("out", "limit", "workers", "cluster", "gates", "force", "report", "as_json", "quiet")
"""The flags of `run_options` that `evaluate_and_show` takes; the others are the protocol's."""


def options(*flags: Callable[[F], F]) -> Callable[[F], F]:
    """Several flags as one decorator, in the order of the help."""

    def add(command: F) -> F:
        for flag in reversed(flags):
            command = flag(command)
        return command

    return add


def place(text: str) -> str | Path:
    """A folder as a path, and a URL as it is: as a path it would lose a slash."""
    from adjudge.readers.sources import is_url

    return text if is_url(text) else Path(text)


def made_at(out: str | Path | None, *, force: bool) -> AbstractContextManager[Path | None]:
    """Where a run is made: there, or for a URL in a folder that goes with this object and is uploaded when the run is whole."""
    from adjudge.readers.sources import is_url

    if isinstance(out, str) and is_url(out):
        from adjudge.engine.remote import Upload

        return Upload(out, force=force)
    return nullcontext(Path(out) if out else None)


def pairs(flag: str, texts: Iterable[str], form: str, *, last: bool = False) -> dict[str, str]:
    """The values of a repeated flag such as NAME=VALUE as a table, each cut at its first `=`, or at its last."""
    table = {}
    for text in texts:
        name, _, value = text.rpartition("=") if last else text.partition("=")
        if not (name.strip() and value):
            raise ConfigError(f"{flag} {text!r} is not of the form {form}")
        table[name.strip()] = value
    return table


def numbers(flag: str, texts: Iterable[str], form: str) -> dict[str, float]:
    """The values of a repeated flag such as NAME=NUMBER as a table; a number alone has the name ""."""
    table = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            table[name.strip()] = float(number)
        except ValueError:
            raise ConfigError(f"{flag} {text!r} is not of the form {form}") from None
    return table


class Spread(click.Command):
    """A command that lets one flag of `spread` take several files, as the shell expands a pattern."""

    def __init__(self, *, spread: tuple[str, ...], **attributes: Any) -> None:
        super().__init__(**attributes)
        self.spread = spread

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The words as click reads them."""
        return super().parse_args(ctx, self.spread_out(args))

    def spread_out(self, args: list[str]) -> list[str]:
        """Repeat the flag before every further word; a URL with `*` becomes the files it names."""
        from adjudge.readers.sources import is_url, matching

        words: list[str] = []
        flag: str | None = None
        follow = False
        for word in args:
            if word.startswith("-") and word != "-":
                flag, follow = (word if word in self.spread else None), False
                words.append(word)
            elif flag is None:
                words.append(word)
            else:
                for file in matching(word) if is_url(word) else [word]:
                    words += [flag, file] if follow else [file]
                    follow = True
        return words


class ProtocolGroup(Spread, click.Group):
    """A group that is also a command: without a subcommand the flags are its own."""

    def __init__(self, *, usage: tuple[str, ...], **attributes: Any) -> None:
        super().__init__(invoke_without_command=True, **attributes)
        self.usage = usage

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The ways to call it, a line each."""
        for line in self.usage:
            formatter.write_usage(ctx.command_path, line)


def _raise_bounds(ctx: click.Context, parameter: click.Parameter, settings: tuple[str, ...]) -> None:
    from adjudge.readers.sources import raise_bounds

    del ctx, parameter
    raise_bounds(settings)


run_options = options(
    click.option("--config", "config_file", type=click.Path(), help="YAML file with any of these flags; flags win."),
    click.option("--out", type=place, metavar="PATH", help="Run directory [runs/<protocol>-<UTC time>-<random>]."),
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
    click.option("--report/--no-report", default=True, help="Whether report.html is drawn into the run [report]."),
    click.option(
        "--max",
        "raised_bounds",
        multiple=True,
        metavar="NAME=NUMBER",
        callback=_raise_bounds,
        expose_value=False,
        help="Read more before a file is refused: line_mb, expansion, models … (docs/formats.md); repeat.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print metrics.json on stdout and nothing else."),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
)
"""The flags that every protocol has."""


example_options = options(
    click.option("--out", type=PATH, required=True, help="Folder for the data set."),
    click.option("--seed", type=int, default=0, show_default=True),
    click.option("--force", is_flag=True, help="Replace files that are there."),
)
"""The flags of every command that writes example data."""


_AGENT_FLAGS: dict[str, dict[str, Any]] = {
    "agent_url": {"metavar": "URL", "help": "Where llm:MODEL is asked: http://127.0.0.1:8000/v1."},
    "votes": {"type": int, "help": "Independent answers of the judge to every sample [1]."},
    "agent_concurrency": {"type": int, "help": "Requests at a time [6]."},
    "agent_timeout": {"type": float, "help": "Seconds until an answer is given up [60]."},
    "agent_cache": {"metavar": "DIR", "help": "Answers as they come, to go on after a kill [.agent-cache]."},
    "agent_key_env": {"metavar": "NAME", "help": "Environment variable with the key [OPENAI_API_KEY]."},
    "agent_price": {"metavar": "IN,OUT", "help": "Of a million prompt and completion tokens."},
    "max_samples": {"type": int, "help": "Refuse to ask the judge about more samples."},
    "max_tokens": {"type": int, "help": "Refuse to spend more tokens on the judge."},
    "agent_validation": {"metavar": "FILE", "help": "A validation of this judge, so that gates are held."},
    "min_kappa": {"type": float, "help": "The least κ.low of a validation [0.6]."},
}
agent_options = options(
    click.option(
        "--agent", metavar="NAME", help="Who decides [rules]: llm:MODEL, replay:RUN, null:eligible, a plugin's."
    ),
    *(click.option(f"--{name.replace('_', '-')}", **flag) for name, flag in _AGENT_FLAGS.items()),
)
"""The flags of every protocol whose verdicts an evaluator agent gives."""


def gather_agent_options(settings: dict[str, Any]) -> None:
    """Put the flags about an agent into one setting, as a configuration file has them."""
    chosen = {name.removeprefix("agent_"): settings.pop(name) for name in _AGENT_FLAGS if name in settings}
    if isinstance(chosen.get("price"), str):
        try:
            chosen["price"] = [float(number) for number in chosen["price"].split(",")]
        except ValueError:
            raise ConfigError(f"--agent-price {chosen['price']!r} is not of the form IN,OUT, two numbers") from None
    if chosen:
        settings["agent_options"] = {**(settings.get("agent_options") or {}), **chosen}


def settings_and_run_flags(
    ctx: click.Context, flags: dict[str, Any], needs: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The protocol's settings, and the flags that `evaluate_and_show` takes.

    Without any setting the help is shown; a setting of `needs` that is missing is an error.
    """
    run_flags = {key: flags.pop(key) for key in RUN_FLAGS}
    settings = configuration(flags.pop("config_file"), flags)
    gather_agent_options(settings)
    if not settings:
        click.echo(ctx.get_help())
        ctx.exit(2)
    for name in needs:
        if name not in settings:
            raise ConfigError(f"--{name} is missing ({ctx.command_path} --help shows an example)")
    return settings, run_flags


def configuration(path: str | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration file with the flags that were given on top."""
    settings: dict[str, Any] = {}
    if path is not None:
        from adjudge.readers.settings import text_of, yaml_of

        loaded = yaml_of(text_of(path), path)
        if not isinstance(loaded, dict):
            raise ConfigError(f"{path}: expected a table of settings, found {type(loaded).__name__}")
        settings = {str(key).replace("-", "_"): value for key, value in loaded.items()}
    for key, value in flags.items():
        if value is not None and value != ():
            settings[key] = list(value) if isinstance(value, tuple) else value
    return settings


def print_bytes(data: bytes) -> None:
    """Standard output, byte for byte."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """Standard output as JSON for people."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def write_file(path: Path, data: bytes) -> None:
    """A file, whole or not at all; one that cannot be written is an OutputError."""
    from adjudge.runs.tables import write_whole

    refuse_log(path)
    write_whole(path, data)


def _is_same(path: Path, other: Path) -> bool:
    """Whether both are there, and one file."""
    return path.exists() and other.exists() and path.samefile(other)


def refuse_log(path: Path) -> None:
    """Whoever names a log where a file is written forgot a word, or took one flag for another."""
    if path.suffix.lower() == ".eval" or any(_is_same(path, Path(log)) for log in LOGS):
        raise OutputError(f"{path} is a log, and no log is written over: name another file")


def put(path: Path | None, data: bytes) -> None:
    """A file, or standard output where none is named."""
    if path is None:
        print_bytes(data)
    else:
        write_file(path, data)


def say(text: str, *, err: bool = True) -> None:
    """Print a message for people; nothing that came from outside moves their cursor or hides in it."""
    text = with_logs(text)
    click.echo(terminal(redacted(text) if err else text), err=err)


@contextmanager
def progress(*, quiet: bool, what: str) -> Iterator[Callable[..., None] | None]:
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

        def update(done: int, total: int, spent: str = "") -> None:
            speed = bar.tasks[0].speed
            rate = [spent, f"{speed:,.0f}/s" if speed else ""]
            bar.update(task, completed=done, total=total, rate=" · ".join(part for part in rate if part))

        yield update


def evaluate_and_show(
    name: str, settings: dict[str, Any], run_flags: Mapping[str, Any], on_run: Callable[[Path], None] | None = None
) -> int:
    """Run a protocol, hand its folder to `on_run`, show what came out, and return the exit code.

    `run_flags` are the flags of RUN_FLAGS; those that were not given may stand in the settings of a configuration file.
    """
    from adjudge.engine.evaluate import Options, evaluate
    from adjudge.protocols.base import protocol

    force, quiet, as_json = (run_flags[flag] for flag in ("force", "quiet", "as_json"))
    configured = {flag: settings.pop(flag, None) for flag in ("out", "limit", "workers", "cluster")}
    out, limit, workers, cluster = (
        value if run_flags[flag] is None else run_flags[flag] for flag, value in configured.items()
    )
    gates = settings.pop("gates", None) or ()
    if not isinstance(gates, list | tuple) or not all(isinstance(text, str) for text in gates):
        raise ConfigError(f"gates is {gates!r}, expected a list such as ['accuracy >= 0.9']")
    wanted = tuple(Gate.parse(text) for text in (*gates, *run_flags["gates"]))
    destination = made_at(out, force=force)
    if cluster == "local":
        from adjudge.engine.cluster import encrypted

        if not encrypted():
            say(
                "--cluster local listens on this machine without credentials: every user of it could run code as you. "
                "With the package `cryptography` it talks TLS; --workers needs neither"
            )
    with destination as folder, progress(quiet=quiet or as_json, what=name) as update:
        path = evaluate(
            protocol(name),
            settings,
            Options(
                out=folder,
                workers=1 if workers is None else workers,
                cluster=cluster,
                limit=limit,
                force=force,
                gates=wanted,
                command=("adjudge", *sys.argv[1:]),
                on_progress=update,
                on_answer=update,
                report=report_writer if run_flags["report"] else None,
            ),
        )
    if on_run is not None:
        on_run(path)
    return show(path, as_json=as_json, quiet=quiet)


def show(path: Path, *, as_json: bool, quiet: bool) -> int:
    """Print a finished run: metrics.json byte for byte, or a table for people on stderr."""
    from adjudge.report.text import summary
    from adjudge.report.view import failed_gates
    from adjudge.runs.run import Run
    from adjudge.runs.writer import METRICS

    run = Run(path)
    if as_json:
        print_bytes((path / METRICS).read_bytes())
    if not quiet:
        for text in failed_gates(run) if as_json else [summary(run)]:
            say(text)
    return 1 if run.metrics["pass"] is False else 0


def report_writer(folder: Path) -> tuple[bytes, str]:
    """report.html of a run folder, and the digest of the data block it embeds; what the engine takes as `report`."""
    import pyarrow as pa

    from adjudge.engine.metrics import introduce
    from adjudge.report.html import write
    from adjudge.runs.run import Run

    run = Run(folder)
    introduce(run)
    pa.default_memory_pool().release_unused()  # what the evaluation does not hold any more
    return write(run)
