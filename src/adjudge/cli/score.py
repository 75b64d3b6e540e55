"""`adjudge score`: judge any evaluation that left a score per sample."""

from __future__ import annotations

from typing import Any

import click

from adjudge.cli.common import evaluate_and_show, print_json, run_options, say, settings_and_run_flags
from adjudge.errors import ConfigError


@click.command()
@click.argument("logs", nargs=-1, metavar="FILE_OR_FOLDER …")
@click.option("--list", "list_only", is_flag=True, help="Say what was recognised, and what is in it; judge nothing.")
@click.option("--scorer", help="The score that is judged, where a log has several [the first].")
@click.option("--pass-at", type=float, help="A score from here on has passed [1, where scores are only 0 and 1].")
@click.option("--range", type=float, nargs=2, help="The least and the greatest score there can be [0 1].")
@click.option("--wide", metavar="A,B", help="The file has a row a sample and a column a model: these.")
@click.option("--model", help="Model of records that name none [the name of their file].")
@click.option("--task", help="Task of records that name none.")
@click.option("--truth", multiple=True, help="Labels by people for some samples: id, label.")
@click.option("--k", "k", type=int, multiple=True, help="Of pass@k and pass^k [usual ones up to the attempts]; repeat.")
@click.option("--slice", "slices", multiple=True, metavar="meta.KEY", help="Every measure by a key of meta; repeat.")
@click.option("--bins", type=int, help="Bins of the calibration error [10].")
@run_options
@click.pass_context
def score(ctx: click.Context, /, list_only: bool, **flags: Any) -> int:
    """Judge logs of Inspect, lm-eval, promptfoo, DeepEval, HELM, OpenAI evals, Every-Eval-Ever, or your own table of scores.

    \b
    Examples:
      adjudge score logs/*.eval --out run
      adjudge score lm_eval_out/ --list
      adjudge score results.csv --column id=question --column score=correct --column model=llm
      adjudge compare a.eval b.eval
    """
    if list_only:
        if not flags["logs"]:
            raise ConfigError("--list needs a file or a folder")
        return _list(flags["logs"], as_json=flags["as_json"])
    flags["range"] = None if flags["range"] is None else list(flags["range"])
    if flags["wide"] is not None:
        flags["wide"] = [name.strip() for name in flags["wide"].split(",")]
    settings, run_flags = settings_and_run_flags(ctx, flags, needs=("logs",))
    return evaluate_and_show("score", settings, run_flags)


def _list(paths: tuple[str, ...], *, as_json: bool) -> int:
    """What every file is, which models, tasks and scores are in it, and what is not read."""
    import msgspec

    from adjudge.readers.logs.formats import list_logs

    logs = list(list_logs(paths).values())
    if as_json:
        print_json(msgspec.to_builtins(logs))
        return 0
    for log in logs:
        lines = [f"{log.path}: {log.title}"]
        for name, values in (("models", log.models), ("tasks", log.tasks), ("scores", log.checks)):
            if values:
                more = f" and {len(values) - 8} more" if len(values) > 8 else ""
                lines.append(f"  {name:<8} {', '.join(values[:8])}{more}")
        if log.unscored:
            lines.append("  scores   none")
        if log.samples is not None:
            lines.append(f"  samples  {log.samples:,} planned")
        lines += [
            f"  printed  {item.check + ': ' if item.check else ''}{item.name} {item.value!r}"
            for item in log.printed[:6]
        ]
        lines += [f"  beside   {path}" for path in log.files[1:]]
        lines += [f"  note     {note}" for note in log.notes]
        lines += [f"  not read {what}" for what in log.unread]
        say("\n".join(lines), err=False)
    return 0
