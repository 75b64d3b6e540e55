"""`adjudge check`: judge structured outputs by a rule file; make, check and compare rule files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from adjudge.cli.common import (
    PATH,
    ProtocolGroup,
    agent_options,
    evaluate_and_show,
    example_options,
    print_json,
    put,
    run_options,
    say,
    settings_and_run_flags,
)


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
@agent_options
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
      adjudge check --outputs example/outputs_*.jsonl --rules example/invoices.yaml \\
        --reference example/reference.jsonl --out example/run
    """
    if ctx.invoked_subcommand is not None:
        return None
    settings, run_flags = settings_and_run_flags(ctx, flags, needs=("outputs",))
    return evaluate_and_show("check", settings, run_flags)


@check.command()
@click.option("--kind", type=click.Choice(["invoices", "tool_calls"]), default="invoices", show_default=True)
@example_options
def generate(out: Path, kind: str, seed: int, force: bool) -> int:
    """Write an example: a rule file, the answers of three invented models, and a reference."""
    from adjudge.protocols.check.example import generate as write

    folder_files = write(out, seed=seed, kind=kind, force=force)
    say(f"{len(folder_files['outputs'])} models, a reference and {folder_files['rule_file']} in {out}")
    return 0


@check.command()
@click.argument("rules", type=PATH)
@click.option(
    "--outputs", multiple=True, help="Data to look at too: which rules fail and pass on its first 10,000 rows."
)
@click.option("--reference", multiple=True, help="The right values by id, where rules read gold.FIELD.")
@click.option("--column", "columns", multiple=True, metavar="OURS=THEIRS", help="What a key is called in your files.")
@click.option("--json-path", metavar="$.KEY", help="Where the records sit inside one JSON object.")
@click.option("--match", type=click.Choice(["id", "line"]), default="id", help="Match rows by id, or by line [id].")
def lint(rules: Path, **settings: Any) -> int:
    """Check a rule file: its names, types and self-tests, and whether every rule was shown to fail and to pass."""
    import tempfile

    from adjudge.protocols.check.document import load
    from adjudge.protocols.check.lint import lint as look
    from adjudge.protocols.check.sandbox import Sandbox

    document, sandbox = load(rules), Sandbox()
    findings = look(document, sandbox)
    if settings["outputs"] and not findings.errors:
        from adjudge.engine.evaluate import Options, evaluate
        from adjudge.protocols.base import protocol
        from adjudge.runs.run import Run

        with tempfile.TemporaryDirectory(prefix="adjudge-lint-") as folder:
            options = Options(out=Path(folder) / "run", limit=10_000)
            path = evaluate(protocol("check"), {**settings, "rule_file": str(rules)}, options)
            findings = look(document, sandbox, Run(path).metrics["rules"])
    for text in (*findings.errors, *findings.warnings):
        kind = "error" if text in findings.errors else "warning"
        say(f"{kind}: {text}", err=False)
    counts = f"{findings.fields} fields, {findings.rules} rules, {findings.tests} self-tests"
    say(f"{rules}: {counts}; {len(findings.errors)} errors, {len(findings.warnings)} warnings", err=False)
    return 2 if findings.errors else 0


@check.command()
@click.argument("outputs")
@click.option("--json-path", metavar="$.KEY", help="Where the records sit inside one JSON object.")
@click.option("-o", "--output", type=PATH, help="File to write [stdout].")
def init(outputs: str, json_path: str | None, output: Path | None) -> int:
    """Write a first rule file from data: fields, types and ranges as they are seen, to be edited."""
    from adjudge.protocols.check.init import first_rules

    put(output, first_rules(outputs, json_path).encode())
    return 0


@check.command()
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.argument("run", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout and nothing else.")
@click.option("--limit", type=int, default=20, show_default=True, help="Samples to name.")
def diff(old: Path, new: Path, run: Path, as_json: bool, limit: int) -> int:
    """Say which verdicts of a RUN that the OLD rule file made the NEW one would turn."""
    import adjudge
    from adjudge.protocols.check.diff import difference

    changes = difference(old, new, adjudge.load_run(run))
    if as_json:
        print_json(changes.to_dict())
    else:
        say(changes.text(limit), err=False)
    return 0
