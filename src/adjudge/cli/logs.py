"""Logs of other tools where a command takes runs."""

from __future__ import annotations

from typing import Any

import click

from adjudge.cli.start import JUDGED_LOGS, LOGS


def logs_as_runs(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """For an argument that names runs: logs of other tools are judged first, for as long as the command runs.

    A command with an eager option `keep` leaves the runs in that folder.
    """
    from adjudge.engine.from_logs import as_runs, log_of

    del parameter
    if value is None:
        return None
    words = [str(word) for word in (value if isinstance(value, tuple) else (value,))]
    if not any(log_of(word)[0] for word in words):
        return value
    LOGS.extend(log for log, _ in map(log_of, words) if log)
    ctx.call_on_close(LOGS.clear)
    keep = ctx.params.get("keep")
    runs = ctx.with_resource(as_runs(words, keep))
    if keep is None:
        for run, word in zip(runs, words, strict=True):
            log, model = log_of(word)
            if log:
                JUDGED_LOGS[run.removesuffix(f"::{model}")] = log
    return tuple(runs) if isinstance(value, tuple) else runs[0]
