"""`adjudge collect`: run systems under test over a data set and write what they said, with provenance."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adjudge.cli.common import configuration, say
from adjudge.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from adjudge.collect.runner import Tally
    from adjudge.collect.templates import Template

_DEFAULTS: dict[str, Any] = {
    "modes": "no-tools",
    "trials": 1,
    "temperature": "0",
    "workers": 6,
    "cache": "off",
    "timeout": 60.0,
    "retries": 3,
    "key_env": "OPENAI_API_KEY",
}
_KNOWN = frozenset(
    {*_DEFAULTS, "dataset", "subjects", "output", "metrics_output", "out", "limit", "shuffle", "seed", "prompt"}
    | {"base_url", "tools", "json_mode", "max_tokens", "resume", "retry_errors", "force", "quiet"}
)


@click.command()
@click.option("--dataset", help="Data set (JSONL, CSV, Parquet …) with `id`; `label` and `meta` are never shown.")
@click.option("--subject", "subjects", multiple=True, metavar="[NAME=]KIND:…", help="System under test; repeat.")
@click.option("--output", type=click.Path(), help="Results (JSONL), one record a line.")
@click.option("--modes", help="tools, no-tools, or both: tools,no-tools [no-tools].")
@click.option("--trials", type=int, help="Ask every question so often [1].")
@click.option("--temperature", help="Sampling temperature, or none to leave it to the server [0].")
@click.option("--seed", type=int, help="Seed of --shuffle; the request of trial t carries seed + t [none].")
@click.option("--workers", type=int, help="Requests in flight [6].")
@click.option("--timeout", type=float, help="Seconds that an answer may take [60].")
@click.option("--retries", type=int, help="Times to ask again after 429, 5xx or a broken connection [3].")
@click.option("--cache", metavar="DIR|off", help="Folder of answers to reuse; every hit is marked [off].")
@click.option("--limit", type=int, help="Only so many samples.")
@click.option("--shuffle", is_flag=True, default=None, help="In an order drawn with --seed.")
@click.option("--prompt", metavar="FILE.j2|NAME", help="Prompt template: a file, or triage, flight … of a protocol.")
@click.option("--base-url", help="Address of the chat-completions server of openai: subjects.")
@click.option("--key-env", metavar="NAME", help="Environment variable that holds its key [OPENAI_API_KEY].")
@click.option("--tool", "tools", multiple=True, metavar="module:function", help="Tool in mode tools; repeat.")
@click.option("--json-mode", is_flag=True, default=None, help="Ask the server for one JSON object.")
@click.option("--max-tokens", type=int, help="Most tokens of an answer.")
@click.option("--resume", is_flag=True, default=None, help="Go on with an --output that was begun.")
@click.option("--retry-errors", is_flag=True, default=None, help="With --resume, ask again what ended in an error.")
@click.option("--metrics-output", type=click.Path(), help="Run the triage protocol on the result; write its metrics.")
@click.option("--out", type=click.Path(), help="Run directory of --metrics-output [runs/triage-<UTC time>-<random>].")
@click.option("--config", "config_file", type=click.Path(), help="YAML file with any of these flags; flags win.")
@click.option("--force", is_flag=True, default=None, help="Replace what is there.")
@click.option("--quiet", is_flag=True, default=None, help="Print nothing but errors.")
def collect(config_file: str | None, **flags: Any) -> int:
    """Run systems under test over a data set and write what they said.

    \b
    Subjects:
      python:module:callable   a function, plain or async
      cmd:PROGRAM …            a program: one JSON line in, one out
      openai:MODEL             a chat-completions server, with --base-url
      file:old.jsonl           an earlier collection, replayed
    \b
    Example:
      adjudge collect --dataset data.jsonl --subject python:mine:answer --trials 3 --output results.jsonl
    """
    from adjudge.collect.cache import Cache
    from adjudge.collect.dataset import Dataset
    from adjudge.collect.output import Output
    from adjudge.collect.redact import Redactor, secrets_of_environment, secrets_of_url
    from adjudge.collect.runner import Runner, run_configs
    from adjudge.collect.settings import Settings, modes_of
    from adjudge.collect.subjects import subject_of

    asked = configuration(config_file, flags)
    # A file says `subject` and `tool`, as the flags do.
    asked |= {f"{name}s": asked.pop(name) for name in ("subject", "tool") if name in asked}
    unknown = sorted(set(asked) - _KNOWN)
    if unknown:
        raise ConfigError(f"{config_file}: there is no setting {unknown[0]!r}")
    chosen = {**_DEFAULTS, **asked}
    for name in ("dataset", "subjects", "output"):
        if not chosen.get(name):
            raise ConfigError(f"--{name.removesuffix('s')} is missing (adjudge collect --help shows an example)")
    output = Path(chosen["output"])
    quiet, force, resume = (bool(chosen.get(name)) for name in ("quiet", "force", "resume"))
    if chosen.get("retry_errors") and not resume:
        raise ConfigError("--retry-errors goes with --resume")
    if chosen.get("metrics_output"):
        _check_metrics(Path(chosen["metrics_output"]), replace=force or resume)
    settings = Settings(
        modes=modes_of(str(chosen["modes"])),
        trials=chosen["trials"],
        temperature=_temperature(str(chosen["temperature"])),
        seed=chosen.get("seed"),
        workers=chosen["workers"],
        timeout=float(chosen["timeout"]),
        retries=chosen["retries"],
    )
    redactor = Redactor([*secrets_of_environment([chosen["key_env"]]), *secrets_of_url(chosen.get("base_url"))])
    template = _template(chosen.get("prompt"))
    subjects = [
        subject_of(
            text,
            base_url=chosen.get("base_url"),
            key=os.environ.get(chosen["key_env"]),
            tools=_listed(chosen.get("tools", ())),
            json_mode=bool(chosen.get("json_mode")),
            max_tokens=chosen.get("max_tokens"),
        )
        for text in _listed(chosen["subjects"])
    ]
    dataset = Dataset(
        chosen["dataset"], limit=chosen.get("limit"), shuffle=bool(chosen.get("shuffle")), seed=settings.seed or 0
    )
    cache = None if chosen["cache"] in {"off", False} else Cache(Path(chosen["cache"]), redactor)
    configs = run_configs(dataset, subjects, template, settings)
    opened = Output(
        output, redactor, resume=resume, force=force, retry_errors=bool(chosen.get("retry_errors")), configs=configs
    )
    with opened, _bar(quiet=quiet) as progress:
        earlier = len(opened.done)
        tally = Runner(
            dataset,
            subjects,
            settings,
            opened,
            template=template,
            cache=cache,
            configs=configs,
            on_progress=progress,
            on_interrupt=_say_stopping,
        ).run()
    written = tally.done - tally.earlier
    if tally.interrupted:
        say(
            f"interrupted: {earlier + written} of {tally.total} records are in {output}; "
            "run the same command with --resume to go on",
        )
        return 130
    if not quiet:
        say(_summary(tally, written, output))
    if chosen.get("metrics_output"):
        return _measure(chosen, output, quiet=quiet, force=force)
    if written and tally.errors == written and not tally.earlier:
        say(f"adjudge: no question was answered; `error` in {output} says why")
        return 1
    return 0


def _listed(value: Any) -> list[str]:
    return [str(value)] if isinstance(value, str) else [str(item) for item in value]


def _temperature(text: str) -> float | None:
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--temperature {text!r} is neither a number nor none") from None


def _template(name: str | None) -> Template | None:
    """A file, the triage template, or `prompts/NAME.j2` of an installed protocol."""
    from adjudge.collect.templates import shipped_template, template_file

    if name is None:
        return None
    if name.endswith(".j2") or os.sep in name:
        return template_file(Path(name))
    from adjudge.protocols.base import names, protocol

    if name in names():
        template = shipped_template(protocol(name).package, name)
        if template is not None:
            return template
    template = shipped_template("adjudge.collect", name)
    if template is None:
        raise ConfigError(f"--prompt {name!r} is neither a .j2 file nor a protocol that ships a template")
    return template


def _summary(tally: Tally, written: int, output: Path) -> str:
    text = f"{written} records written to {output}: {tally.answered} answered, {tally.abstained} abstained, "
    text += f"{tally.errors} errors; {tally.hits} from the cache or a file"
    return text + (f"; {tally.earlier} were there before" if tally.earlier else "")


def _say_stopping(tally: Tally) -> None:
    say(f"\nfinishing the {tally.in_flight} in flight; interrupt again to cancel them")


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Callable[[Tally], None] | None]:
    """Done, answered, abstained, errors, cache hits, rate and time left, on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def update(tally: Tally) -> None:
            speed = bar.tasks[0].speed
            counts = (
                f"{tally.answered} answered · {tally.abstained} abstained · {tally.errors} errors · {tally.hits} hits"
            )
            bar.update(
                task,
                completed=tally.done,
                total=tally.total,
                description=counts + (f" · {speed:,.1f}/s" if speed else ""),
            )

        yield update


