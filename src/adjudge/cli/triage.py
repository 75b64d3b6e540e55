"""`adjudge triage`: judge a classifier that may say uncertain."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from adjudge.cli.common import (
    ProtocolGroup,
    evaluate_and_show,
    example_options,
    pairs,
    run_options,
    say,
    settings_and_run_flags,
)
from adjudge.errors import ConfigError

_SHOWN = 10
_BETWEEN = "\n"  # between the files of one run, inside one value of --results


class _Joined(ProtocolGroup):
    """The files after one `--results` are one run, joined into one value; the next `--results` is another."""

    def spread_out(self, args: list[str]) -> list[str]:
        """Join the further words of a flag to its first."""
        words: list[str] = []
        flag, values = "", 0
        for word in args:
            if word.startswith("-") and word != "-":
                name, equals, _ = word.partition("=")
                flag, values = (name if name in self.spread else ""), int(bool(equals))
                words.append(word)
            elif flag and values:
                words[-1] += _BETWEEN + word
            else:
                words.append(word)
                values += 1
        return words


@click.group(
    cls=_Joined,
    usage=("--results FILE … [--results FILE …] [--manifest FILE] [OPTIONS]", "generate --out FOLDER"),
    spread=("--results", "--manifest", "--calibration"),
)
@click.option("--results", multiple=True, help="Results (JSONL, CSV, Parquet …) of one run, in one or several files.")
@click.option("--manifest", multiple=True, help="Data set manifest: id, label, meta. Records that are not there count.")
@click.option("--calibration", multiple=True, help="Results on other samples, on which the threshold is chosen.")
@click.option("--target-risk", type=float, help="Keep the error of answered samples under this, with 95 % confidence.")
@click.option("--risk", type=click.Choice(["error", "slip"]), help="What --target-risk bounds [error].")
@click.option("--costs", metavar="slip=10,flag=3,review=1", help="Choose the threshold with the least expected cost.")
@click.option("--slice", "slices", multiple=True, metavar="meta.KEY", help="Every measure by a key of meta; repeat.")
@click.option("--split-by", multiple=True, metavar="FACT", help="One configuration a value of models.vision …; repeat.")
@click.option("--prevalence", type=float, help="Share of the positive class where the classifier will be used.")
@click.option("--positive", help="Name of the class that is looked for [fake].")
@click.option("--negative", help="Name of the other class [real].")
@click.option("--word", "words", multiple=True, metavar="WORD=CLASS", help="One more verdict word; repeat.")
@click.option("--model", help="Model of records that name none [unnamed].")
@click.option("--mode", type=click.Choice(["no-tools", "tools"]), help="Mode of records without use_tools [no-tools].")
@click.option("--percent", is_flag=True, default=None, help='Read confidences such as "87%".')
@click.option("--strip-labels", is_flag=True, default=None, help="Accept labels in other case or with blanks around.")
@click.option("--bad-confidence", type=click.Choice(["refuse", "count"]), help="Confidences outside 0 … 1 [refuse].")
@click.option("--unmatched", type=click.Choice(["refuse", "ignore"]), help="Ids that the manifest lacks [refuse].")
@click.option("--bins", type=int, help="Bins of the calibration error [10].")
@run_options
@click.pass_context
def triage(ctx: click.Context, /, **flags: Any) -> int | None:
    """Judge a classifier that may say uncertain: accuracy and coverage together.

    \b
    Example, as pasted:
      adjudge triage generate --out example
      adjudge triage --results example/results_*.jsonl --manifest example/manifest.jsonl --out example/run
    """
    if ctx.invoked_subcommand is not None:
        return None
    flags["results"] = tuple(value.split(_BETWEEN) for value in flags["results"])
    for name in ("manifest", "calibration"):
        flags[name] = tuple(file for value in flags[name] for file in value.split(_BETWEEN))
    if flags["words"]:
        flags["words"] = pairs("--word", flags["words"], "WORD=CLASS", last=True)
    if flags["costs"] is not None:
        flags["costs"] = _costs(flags["costs"])
    settings, run_flags = settings_and_run_flags(ctx, flags, needs=("results",))
    name_odd = None if run_flags["quiet"] else _name_odd_records
    return evaluate_and_show("triage", settings, run_flags, on_run=name_odd)


@triage.command()
@example_options
def generate(out: Path, seed: int, force: bool) -> int:
    """Write a small realistic data set: two models, with and without tools, three trials."""
    from adjudge.protocols.triage.example import generate as write

    paths = write(out, seed=seed, force=force)
    say(f"{len(paths.results)} result files, a manifest and calibration results in {out}")
    return 0


def _costs(text: str) -> dict[str, float]:
    names = ("slip", "flag", "review")
    costs: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.strip().partition("=")
        try:
            costs[name] = float(number)
        except ValueError:
            costs[name] = math.nan
        if name not in names or not equals or not math.isfinite(costs[name]):
            raise ConfigError(f"--costs {text!r}: expected slip=NUMBER,flag=NUMBER,review=NUMBER")
    if len(costs) != len(names):
        raise ConfigError(f"--costs {text!r}: {', '.join(sorted(set(names) - set(costs)))} is missing")
    return costs


def _name_odd_records(path: Path) -> None:
    """Say where the records stand whose verdict or confidence could not be used."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from adjudge.runs.run import Run
    from adjudge.runs.writer import SAMPLES

    odd = pc.field("bucket").isin(["unparsed"]) | pc.field("confidence_state").isin(["out of range", "unreadable"])
    names = ["part", "row", "sample", "bucket", "confidence", "confidence_state"]
    odd_rows = pq.read_table(path / SAMPLES, columns=names, filters=odd)
    run = Run(path)
    for row in odd_rows.slice(0, _SHOWN).to_pylist():
        output = run.output(row["part"], row["row"])
        what = []
        if row["bucket"] == "unparsed":
            word = (
                "there is no verdict"
                if output["response"] is None
                else f"verdict {output['response']!r} is no declared word"
            )
            what.append(f"{word}: unparsed (--word declares one more)")
        if row["confidence_state"] == "out of range":
            what.append(f"confidence {row['confidence']!r} is not between 0 and 1: not used")
        if row["confidence_state"] == "unreadable":
            what.append(f"confidence {output['confidence_text']} is no number: not used")
        say(f"{output['file']}:{output['line']}: id {row['sample']!r}: {'; '.join(what)}")
    if odd_rows.num_rows > _SHOWN:
        say(f"… and {odd_rows.num_rows - _SHOWN} more such records (adjudge query finds them)")
