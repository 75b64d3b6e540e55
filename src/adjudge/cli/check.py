"""`adjudge check`: judge structured outputs by a rule file; make, check and compare rule files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from adjudge.cli.common import PATH, ProtocolGroup, evaluate_and_show, run_options, say, settings_and_run_flags


@click.group(
    cls=ProtocolGroup,
    usage=("--outputs FILE … --rules FILE [--reference FILE] [OPTIONS]", "init | lint | diff | generate …"),
    spread=("--outputs", "--reference"),
)
@click.option("--outputs", multiple=True, help="Model outputs (JSONL …); several files may follow.")
@click.option("--rules", "rule_file", metavar="FILE", help="The rule file (YAML).")
@click.option(
    "--reference", multiple=True, help="The right values by id (JSONL …), for gold.FIELD; several files may follow."
)
@click.option("--match", type=click.Choice(["id", "line"]), help="Match rows by id, or by line [id].")
@click.option("--repairs/--no-repairs", default=None, help="Whether broken JSON may be repaired [repairs].")
@click.option("--rule-set", "rules", multiple=True, help="Add the rule set of an installed package; repeat.")
@click.option("--agent", help="Evaluator agent [rules].")
@click.option("--seconds", type=int, help="Computing time that the rules may take for a batch [10].")
@click.option("--memory-mb", type=int, help="Memory that the rules may take [600].")
@run_options
@click.pass_context
def check(ctx: click.Context, /, **flags: Any) -> int | None:
    """Judge any structured output by rules of your own.

    \b
    Example, as pasted:
      adjudge check generate --out example
      adjudge check lint example/invoices.yaml
      adjudge check --outputs example/outputs_*.jsonl --rules example/invoices.yaml \
        --reference example/reference.jsonl --out example/run
    """
    if ctx.invoked_subcommand is not None:
        return None
    settings, run_flags = settings_and_run_flags(ctx, flags, needs=("outputs",))
    return evaluate_and_show("check", settings, **run_flags)


@check.command()
@click.option("--out", type=PATH, required=True, help="Folder for the data set.")
@click.option("--kind", type=click.Choice(["invoices", "tool_calls"]), default="invoices", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def generate(out: Path, kind: str, seed: int, force: bool) -> int:
    """Write an example: a rule file, the answers of three invented models, and a reference."""
    from adjudge.protocols.check.example import generate as write

    made = write(out, seed=seed, kind=kind, force=force)
    say(f"{len(made['outputs'])} models, a reference and {made['rule_file']} in {out}")
    return 0
