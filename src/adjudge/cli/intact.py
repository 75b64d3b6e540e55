"""Runs that a command takes: as they were written, or altered where that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from adjudge.runs.run import Run

unverified_option = click.option(
    "--unverified", is_flag=True, help="Take a run whose files are not those of its manifest all the same."
)


def open_intact(path: str | Path, *, unverified: bool) -> Run:
    """A run as it was written: one whose files are not those of its manifest is refused, unless that is asked for."""
    import adjudge
    from adjudge.runs.shapes import refuse_altered

    run = adjudge.load_run(path)
    if not unverified:
        refuse_altered(run)
    return run


def refuse_altered_runs(words: Sequence[str], *, unverified: bool) -> None:
    """Hold every run that words such as RUN or RUN::MODEL name to its manifest."""
    from adjudge.readers.sources import is_url
    from adjudge.runs.run import Run
    from adjudge.runs.shapes import refuse_altered

    if unverified:
        return
    places = dict.fromkeys(word if Path(word).is_dir() else word.rpartition("::")[0] or word for word in words)
    for place in places:
        if not is_url(place) and Path(place).is_dir():
            refuse_altered(Run(Path(place)))


def refuse_forged(words: Sequence[str], error: Exception) -> None:
    """After an error that nobody expected: a run among the words that does not hold is refused, with what is wrong first."""
    from adjudge.engine.verify import verify
    from adjudge.errors import RunError
    from adjudge.runs.run import Run
    from adjudge.runs.writer import MANIFEST

    for place in (word.partition("::")[0] for word in words):
        if (Path(place) / MANIFEST).is_file():
            problems = verify(Run(Path(place))).problems
            if problems:
                what = f"{place} does not hold and cannot be shown: {problems[0]} (`adjudge verify {place}` lists everything)"
                raise RunError(what) from error