def _check_metrics(path: Path, *, replace: bool) -> None:
    """Everything that --metrics-output needs, before anything is asked."""
    from adjudge.protocols.base import names

    if "triage" not in names():
        raise ConfigError(
            "--metrics-output runs the triage protocol, which is not installed "
            f"(installed: {', '.join(names()) or 'none'}); collect without it and judge the results with their protocol"
        )
    if path.exists() and not replace:
        raise OutputError(f"{path} exists already; choose another --metrics-output, or --force to replace it")


def _measure(chosen: dict[str, Any], output: Path, *, quiet: bool, force: bool) -> int:
    """Judge the results with the triage protocol; a limited collection is judged against its own records."""
    from adjudge.cli import common
    from adjudge.engine.evaluate import Options, evaluate
    from adjudge.engine.remote import Place
    from adjudge.protocols.base import protocol
    from adjudge.runs.new_file import write_whole
    from adjudge.runs.writer import METRICS

    config: dict[str, Any] = {"results": [[str(output)]]}
    command = ["adjudge", "triage", "--results", str(output)]
    if chosen.get("limit") is None and chosen["dataset"] != "-":
        config["manifest"] = [chosen["dataset"]]
        command += ["--manifest", chosen["dataset"]]
    place = Place(chosen.get("out") or None, force=force)
    run = evaluate(
        protocol("triage"),
        config,
        Options(out=place.folder, force=force, command=tuple(command), report=common.report_writer),
    )
    place.settle()
    target = Path(chosen["metrics_output"])
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, (run / METRICS).read_bytes())
    return common.show(run, as_json=False, quiet=quiet)
