"""`adjudge collect`: run systems under test over a data set and write what they said, with provenance."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adjudge.cli.common import configuration, progress, say
from adjudge.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from adjudge.collect.runner import Tally
    from adjudge.collect.subject import Subject
    from adjudge.collect.templates import Template

_DEFAULTS: dict[str, Any] = {
    "output": "eval_results.jsonl",
    "modes": "no-tools",
    "trials": 1,
    "temperature": "0",
    "workers": 6,
    "cache": "off",
    "timeout": 60.0,
    "retries": 3,
    "key_env": "OPENAI_API_KEY",
}
_NAMED = re.compile(r"([^:=]+)=(.+)", re.DOTALL)
_KINDS = "python:module:callable, cmd:PROGRAM …, openai:MODEL, file:old.jsonl"
_TOLD = ("vision_model", "structuring_model", "max_iterations", "reasoning_effort")
"""Settings that subjects are told as they are."""


@click.command()
@click.option("--dataset", help="Data set (JSONL, CSV, Parquet …) with `id`; `label` and `meta` are never shown.")
@click.option("--subject", "subjects", multiple=True, metavar="[NAME=]KIND:…", help="System under test; repeat.")
@click.option("--models", help="Names, by commas: the subject is asked as each; without one, models of --base-url.")
@click.option("--output", type=click.Path(), help="Results (JSONL), one record a line [eval_results.jsonl].")
@click.option("--modes", "--tools", "modes", help="on (or tools), off (or no-tools), or both [no-tools].")
@click.option("--trials", type=int, help="Ask every question so often [1].")
@click.option("--temperature", help="Sampling temperature, or none to leave it to the server [0].")
@click.option("--seed", type=int, help="Seed of --shuffle; the request of trial t carries seed + t [none].")
@click.option("--workers", "--num-workers", "workers", type=int, help="Requests in flight [6].")
@click.option("--timeout", type=float, help="Seconds that an answer may take [60].")
@click.option("--retries", type=int, help="Times to ask again after 429, 5xx or a broken connection [3].")
@click.option("--cache", metavar="DIR|off", help="Folder of answers to reuse; every hit is marked [off].")
@click.option("--disable-tool-cache", is_flag=True, default=None, help="Tell subjects to use no cache of their own.")
@click.option("--vision-model", help="Told to the subject, and recorded; so are the next three.")
@click.option("--structuring-model", help="The model that brings an answer into form.")
@click.option("--max-iterations", type=int, help="Most rounds of tool calls.")
@click.option("--reasoning-effort", help="low, medium, high, or what the model knows.")
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
@click.option("-q", "--quiet", is_flag=True, default=None, help="Print nothing but errors.")
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
    from adjudge.collect.runner import Runner, run_configs
    from adjudge.collect.settings import Settings, modes_of
    from adjudge.provenance.redact import Redactor, secrets_in, secrets_of_environment, secrets_of_url

    asked = configuration(config_file, flags)
    # A file says `subject` and `tool`, as the flags do.
    asked |= {f"{name}s": asked.pop(name) for name in ("subject", "tool") if name in asked}
    unknown = sorted(set(asked) - set(flags))
    if unknown:
        raise ConfigError(f"{config_file}: there is no setting {unknown[0]!r}")
    chosen = {**_DEFAULTS, **asked}
    for name in ("dataset", "subjects"):
        if not chosen.get(name) and not (name == "subjects" and chosen.get("models")):
            raise ConfigError(f"--{name.removesuffix('s')} is missing (adjudge collect --help shows an example)")
    output = Path(chosen["output"])
    quiet, force, resume = (bool(chosen.get(name)) for name in ("quiet", "force", "resume"))
    retry_errors = bool(chosen.get("retry_errors"))
    if retry_errors and not resume:
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
        settings=_told(chosen),
    )
    spelled = [secret for text in _subjects(chosen) for secret in secrets_in(text)]
    of_server = [*secrets_of_environment([chosen["key_env"]]), *secrets_of_url(chosen.get("base_url"))]
    redactor = Redactor([*of_server, *spelled])
    template = _template(chosen.get("prompt"))
    of_chat: dict[str, Any] = {
        "base_url": chosen.get("base_url"),
        "key": os.environ.get(chosen["key_env"]),
        "tools": _listed(chosen.get("tools", ())),
        "json_mode": bool(chosen.get("json_mode")),
        "max_tokens": chosen.get("max_tokens"),
    }
    subjects = [subject_of(text, **of_chat) for text in _subjects(chosen)]
    dataset = Dataset(
        chosen["dataset"], limit=chosen.get("limit"), shuffle=bool(chosen.get("shuffle")), seed=settings.seed or 0
    )
    cache = None if chosen["cache"] in {"off", False} else Cache(Path(chosen["cache"]), redactor)
    configs = run_configs(dataset, subjects, template, settings)
    opened = Output(output, redactor, resume=resume, force=force, retry_errors=retry_errors, configs=configs)
    with opened, progress(quiet=quiet, what="") as update:
        earlier = len(opened.done)
        tally = Runner(
            dataset,
            subjects,
            settings,
            opened,
            template=template,
            cache=cache,
            configs=configs,
            on_progress=None if update is None else lambda tally: update(tally.done, tally.total, _spent(tally)),
            on_interrupt=lambda now: say(f"\nfinishing the {now.in_flight} in flight; interrupt again to cancel them"),
            bucket=_buckets_of_triage(),
        ).run()
    written = tally.done - tally.earlier
    if tally.interrupted:
        place = f"{earlier + written} of {tally.total} records are in {output}"
        say(f"interrupted: {place}; run the same command with --resume to go on")
        return 128 + tally.interrupted
    if not quiet:
        say(_summary(tally, written, output))
    if chosen.get("metrics_output"):
        return _measure(chosen, output, quiet=quiet, force=force)
    if written and tally.buckets["errored"] == written and not tally.earlier:
        say(f"adjudge: no question was answered; `error` in {output} says why")
        return 1
    return 0


def subject_of(text: str, *, base_url: str | None = None, **of_chat: Any) -> Subject:
    """The subject of `[NAME=]KIND:REST`; NAME is the model on its records. `of_chat` is what a chat model takes beside."""
    from adjudge.collect.chat import ChatSubject
    from adjudge.collect.command import CommandSubject
    from adjudge.collect.python_subject import PythonSubject
    from adjudge.collect.replay import ReplaySubject

    named = _NAMED.fullmatch(text)
    name, rest = (named[1], named[2]) if named else (None, text)
    kinds: dict[str, Callable[..., Subject]] = {
        "python": PythonSubject,
        "cmd": CommandSubject,
        "openai": partial(ChatSubject, base_url=base_url, **of_chat),
        "file": ReplaySubject,
    }
    kind, colon, what = rest.partition(":")
    if colon and kind in kinds:
        return kinds[kind](what, name)
    raise ConfigError(f"--subject {text!r} is not one of {_KINDS}")


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

    template = shipped_template(protocol(name).package, name) if name in names() else None
    template = template or shipped_template("adjudge.collect", name)
    if template is None:
        raise ConfigError(f"--prompt {name!r} is neither a .j2 file nor a protocol that ships a template")
    return template


def _counts(tally: Tally) -> list[str]:
    """How many records ended where, in the words of the triage protocol; unparsed only where there are any."""
    names = ("answered", "abstained", *(["unparsed"] if tally.buckets["unparsed"] else []), "errored")
    return [f"{tally.buckets[name]} {name}" for name in names]


def _summary(tally: Tally, written: int, output: Path) -> str:
    text = f"{written} records written to {output}: {', '.join(_counts(tally))}; {tally.hits} from the cache or a file"
    if tally.earlier:
        text += f"; {tally.earlier} were there before"
    if tally.possibly_cached:
        sudden = "came ten times faster than another to the same question and do not say why: possibly cached"
        text += f"\n{tally.possibly_cached} answers {sudden}"
    return text


def _subjects(chosen: dict[str, Any]) -> list[str]:
    """The subjects that --subject and --models name together."""
    texts = _listed(chosen.get("subjects") or ())
    models = [name.strip() for text in _listed(chosen.get("models") or ()) for name in text.split(",") if name.strip()]
    if not models:
        return texts
    if not texts:
        return [f"openai:{model}" for model in models]
    if len(texts) > 1 or "=" in texts[0].partition(":")[0]:
        raise ConfigError("--models names the models of one --subject, which then has no name of its own")
    if any("=" in model for model in models):
        raise ConfigError("a model of --models has no = in its name")
    return [f"{model}={texts[0]}" for model in models]


def _told(chosen: dict[str, Any]) -> dict[str, Any]:
    """What subjects are told beside the question."""
    told = {name: chosen[name] for name in _TOLD if chosen.get(name) is not None}
    if chosen.get("disable_tool_cache"):
        if chosen["cache"] not in {"off", False}:
            raise ConfigError("--disable-tool-cache and --cache contradict each other")
        told["tool_cache"] = False
    return told


def _buckets_of_triage() -> Callable[[Mapping[str, Any]], str]:
    """Where a record ended, by the words that the triage protocol declares."""
    from adjudge.collect.record import answered_or_errored
    from adjudge.protocols.triage.words import UNCERTAIN, Classes, normal, verdict_words

    words = verdict_words(Classes(), {})

    def bucket(record: Mapping[str, Any]) -> str:
        if record["error"] is not None or "prediction" not in record:
            return answered_or_errored(record)
        meaning = words.get(normal(record["prediction"] or ""))
        return "unparsed" if meaning is None else "abstained" if meaning == UNCERTAIN else "answered"

    return bucket


def _spent(tally: Tally) -> str:
    """Answered, abstained, errors and cache hits, for the bar."""
    return " · ".join([*_counts(tally), f"{tally.hits} hits"])


def _check_metrics(path: Path, *, replace: bool) -> None:
    """Everything that --metrics-output needs, before anything is asked."""
    from adjudge.protocols.base import names

    if "triage" not in names():
        lacking = f"the triage protocol, which is not installed (installed: {', '.join(names()) or 'none'})"
        how = "collect without it and judge the results with their protocol"
        raise ConfigError(f"--metrics-output runs {lacking}; {how}")
    if path.exists() and not replace:
        raise OutputError(f"{path} exists already; choose another --metrics-output, or --force to replace it")


def _measure(chosen: dict[str, Any], output: Path, *, quiet: bool, force: bool) -> int:
    """Judge the results with the triage protocol; a limited collection is judged against its own records."""
    from adjudge.cli import common
    from adjudge.engine.evaluate import Options, evaluate
    from adjudge.protocols.base import protocol
    from adjudge.runs.writer import METRICS

    config: dict[str, Any] = {"results": [[str(output)]]}
    command = ["adjudge", "triage", "--results", str(output)]
    if chosen.get("limit") is None and chosen["dataset"] != "-":
        config["manifest"] = [chosen["dataset"]]
        command += ["--manifest", chosen["dataset"]]
    destination = common.made_at(chosen.get("out"), force=force)
    with destination as folder:
        options = Options(out=folder, force=force, command=tuple(command), report=common.report_writer)
        run = evaluate(protocol("triage"), config, options)
    target = Path(chosen["metrics_output"])
    target.parent.mkdir(parents=True, exist_ok=True)
    common.write_file(target, (run / METRICS).read_bytes())
    return common.show(run, as_json=False, quiet=quiet)
