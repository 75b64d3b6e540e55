"""`adjudge consistency`: judge two validators, or more raters; policies, semantic stability, jitter, example data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from adjudge.cli.common import (
    PATH,
    ProtocolGroup,
    evaluate_and_show,
    example_options,
    numbers,
    pairs,
    put,
    run_options,
    say,
    settings_and_run_flags,
    write_file,
)
from adjudge.errors import ConfigError, InputError, OutputError


@click.group(
    cls=ProtocolGroup,
    usage=(
        "--pairs FILE [OPTIONS]",
        "--scholar FILE --auditor FILE [--answers FILE] [OPTIONS]",
        "--raters FILE … [--labels A,B,…] [OPTIONS]",
        "policy | stability | jitter | generate …",
    ),
    spread=("--raters",),
    context_settings={"token_normalize_func": lambda word: word.replace("_", "-")},  # --pa_gate, as the method has it
)
@click.option(
    "--pairs", multiple=True, help="Pairs (JSONL …): qid, scholar, auditor, answer_json, retrieved_ids, flags."
)
@click.option("--scholar", multiple=True, help="The Scholar's labels: qid, label, reason.")
@click.option("--auditor", multiple=True, help="The Auditor's labels: qid, label, reason.")
@click.option("--answers", multiple=True, help="Answers to the same qids: answer_json, retrieved_ids, flags.")
@click.option("--raters", multiple=True, help="Labels of more raters: a file each, or one table item,rater,label.")
@click.option(
    "--map", "map", multiple=True, metavar="WORD=LABEL", help="Count another word as one of the four labels; repeat."
)
@click.option("--flag", multiple=True, metavar="NAME", help="A further flag that rejects what carries it; repeat.")
@click.option("--labels", help="Label space of your own, comma separated (with --raters: agreement only).")
@click.option("--ordered", is_flag=True, default=None, help="The labels are in order: adds weighted κ.")
@click.option("--reference", help="The rater that is the truth: adds sensitivity, specificity, corrected pass rate.")
@click.option("--positive", help="The label that passes, for --reference [the first].")
@click.option("--policy", help="Decision table: strict, refusal-aware, or a YAML file [strict].")
@click.option("--pa-gate", type=float, help="Percent agreement at least [0.90].")
@click.option("--kappa-gate", type=float, help="Cohen's κ at least [0.75].")
@click.option("--abstain-gate", type=float, help="Abstain rate at most [0.02].")
@click.option("--paired-gate", type=float, help="Share of items with both labels at least [0.99].")
@click.option(
    "--kappa-undefined",
    type=click.Choice(["unknown", "pass"]),
    help="The κ gate where all items have one and the same label [unknown, which fails].",
)
@click.option("--tsv", type=PATH, help="Write the disagreements here as well.")
@click.option(
    "--on-bad-row",
    type=click.Choice(["error", "skip"]),
    help="Stop at a row that cannot be used, or count and list it [error].",
)
@click.option("--reason-limit", type=int, help="Characters a reason may have [280].")
@click.option("--rules", multiple=True, help="Add the rule set of an installed package; repeat.")
@run_options
@click.pass_context
def consistency(ctx: click.Context, /, **flags: Any) -> int | None:
    """Judge two validators of the same answers: agreement, arbitration of every pair, gates.

    \b
    Example, as pasted:
      adjudge consistency generate --out example
      adjudge consistency --pairs example/pairs.jsonl --policy refusal-aware --out example/run
    """
    if ctx.invoked_subcommand is not None:
        return None
    tsv = flags.pop("tsv")
    settings, run_flags = settings_and_run_flags(ctx, flags)
    tsv = tsv or (Path(settings.pop("tsv")) if settings.get("tsv") else None)
    for name in ("pairs", "scholar", "auditor", "answers", "raters"):
        if isinstance(settings.get(name), str):
            settings[name] = [settings[name]]
    if isinstance(settings.get("labels"), str):
        settings["labels"] = [label.strip() for label in settings["labels"].split(",")]
    if isinstance(settings.get("map"), list):
        settings["map"] = pairs("--map", settings["map"], "WORD=LABEL, such as OK=VALID", last=True)
    if tsv is not None:
        _writable(tsv)
    return evaluate_and_show("consistency", settings, run_flags, on_run=lambda run: _copy(run, tsv))


def _writable(path: Path) -> None:
    """Refuse a place that cannot be written before the work starts."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"--tsv {path}: the folder cannot be made: {error.strerror}") from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OutputError(f"--tsv {path}: cannot be written")


def _copy(run: Path, tsv: Path | None) -> None:
    if tsv is not None:
        from adjudge.protocols.consistency.metrics import TSV

        if not (run / TSV).is_file():
            raise ConfigError("--tsv: only pairs have a table of disagreements; raters have none")
        write_file(tsv, (run / TSV).read_bytes())


