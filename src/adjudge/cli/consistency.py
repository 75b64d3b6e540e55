"""`adjudge consistency`: judge two validators, or more raters; policies, semantic stability, jitter, example data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from adjudge.cli.common import configuration, evaluate_and_show, run_options
from adjudge.errors import ConfigError, OutputError

_OWN = ("config_file", "out", "limit", "workers", "gates", "force", "as_json", "quiet")


class _Consistency(click.Group):
    """A group that is also a command; one `--raters` takes several files, as the shell expands a pattern."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "--pairs FILE [OPTIONS]")
        formatter.write_usage(ctx.command_path, "--scholar FILE --auditor FILE [--answers FILE] [OPTIONS]")
        formatter.write_usage(ctx.command_path, "--raters FILE … [--labels A,B,…] [OPTIONS]")
        formatter.write_usage(ctx.command_path, "policy | stability | jitter | generate …")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given: list[str] = []
        follow = False
        for word in args:
            if follow and not word.startswith("-") and given[-1] != "--raters":
                given += ["--raters", word]
                continue
            if word.startswith("-"):
                follow = word == "--raters"
            given.append(word)
        return super().parse_args(ctx, given)


@click.group(cls=_Consistency, invoke_without_command=True)
@click.option(
    "--pairs", multiple=True, help="Pairs (JSONL …): qid, scholar, auditor, answer_json, retrieved_ids, flags."
)
@click.option("--scholar", multiple=True, help="The Scholar's labels: qid, label, reason.")
@click.option("--auditor", multiple=True, help="The Auditor's labels: qid, label, reason.")
@click.option("--answers", multiple=True, help="Answers to the same qids: answer_json, retrieved_ids, flags.")
@click.option("--raters", multiple=True, help="Labels of more raters: a file each, or one table item,rater,label.")
@click.option("--labels", help="Label space of your own, comma separated (agreement only).")
@click.option("--ordered", is_flag=True, default=None, help="The labels are in order: adds weighted κ.")
@click.option("--reference", help="The rater that is the truth: adds sensitivity, specificity, corrected pass rate.")
@click.option("--positive", help="The label that passes, for --reference [the first].")
@click.option("--policy", help="Decision table: strict, refusal-aware, or a YAML file [strict].")
@click.option("--pa-gate", "--pa_gate", "pa_gate", type=float, help="Percent agreement at least [0.90].")
@click.option("--kappa-gate", "--kappa_gate", "kappa_gate", type=float, help="Cohen's κ at least [0.75].")
@click.option("--abstain-gate", "--abstain_gate", "abstain_gate", type=float, help="Abstain rate at most [0.02].")
@click.option(
    "--kappa-undefined",
    "--kappa_undefined",
    "kappa_undefined",
    type=click.Choice(["unknown", "pass"]),
    help="The κ gate where all items have one and the same label [unknown, which fails].",
)
@click.option("--tsv", type=click.Path(path_type=Path), help="Write the disagreements here as well.")
@click.option(
    "--on-bad-row",
    "--on_bad_row",
    "on_bad_row",
    type=click.Choice(["error", "skip"]),
    help="Stop at a row that cannot be used, or count and list it [error].",
)
@click.option("--reason-limit", type=int, help="Characters a reason may have [280].")
@click.option("--rules", multiple=True, help="Add the rule set of an installed package; repeat.")
@run_options
@click.pass_context
def consistency(ctx: click.Context, /, **flags: Any) -> int | None:
    r"""Judge two validators of the same answers: agreement, arbitration of every pair, gates.

    \b
    Example, as pasted:
      adjudge consistency generate --out example
      adjudge consistency --pairs example/pairs.jsonl --policy refusal-aware --out example/run
    """
    if ctx.invoked_subcommand is not None:
        return None
    own = {key: flags.pop(key) for key in _OWN}
    tsv = flags.pop("tsv")
    settings = configuration(own.pop("config_file"), flags)
    if not settings:
        click.echo(ctx.get_help())
        return 2
    tsv = tsv or (Path(settings.pop("tsv")) if settings.get("tsv") else None)
    for name in ("pairs", "scholar", "auditor", "answers", "raters"):
        if isinstance(settings.get(name), str):
            settings[name] = [settings[name]]
    if isinstance(settings.get("labels"), str):
        settings["labels"] = [label.strip() for label in settings["labels"].split(",")]
    if tsv is not None:
        _writable(tsv)
    return evaluate_and_show("consistency", settings, **own, on_run=lambda run: _copy(run, tsv))


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
        from adjudge.protocols.consistency.measure import TSV

        if not (run / TSV).is_file():
            raise ConfigError("--tsv: only pairs have a table of disagreements; raters have none")
        tsv.write_bytes((run / TSV).read_bytes())


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
    click.echo(f"{loaded.table.name}: {rows} rows decide all {cases} combinations; version {short(loaded.content)}")
    return 0


@consistency.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the data set.")
@click.option("--items", type=int, default=400, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def generate(out: Path, items: int, seed: int, force: bool) -> int:
    """Write a small realistic data set: pairs, and gold questions with runs for `stability`."""
    from adjudge.protocols.consistency.generate import generate as write

    write(out, seed=seed, items=items, force=force)
    click.echo(f"{items} pairs, and 40 gold questions with 5 runs each, in {out}", err=True)
    return 0
