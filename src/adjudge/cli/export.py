"""`adjudge export`: a run in other shapes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import msgspec

from adjudge.cli.common import PATH, pairs, refuse_log, say
from adjudge.cli.intact import open_intact, unverified_option
from adjudge.cli.logs import logs_as_runs
from adjudge.errors import ConfigError
from adjudge.report.numbers import json_line
from adjudge.runs.tables import whole_file

if TYPE_CHECKING:
    from adjudge.runs.run import Run


@click.command()
@click.argument("run", type=click.Path(), metavar="RUN_OR_LOG", callback=logs_as_runs)
@click.option("--records", type=click.Choice(["jsonl"]), help="Every sample as one JSON object a line.")
@click.option("--eval-json", is_flag=True, help="The evaluation JSON of a gui run.")
@click.option("--eee", type=PATH, metavar="DIR", help="Every-Eval-Ever 0.3 records, two files a model.")
@click.option(
    "--about",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --eval-json: device, checkpoint_path, …; with --eee: organization, relationship, developer …; repeat.",
)
@click.option("--sample", help="Only this sample.")
@click.option("--model", help="Only this model.")
@click.option(
    "--in-toto", is_flag=True, help="The run as an in-toto statement (test-result), to be signed by other tools."
)
@click.option("-o", "--output", type=PATH, help="File to write [stdout].")
@unverified_option
def export(  # noqa: PLR0913 -- click hands every flag over by its name
    run: str,
    records: str | None,
    eval_json: bool,
    eee: Path | None,
    about: tuple[str, ...],
    sample: str | None,
    model: str | None,
    in_toto: bool,
    output: Path | None,
    unverified: bool,
) -> int:
    """Write a RUN's records, with evidence rendered, or its evaluation JSON, to stdout or a file.

    --eee DIR writes, for every model, its numbers as JSON and its samples as JSON Lines, for collections of evaluations.
    """
    from adjudge.report.in_toto import statement

    if [records is not None, eval_json, eee is not None, in_toto].count(True) != 1:
        raise ConfigError("say what to export: --records jsonl, --eee DIR, --in-toto, or --eval-json for a gui run")
    loaded = open_intact(run, unverified=unverified)
    if eee is not None:
        if output is not None or sample is not None or model is not None:
            raise ConfigError("--eee writes a whole run into its own folder: leave out -o, --sample and --model")
        return _eee(loaded, eee, about)
    shown = output is None and sys.stdout.isatty()
    with _sink(output) as sink:
        if in_toto:
            sink.write(statement(loaded))
        elif eval_json:
            sink.write(_evaluation(loaded, about))
        elif sample is not None:
            for row in loaded.find(sample, model):
                sink.write(_line(loaded.record(sample, row["model"]), shown=shown))
        else:
            for record in loaded.records():
                if model is None or record.get("model_name") == model:
                    sink.write(_line(record, shown=shown))
    return 0


def _line(record: dict[str, Any], *, shown: bool) -> bytes:
    """A record as a line of JSON; on a terminal nothing in it can move the cursor."""
    data = msgspec.json.encode(record)
    return (json_line(data.decode()).encode() if shown else data) + b"\n"


def _eee(run: Run, folder: Path, about: tuple[str, ...]) -> int:
    from adjudge.report import eee

    told = _about(about, eee.ABOUT)
    for key, known, default in (
        ("relationship", eee.RELATIONSHIPS, "other"),
        ("deployment_type", eee.DEPLOYMENTS, "unknown"),
        ("model_availability", eee.AVAILABLE, "unknown"),
    ):
        if told.get(key, default) not in known:
            raise ConfigError(f"--about {key} is one of {', '.join(known)}")
    written = eee.write(run, folder, told)
    say(f"{folder}: {len(written)} model{'' if len(written) == 1 else 's'}")
    left_out = eee.whole_run(run)
    if left_out:
        say(f"{left_out} numbers are about several models at once and stand in no record")
    return 0


def _about(texts: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    form = f"KEY=VALUE with one of {', '.join(known)}"
    about = pairs("--about", texts, form)
    for key in about:
        if key not in known:
            raise ConfigError(f"--about {key}={about[key]!r} is not of the form {form}")
    return about


def _evaluation(run: Run, about: tuple[str, ...]) -> bytes:
    from adjudge.protocols.gui.config import ABOUT
    from adjudge.protocols.gui.evalfile import eval_json

    told: dict[str, Any] = {**_about(about, ABOUT)}
    try:
        told |= {key: float(told[key]) for key in ("memory_gb",) if key in told}
    except ValueError:
        raise ConfigError(f"--about memory_gb={told['memory_gb']}: memory_gb is a number") from None
    return eval_json(run, told)


@contextmanager
def _sink(output: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears when it is whole."""
    if output is not None:
        refuse_log(output)
        with whole_file(output) as stream:
            yield stream
        return
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()