@consistency.group()
def policy() -> None:
    """Show or check a decision table."""


@policy.command("show")
@click.argument("name", default="strict")
def policy_show(name: str) -> int:
    """Print a policy as YAML, ready to copy and edit."""
    from adjudge.protocols.consistency.policy import load, policy_text

    load(name)
    click.echo(policy_text(name), nl=False)
    return 0


@policy.command("check")
@click.argument("name", default="strict")
def policy_check(name: str) -> int:
    """Check that a table has no hole and no unreachable row, and print its version."""
    from adjudge.protocols.consistency.policy import load
    from adjudge.provenance.canonical import short

    loaded = load(name)
    rows, cases = len(loaded.table.rows), loaded.table.combinations()
    say(f"{loaded.table.name}: {rows} rows decide all {cases} combinations; version {short(loaded.content)}", err=False)
    return 0


@consistency.command()
@click.option("--gold", multiple=True, help="Gold items (JSONL …): qid, question, answerable, gold_claim_substr, …")
@click.option("--runs", multiple=True, help="Runs (JSONL …): qid, run_id, seed, jitter, answer_json, retrieved_ids.")
@click.option("--min-runs", type=int, help="Runs that every gold item needs [2].")
@click.option(
    "--bound",
    "bounds",
    multiple=True,
    metavar="MEASURE=X",
    help="Another bound for acr, cghc, css, ned50, scu or rcr; repeat.",
)
@run_options
@click.pass_context
def stability(ctx: click.Context, /, **flags: Any) -> int:
    """Measure whether answers stay the same under seed and prompt jitter."""
    bounds = numbers("--bound", flags.pop("bounds"), "MEASURE=NUMBER, such as acr=0.9")
    settings, run_flags = settings_and_run_flags(ctx, flags)
    if bounds:
        settings["bounds"] = {**settings.get("bounds", {}), **{name.lower(): bound for name, bound in bounds.items()}}
    return evaluate_and_show("stability", settings, run_flags)


@consistency.command()
@click.argument("gold")
@click.option(
    "--jitters",
    default="ws,punct,syn,order",
    show_default=True,
    help="Kinds, comma separated; `none` is the control.",
)
@click.option("--seeds", default="0-4", show_default=True, help="Seeds: 0-4, or 1,5,9.")
@click.option("-o", "--output", type=PATH, help="Where the prompts go [standard output].")
def jitter(gold: str, jitters: str, seeds: str, output: Path | None) -> int:
    """Write the jittered prompts of a gold file, each with the edits that lead back."""
    import msgspec

    from adjudge.protocols.stability.jitter import KINDS, jittered
    from adjudge.protocols.stability.rows import Gold
    from adjudge.readers.records import records
    from adjudge.readers.sources import open_source

    kinds = [kind.strip() for kind in jitters.split(",")]
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ConfigError(f"--jitters: {unknown[0]!r} is not one of {', '.join(KINDS)}")
    items = []
    with open_source(gold) as source:
        for line, text in records(source):
            try:
                item = msgspec.json.decode(text, type=Gold)
            except msgspec.DecodeError as error:
                raise InputError(f"{error}; a gold item has `qid` and `question`", file=gold, line=line) from None
            if not item.question:
                raise InputError("has no question to jitter", file=gold, line=line)
            items.append({"qid": str(item.qid), "question": item.question})
    prompts = list(jittered(items, kinds, _seeds(seeds)))
    rows = [row for row in prompts if row["question"] is not None]
    data = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    if output is not None:
        _writable(output)
    put(output, data)
    left = sorted({f"{row['qid']} ({row['jitter']})" for row in prompts if row["question"] is None})
    say(f"{len(rows)} prompts of {len(items)} questions")
    if left:
        more = f" and {len(left) - 10} more" if len(left) > 10 else ""
        say(f"left out, nothing there to change: {', '.join(left[:10])}{more}")
    return 0


def _seeds(text: str) -> list[int]:
    try:
        seeds: list[int] = []
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            seeds += range(int(first), int(last) + 1) if dash else [int(first)]
    except ValueError:
        raise ConfigError(f"--seeds {text!r} is neither a range such as 0-4 nor a list such as 1,5,9") from None
    if not seeds:
        raise ConfigError(f"--seeds {text!r} holds no seed")
    return seeds


@consistency.command()
@click.option("--items", type=int, default=400, show_default=True, help="Pairs.")
@example_options
def generate(out: Path, items: int, seed: int, force: bool) -> int:
    """Write a small realistic data set: pairs, and gold questions with runs for `stability`."""
    from adjudge.protocols.consistency.example import generate as pairs
    from adjudge.protocols.stability.example import generate as questions

    pairs(out, seed=seed, items=items, force=force)
    questions(out, seed=seed, force=force)
    say(f"{items} pairs, and 40 gold questions with 5 runs each, in {out}")
    return 0
