"""Logs where runs are expected: judged by `score` into a temporary run, or into one that is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from adjudge.engine.evaluate import Options, evaluate
from adjudge.protocols.base import protocol
from adjudge.readers.sources import is_url
from adjudge.runs.writer import MANIFEST

SEPARATOR = "::"


def is_log(path: str) -> bool:
    """Whether a path is a file, or a folder that is no run: something to be judged first."""
    place = Path(path)
    if is_url(path) or not place.exists():
        return False
    return place.is_file() or not ((place / MANIFEST).exists() or not any(place.iterdir()))


def names_log(word: str) -> bool:
    """Whether a word is LOG or LOG::MODEL."""
    return is_log(word) or (SEPARATOR in word and is_log(word.rpartition(SEPARATOR)[0]))


@contextmanager
def as_runs(words: Sequence[str], keep: Path | None = None) -> Iterator[list[str]]:
    """The words with every log replaced by the run it was judged into; `LOG::MODEL` keeps its model.

    Without a folder to `keep` the runs in, they are gone when this ends.
    """
    with tempfile.TemporaryDirectory(prefix="adjudge-") as scratch:
        yield [_as_run(word, place, Path(scratch), keep) for place, word in enumerate(words)]


def _as_run(word: str, place: int, scratch: Path, keep: Path | None) -> str:
    if is_log(word):
        path, model = word, ""
    else:
        path, _, model = word.rpartition(SEPARATOR)
        if not path or not is_log(path):
            return word
    name = Path(path).name.removesuffix(".eval").removesuffix(".json").removesuffix(".jsonl") or "log"
    out = scratch / str(place) / name if keep is None else keep / name
    if keep is not None and out.exists():
        out = keep / f"{name}-{place + 1}"
    run = evaluate(protocol("score"), {"logs": [path]}, Options(out=out, command=("adjudge", "score", path)))
    return f"{run}{SEPARATOR}{model}" if model else str(run)
