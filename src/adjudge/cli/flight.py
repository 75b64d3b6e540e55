"""`adjudge flight`: judge flight-state predictions, and make the data and baselines to try it."""

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
    run_options,
    say,
    settings_and_run_flags,
)

_TASK = click.Choice(["S1", "M1", "M3"])


@click.group(
    cls=ProtocolGroup,
    usage=(
        "--task S1|M1|M3 --outputs FILE … --reference FILE [OPTIONS]",
        "import-original | make-tasks | predict | generate | library …",
    ),
    spread=("--outputs", "--reference", "--confidence"),
)
@click.option("--task", help="S1, M1 or M3, or several: S1,M1,M3, told apart by `task_id` or by file name.")
@click.option("--outputs", multiple=True, help="Model outputs (JSONL …); several files may follow.")
@click.option("--reference", multiple=True, help="Reference (JSONL …) with the true next states.")
@click.option(
    "--confidence",
    multiple=True,
    help="Confidence priors: a file a task ([S1=]FILE), or one with the ModelConfidence of every model.",
)
@click.option("--library", help="Constraint library, by name or file [ga-light/1].")
@click.option("--scores", type=click.Choice(["fixed", "rubric", "both"]), help="Scoring profile [both].")
@click.option("--match", type=click.Choice(["id", "line"]), help="Match rows by id, or old files by line [id].")
@click.option("--offset", type=int, help="With --match line: output 1 belongs to line 1 + N of the reference [0].")
@click.option("--top-k", type=int, help="Reasons listed per sample [5].")
@click.option("--repairs/--no-repairs", default=None, help="Whether broken JSON may be repaired [repairs].")
@click.option("--rules", multiple=True, help="Add the rule set of an installed package; repeat.")
@agent_options
@run_options
@click.pass_context
def flight(ctx: click.Context, /, **flags: Any) -> int | None:
    """Judge predictions of the next flight state against physics and safety.

    \b
    Example, as pasted:
      adjudge flight generate --out example
      adjudge flight --task S1 --outputs example/outputs_*.jsonl --reference example/reference.jsonl \\
        --library example/library.yaml --out example/run
    """
    if ctx.invoked_subcommand is not None:
        return None
    settings, run_flags = settings_and_run_flags(ctx, flags, needs=("task", "outputs"))
    if settings.get("confidence") and not isinstance(settings["confidence"], dict):
        from adjudge.protocols.flight.priors import read_priors

        files = settings["confidence"]
        settings["confidence"] = read_priors([files] if isinstance(files, str) else files, settings["task"].split(","))
    return evaluate_and_show("flight", settings, run_flags)


@flight.command("import-original")
@click.argument("folder", type=PATH)
@click.option("--library", help="Constraint library, by name or file [ga-light/1].")
@click.option("--scores", type=click.Choice(["fixed", "rubric", "both"]), help="Scoring profile [both].")
@click.option("--offset", type=int, help="M3 output i belongs to line N + i of the windows file [504].")
@run_options
@click.pass_context
def import_original(ctx: click.Context, /, folder: Path, offset: int | None, **flags: Any) -> int:
    """Judge a folder in the layout of the original method, all its models and tasks in one run.

    Outputs are MODEL_TASK_test_results_….jsonl (or TASK…/MODEL/….jsonl), the references next_second_pairs.jsonl and
    flight_3window_samples.jsonl. Rows are paired by line; what a model was shown is read from the question.
    """
    from adjudge.protocols.flight.original import OFFSETS, find_original

    original = find_original(folder)
    if not (flags["quiet"] or flags["as_json"]):
        say(f"{folder}: {len(original.outputs)} files of outputs, tasks {', '.join(original.tasks)}")
        for path in original.left_out:
            say(f"  not read: {path.relative_to(folder)}")
    of_folder = original.config(offset=OFFSETS["M3"] if offset is None else offset)
    flags |= {name: value for name, value in of_folder.items() if flags.get(name) in {None, ()}}
    settings, run_flags = settings_and_run_flags(ctx, flags)
    return evaluate_and_show("flight", settings, run_flags)


@flight.command("make-tasks")
@click.argument("logs", nargs=-1, required=True)
@click.option("--task", type=_TASK, default="S1", show_default=True)
@click.option("--out", type=PATH, required=True, help="Folder for tasks.jsonl and reference.jsonl.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
def make_tasks(logs: tuple[str, ...], task: str, out: Path, force: bool) -> int:
    """Make tasks from Garmin G1000 and G3X CSV logs."""
    from adjudge.protocols.flight.make_tasks import make_tasks as make

    counts = make([Path(log) for log in logs], task, out, force=force)
    say(f"{counts.tasks} {task} tasks of {counts.windows} windows in {out}")
    for log in counts.logs:
        say(f"{log.log} ({log.system}): {log.tasks} tasks; {log.recorded} windows complete in what the log records")
        for reason, count in log.left_out.items():
            say(f"  left out {count}: {reason}")
        if log.nul_tail:
            say(f"  read up to its last {log.nul_tail:,} bytes, which are NUL: the recording was cut off")
    return 0


@flight.command()
@click.option("--baseline", type=click.Choice(["persistence", "linear", "kinematic"]), required=True)
@click.option("--tasks", type=PATH, required=True, help="tasks.jsonl of make-tasks.")
@click.option("-o", "--output", type=PATH, required=True, help="Where the outputs go.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
def predict(baseline: str, tasks: Path, output: Path, force: bool) -> int:
    """Write the outputs of a baseline, so that every score has a floor to compare with."""
    from adjudge.protocols.flight.baselines import predict as write

    count = write(tasks, baseline, output, force=force)
    say(f"{count} predictions in {output}")
    return 0


@flight.command()
@click.option("--task", type=_TASK, default="S1", show_default=True)
@click.option("--layout", type=click.Choice(["ids", "original"]), default="ids", show_default=True)
@example_options
def generate(task: str, out: Path, seed: int, layout: str, force: bool) -> int:
    """Write a small realistic data set: simulated flights and the answers of five models.

    In the layout of the original method, three models on all three tasks, without ids and with states in the question.
    """
    from adjudge.protocols.flight.generate import generate as write
    from adjudge.protocols.flight.generate import generate_original

    if layout == "original":
        files = generate_original(out, seed=seed, force=force)
        say(f"{len(files)} files in {out}")
        return 0
    paths = write(out, seed=seed, task=task, force=force)
    say(f"{len(paths.outputs)} models, a reference and a library that fits them in {out}")
    return 0


@flight.group()
def library() -> None:
    """Show or check a constraint library."""


@library.command("show")
@click.argument("name", default="ga-light/1")
def library_show(name: str) -> int:
    """Print a built-in library (or a file, checked) as YAML, ready to copy and edit."""
    from adjudge.protocols.flight.config import BUILT_IN, built_in_text, load

    if name in BUILT_IN or not Path(name).is_file():
        click.echo(built_in_text(name), nl=False)
    else:
        load(name)
        click.echo(Path(name).read_text(encoding="utf-8"), nl=False)
    return 0


@library.command("check")
@click.argument("name", default="ga-light/1")
def library_check(name: str) -> int:
    """Check a library and print its version: 16 hex digits over its content."""
    from adjudge.protocols.flight.config import load
    from adjudge.provenance.canonical import short

    loaded = load(name)
    say(f"{loaded.library.name}: constraint_lib_version {short(loaded.content)}", err=False)
    return 0
