"""`adjudge demo`: every protocol on generated examples."""

from __future__ import annotations

from pathlib import Path

import click

from adjudge.cli.common import PATH, report_writer, say
from adjudge.cli.view import draw_page
from adjudge.errors import OutputError

JUDGE = "judge"
"""The part of the demo in which an invented language model judges flight predictions."""
_JUDGED = 40


@click.command()
@click.option("--out", type=PATH, default=Path("demo"), show_default=True, help="Folder for data and runs.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Another seed makes other data, and every number changes."
)
@click.option("--protocol", "only", multiple=True, help="Only this protocol, or `judge`; repeat.")
@click.option("--force", is_flag=True, help="Replace an earlier demo.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def demo(out: Path, seed: int, only: tuple[str, ...], force: bool, quiet: bool) -> int:
    """Run every protocol on generated examples and print where the reports are."""
    import adjudge
    from adjudge.engine.evaluate import Options, evaluate
    from adjudge.protocols.base import Protocol, names, protocol
    from adjudge.report.text import summary

    for name in only or (*names(), JUDGE):
        if name == JUDGE:
            _judge(out / JUDGE, seed, force=force, quiet=quiet)
            continue
        chosen = protocol(name)
        data, run = out / name / "data", out / name / "run"
        _refuse(run, force=force)
        if type(chosen).example is Protocol.example:
            continue  # a protocol without an example
        data.mkdir(parents=True, exist_ok=True)
        config = chosen.example(data, seed)
        if config is None:
            continue
        evaluate(
            chosen,
            {**config, "seed": seed},
            Options(out=run, force=force, command=("adjudge", "demo", "--seed", str(seed)), report=report_writer),
        )
        if not quiet:
            say(summary(adjudge.load_run(run)) + "\n")
    return 0


def _refuse(place: Path, *, force: bool) -> None:
    if place.exists() and not force:
        raise OutputError(f"{place} exists already; choose another --out, or --force to replace it")


def _judge(out: Path, seed: int, *, force: bool, quiet: bool) -> None:
    """An invented judge is recorded, replayed for free, and validated against invented people."""
    import msgspec

    import adjudge
    from adjudge.agents.validation import read_labels, validation_of
    from adjudge.engine.evaluate import Options, evaluate
    from adjudge.protocols.base import protocol
    from adjudge.provenance.canonical import pretty
    from adjudge.report.text import summary
    from adjudge.runs.writer import VALIDATION, add_to_run
    from adjudge.verdict.agent import DECISIONS

    recorded, run = out / "recorded", out / "run"
    for place in (recorded, run):
        _refuse(place, force=force)
    (out / "data").mkdir(parents=True, exist_ok=True)
    config = protocol("flight").example(out / "data", seed) or {}
    command = ("adjudge", "demo", "--protocol", JUDGE, "--seed", str(seed))
    options = Options(out=recorded, force=force, limit=_JUDGED, command=command)
    asked = {**config, "seed": seed, "agent": "invented", "agent_options": {"votes": 3}}
    evaluate(protocol("flight"), asked, options)
    options = Options(out=run, force=force, limit=_JUDGED, command=command, report=report_writer)
    evaluate(protocol("flight"), {**config, "seed": seed, "agent": f"replay:{recorded}"}, options)
    labels = out / "data" / "people.jsonl"
    verdicts = adjudge.load_run(recorded).columns(["sample", "model", "verdict", "status"]).to_pylist()
    answered = [row for row in verdicts if row["status"] == "answered"]
    lines = []
    for number, row in enumerate(answered):
        verdict = DECISIONS[DECISIONS.index(row["verdict"]) ^ (number % 37 == 36)]
        lines.append({"id": row["sample"], "model": row["model"], "verdict": verdict})
    labels.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    loaded = adjudge.load_run(run)
    add_to_run(run, {VALIDATION: pretty(validation_of(loaded, read_labels(labels), labels.name))}, loaded.manifest)
    draw_page(run)
    if not quiet:
        say(summary(adjudge.load_run(run)) + "\n")
