"""Logs where runs are expected: judged by `score` into a temporary run, or into one that is kept."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from adjudge.engine.evaluate import Options, evaluate
from adjudge.errors import OutputError
from adjudge.protocols.base import protocol
from adjudge.readers.sources import is_url
from adjudge.runs.writer import MANIFEST

SEPARATOR = "::"
_ENDING = re.compile(r"\.(eval|jsonl?)$")


def is_log(path: str) -> bool:
    """Whether a path is a file, or a folder that is no run: something to be judged first."""
    place = Path(path)
    if is_url(path) or not place.exists():
        return False
    return not place.is_dir() or not ((place / MANIFEST).exists() or not any(place.iterdir()))


def log_of(word: str) -> tuple[str, str]:
    """The log that a word names, and the model of `LOG::MODEL`; a run is no log."""
    path, _, model = word.rpartition(SEPARATOR)
    return (word, "") if is_log(word) else (path, model) if path and is_log(path) else ("", "")


@contextmanager
def as_runs(words: Sequence[str], keep: Path | None = None) -> Iterator[list[str]]:
    """The words with every log replaced by the run it was judged into; `LOG::MODEL` keeps its model.

    Without a folder to `keep` the runs in, they are gone when this ends.
    """
    names = _names([log_of(word)[0] for word in words])
    with tempfile.TemporaryDirectory(prefix="adjudge-") as scratch:
        yield [_as_run(word, name, Path(scratch), keep) for word, name in zip(words, names, strict=True)]


def _names(logs: Sequence[str]) -> list[str]:
    """What the runs of logs are called: as their files, with the folder where two are called alike, or with a number."""
    files = [_ENDING.sub("", Path(log).name) or "log" for log in logs]
    folders = [
        f"{Path(log).resolve().parent.name}-{name}" if log else name for log, name in zip(logs, files, strict=True)
    ]
    numbered = [f"{name}-{place}" for place, name in enumerate(files, 1)]
    several = [log for log in logs if log]
    return next(
        names
        for names in (files, folders, numbered)
        if len({n for n, log in zip(names, logs, strict=True) if log}) == len(several)
    )


def _as_run(word: str, name: str, scratch: Path, keep: Path | None) -> str:
    path, model = log_of(word)
    if not path:
        return word
    out = (keep or scratch) / name
    if out.exists():
        raise OutputError(f"{out} exists already; choose another --out")
    run = evaluate(protocol("score"), {"logs": [path]}, Options(out=out, command=("adjudge", "score", path)))
    return f"{run}{SEPARATOR}{model}" if model else str(run)
