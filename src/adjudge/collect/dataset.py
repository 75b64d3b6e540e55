"""The data set: checked once as a whole, then read again sample by sample while the subjects work."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from adjudge.collect.subject import Image
from adjudge.errors import ConfigError, InputError
from adjudge.readers.records import records
from adjudge.readers.sources import open_source

HIDDEN = ("label", "meta")
"""What a subject never sees: `label` is the answer, and `meta` often gives it away."""
_ADDRESS = ("http://", "https://", "data:")


class _Id(msgspec.Struct):
    id: str | int


class Sample(NamedTuple):
    """One record of the data set: what the subject sees, and what only the result carries."""

    id: str
    shown: dict[str, Any]
    label: Any
    meta: Any
    labelled: bool


class Dataset:
    """A data set of `count` samples with different ids.

    Without `shuffle` it is streamed; with it, or from standard input, its lines are held in memory.
    """

    def __init__(self, path: str, *, limit: int | None = None, shuffle: bool = False, seed: int = 0) -> None:
        if limit is not None and limit < 1:
            raise ConfigError(f"--limit is {limit}, expected 1 or more")
        self.path = path
        self._folder = Path() if path == "-" else Path(path).parent
        self._limit = limit
        self._lines: list[bytes] | None = [] if shuffle or path == "-" else None
        seen: dict[bytes, int] = {}
        with open_source(path) as source:
            for line, text in records(source):
                name = _id(text, path, line)
                mark = hashlib.blake2b(name.encode(), digest_size=12).digest()
                if mark in seen:
                    twice = f"id {name!r} stands here a second time; first at line {seen[mark]}"
                    raise InputError(twice, file=path, line=line)
                seen[mark] = line
                if self._lines is not None:
                    self._lines.append(text)
            self.sha256 = source.sha256
        if shuffle and self._lines is not None:
            random.Random(seed).shuffle(self._lines)  # noqa: S311 -- an order, not a secret
        self.count = len(seen) if limit is None else min(limit, len(seen))

    def __iter__(self) -> Iterator[Sample]:
        for text in islice(self._texts(), self.count):
            row: dict[str, Any] = msgspec.json.decode(text)
            shown = {key: value for key, value in row.items() if key not in HIDDEN}
            yield Sample(str(row["id"]), shown, row.get("label"), row.get("meta"), "label" in row)

    def _texts(self) -> Iterator[bytes]:
        if self._lines is not None:
            yield from self._lines
            return
        with open_source(self.path) as source:
            yield from (text for _, text in records(source))

    def image(self, sample: Sample) -> Image | None:
        """The picture of a sample: an address, or a file beside the data set."""
        reference = sample.shown.get("image")
        if not isinstance(reference, str) or not reference:
            return None
        named = hashlib.sha256(reference.encode()).hexdigest()
        if reference.startswith(_ADDRESS):
            return Image(url=reference, sha256=named)
        path = self._folder / reference
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            return Image(sha256=named, problem=f"the picture {reference} cannot be read: {why}")
        return Image(path=str(path.resolve()), sha256=digest)


def _id(text: bytes, path: str, line: int) -> str:
    try:
        return str(msgspec.json.decode(text, type=_Id).id)
    except msgspec.ValidationError as error:
        raise InputError(f"{error}; expected a record with a text or a number as `id`", file=path, line=line) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not JSON: {error}", file=path, line=line) from None
