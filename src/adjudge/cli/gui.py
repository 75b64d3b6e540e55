"""`adjudge gui`: judge a GUI agent's actions, and the tools for evaluation files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from adjudge.cli.common import (
    PATH,
    ProtocolGroup,
    Spread,
    evaluate_and_show,
    example_options,
    options,
    put,
    run_options,
    say,
    settings_and_run_flags,
)
from adjudge.errors import ConfigError, InputError

_SPACE = click.Choice(["normalized", "pixel", "per_mille"])
_BBOX = click.Choice(["xyxy", "xywh"])
_ABOUT = {**dict.fromkeys(("training_timestamp", "checkpoint_path", "device", "gpu_model"), str), "memory_gb": float}


@click.group(
    cls=ProtocolGroup,
    usage=(
        "--episodes FILE … --predictions FILE … --space SPACE --bbox ORDER [OPTIONS]",
        "grounding | plot | aggregate | migrate | validate | overlay | generate …",
    ),
    spread=("--episodes", "--predictions", "--outcomes"),
)
@click.option("--episodes", multiple=True, help="Recorded episodes (JSONL, JSON, Parquet); several files may follow.")
@click.option("--predictions", multiple=True, help="The agent's predictions; several files may follow.")
@click.option("--outcomes", multiple=True, help="End states of the agent's own runs: {episode_id, success}.")
@click.option("--space", type=_SPACE, help="The space of all coordinates; it is declared, never guessed.")
@click.option("--bbox", type=_BBOX, help="The order of a box's four numbers.")
@click.option("--dsl-mode", type=click.Choice(["coord", "som"]), help="Points, or marks on elements [coord].")
@click.option("--click-radius", type=float, help="A click hits within this normalised distance [0.05].")
@click.option("--text", type=click.Choice(["exact", "normalized"]), help="How typed texts are compared [exact].")
@click.option("--types", multiple=True, help="Further action types, by comma; repeat.")
@click.option("--unmatched", type=click.Choice(["refuse", "report"]), help="Predictions for unknown episodes [refuse].")
@click.option("--config-path", help="The configuration of the agent, as the evaluation JSON names it [unknown].")
@click.option("--backend", help="What the agent ran on: qwen3, claude, … [unknown].")
@click.option("--model", help="The agent's name in the run [the backend].")
@click.option("--rules", multiple=True, help="Add the rule set of an installed package; repeat.")
@options(
    *(
        click.option(f"--{name.replace('_', '-')}", type=kind, help="For the evaluation JSON.")
        for name, kind in _ABOUT.items()
    )
)
@run_options
@click.pass_context
def gui(ctx: click.Context, /, **flags: Any) -> int | None:
    """Judge a GUI agent's actions along recorded episodes.

    \b
    Example, as pasted:
      adjudge gui generate --out example
      adjudge gui --episodes example/episodes.jsonl --predictions example/predictions_careful.jsonl \\
        --space normalized --bbox xyxy --out example/run
      adjudge export example/run --eval-json
    """
    if ctx.invoked_subcommand is not None:
        return None
    about = {key: value for key in _ABOUT if (value := flags.pop(key)) is not None}
    settings, run_flags = settings_and_run_flags(ctx, flags, needs=("episodes", "predictions", "space", "bbox"))
    if "types" in settings:
        settings["types"] = [name for group in settings["types"] for name in str(group).split(",")]
    if about:
        settings["about"] = {**settings.get("about", {}), **about}
    return evaluate_and_show("gui", settings, run_flags)


@gui.command(cls=Spread, spread=("--records",))
@click.option("--records", multiple=True, help="ScreenSpot-style records; several files may follow.")
@click.option("--space", type=_SPACE, help="The space of boxes and answers.")
@click.option("--bbox", type=_BBOX, help="The order of a box's four numbers.")
@click.option("--k", help="The k of oracle@k, by comma [1,3,5].")
@click.option("--slice", "slices", multiple=True, metavar="KEY", help="A key to slice by; repeat [platform, ui_type].")
@click.option("--model", help="The model's name in the run [model].")
@click.option("--rules", multiple=True, help="Add the rule set of an installed package; repeat.")
@run_options
@click.pass_context
def grounding(ctx: click.Context, /, **flags: Any) -> int:
    """Judge grounding: point in box, oracle@k over candidates, IoU of boxes."""
    settings, run_flags = settings_and_run_flags(ctx, flags, needs=("records", "space", "bbox"))
    if isinstance(settings.get("k"), str):
        try:
            settings["k"] = [int(word) for word in settings["k"].split(",")]
        except ValueError:
            raise ConfigError(f"--k is {settings['k']!r}, expected whole numbers by comma, such as 1,3,5") from None
    return evaluate_and_show("gui", settings, run_flags)


@gui.command(cls=Spread, spread=("--files", "--labels"))
@click.option("--files", multiple=True, required=True, help="Evaluation files or run directories; several may follow.")
@click.option("--labels", multiple=True, help="A label for each file; several may follow.")
@click.option("--metric", "metrics", multiple=True, help="Only this metric; repeat.")
@click.option("--output", "-o", type=PATH, required=True, help="png, svg, pdf or html.")
def plot(files: tuple[str, ...], labels: tuple[str, ...], metrics: tuple[str, ...], output: Path) -> int:
    """Compare evaluation files: one panel a metric. Null, and −1 for a metric no longer computed, is marked n/a."""
    from adjudge.protocols.gui.evalfile import load
    from adjudge.protocols.gui.pictures import comparison, write_picture

    if labels and len(labels) != len(files):
        raise ConfigError(f"{len(labels)} labels for {len(files)} files; give one for each")
    names = list(labels) or _labels(files)
    if len(set(names)) < len(names):
        raise ConfigError("two files have the same label; give --labels")
    documents = [(name, load(path)) for name, path in zip(names, files, strict=True)]
    write_picture(comparison(documents, metrics), output)
    return 0


@gui.command()
@click.argument("files", nargs=-1, required=True)
@click.option("-o", "--output", type=PATH, help="File to write [stdout].")
def aggregate(files: tuple[str, ...], output: Path | None) -> int:
    """Average evaluation files: plain means over files, means weighted by n beside them, nulls left out and counted."""
    from adjudge.protocols.gui.evalfile import aggregate as join
    from adjudge.protocols.gui.evalfile import load
    from adjudge.provenance.canonical import pretty

    joined = join([(name, load(path)) for name, path in zip(_labels(files), files, strict=True)])
    for note in joined["notes"]:
        say(note)
    put(output, pretty(joined))
    return 0


@gui.command()
@click.argument("file")
@click.option("-o", "--output", type=PATH, help="File to write [stdout].")
def migrate(file: str, output: Path | None) -> int:
    """Turn an evaluation file of any older shape into v1.0; the input stays as it is."""
    from adjudge.protocols.gui.evalfile import load
    from adjudge.protocols.gui.evalfile import migrate as turn
    from adjudge.provenance.canonical import pretty

    if output is not None and output.exists() and output.samefile(file):
        raise ConfigError(f"{output} is the input, which stays untouched; choose another -o")
    migrated = turn(load(file))
    for note in migrated.get("migration_notes", ()):
        say(f"{file}: {note}")
    put(output, pretty(migrated))
    return 0


@gui.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Ask for all that v1.0 requires: seven metrics, config_path, backend.")
def validate(files: tuple[str, ...], strict: bool) -> int:
    """Check evaluation files: shape, bounds, nulls, and that every rate is a whole number over its n."""
    from adjudge.protocols.gui.evalfile import deprecated, load, metrics_of, problems, shape
    from adjudge.report.numbers import table

    rows, bad = [], False
    for path in files:
        try:
            document = load(path)
            wrong, kind = problems(document, strict=strict), shape(document)
            notes = [f"{name} is −1, which stands for no value" for name in deprecated(metrics_of(document))]
        except InputError as error:
            wrong, kind, notes = [error.what], "–", []
        bad = bad or bool(wrong)
        rows.append([path, "INVALID" if wrong else "valid", kind, str(len(wrong))])
        for text in (*wrong, *notes):
            say(f"{path}: {text}", err=False)
        if not wrong and kind != "v1.0":
            say(f"{path}: of an older shape (adjudge gui migrate)", err=False)
    say(table(["file", "", "shape", "problems"], rows, left=3), err=False)
    return 2 if bad else 0


@gui.command()
@click.argument("run", type=PATH)
@click.argument("episode")
@click.option("-o", "--output", type=PATH, required=True, help="png, svg, pdf or html.")
def overlay(run: Path, episode: str, output: Path) -> int:
    """Draw an EPISODE of a RUN: recorded boxes and targets against the points that the agent chose."""
    from adjudge.protocols.gui.pictures import overlay as draw
    from adjudge.protocols.gui.pictures import write_picture
    from adjudge.runs.run import Run

    write_picture(draw(Run(run), episode), output)
    return 0


@gui.command()
@example_options
def generate(out: Path, seed: int, force: bool) -> int:
    """Write example episodes and the predictions of four agents, in coordinate and SoM mode."""
    from adjudge.protocols.gui.example import generate as write

    paths = write(out, seed=seed, force=force)
    say(f"{len(paths)} files in {out}")
    return 0


def _labels(files: tuple[str, ...]) -> list[str]:
    """File names without their ending, or whole paths where two names are the same."""
    stems = [Path(path).stem for path in files]
    return stems if len(set(stems)) == len(stems) else list(files)
