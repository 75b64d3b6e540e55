"""Cutting the input into partitions by hash of the key, in bounded memory.

Every input is read once from front to back; what is kept of a record is where it stands and a hash of its key. A
partition then reads its own records. Input that cannot be read at a place (compressed, standard input, CSV, Parquet, one
JSON document) is first written as JSON Lines to the run's temporary folder. How many partitions there are depends on the
number of records alone, so the order of the input, the number of workers and the number of files change nothing.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Input
from adjudge.provenance.manifest import InputFile
from adjudge.readers.records import is_json_lines, records
from adjudge.readers.sources import Source, open_source

BUCKETS = 256
ROWS_A_PARTITION = 16_384


@dataclass(frozen=True)
class Slice:
    """The records of one role in one partition: where each stands."""

    paths: tuple[str, ...]
    file: NDArray[np.int16]
    line: NDArray[np.int64]
    offset: NDArray[np.int64]
    length: NDArray[np.int64]

    def rows(self) -> Iterator[tuple[int, int, bytes]]:
        """(file, line, JSON) of the records, in the order they were read."""
        opened = {file: os.open(self.paths[file], os.O_RDONLY) for file in np.unique(self.file).tolist()}
        try:
            columns = (self.file.tolist(), self.line.tolist(), self.length.tolist(), self.offset.tolist())
            for file, line, length, offset in zip(*columns, strict=True):
                yield file, line, os.pread(opened[file], length, offset)
        finally:
            for descriptor in opened.values():
                os.close(descriptor)


@dataclass
class Split:
    """The whole input, cut. `groups` are all second parts of the keys (for flight, the models)."""

    partitions: list[dict[str, Slice]]
    groups: tuple[str, ...]
    files: tuple[str, ...]
    inputs: list[InputFile]
    rows: dict[str, int]
    stamps: dict[str, tuple[int, int]]

    def check_unchanged(self) -> None:
        """Refuse a result whose input changed while it was read."""
        for path, stamp in self.stamps.items():
            if _stamp(path) != stamp:
                raise InputError("changed while it was being read; run again", file=path)


@dataclass
class _Index:
    """Where the records of one role stand."""

    bucket: array[int] = field(default_factory=lambda: array("B"))
    file: array[int] = field(default_factory=lambda: array("h"))
    line: array[int] = field(default_factory=lambda: array("q"))
    offset: array[int] = field(default_factory=lambda: array("q"))
    length: array[int] = field(default_factory=lambda: array("q"))

    def slices(self, count: int, paths: tuple[str, ...]) -> list[Slice]:
        bucket = np.frombuffer(self.bucket, dtype=np.uint8)
        part = (bucket.astype(np.int64) * count) // BUCKETS
        order = np.argsort(part, kind="stable")
        edges = np.searchsorted(part[order], np.arange(count + 1))
        columns: dict[str, NDArray[Any]] = {
            "file": np.frombuffer(self.file, dtype=np.int16),
            "line": np.frombuffer(self.line, dtype=np.int64),
            "offset": np.frombuffer(self.offset, dtype=np.int64),
            "length": np.frombuffer(self.length, dtype=np.int64),
        }
        return [
            Slice(paths, **{name: column[order[edges[k] : edges[k + 1]]] for name, column in columns.items()})
            for k in range(count)
        ]


def split(inputs: Sequence[Input], folder: Path, *, limit: int | None = None) -> Split:
    """Read every input once and cut it. `limit` keeps the first records of each file of a role that is `limited`."""
    indices = {item.role: _Index() for item in inputs}
    groups: set[str] = set()
    names: list[str] = []
    places: list[str] = []
    read: list[InputFile] = []
    stamps: dict[str, tuple[int, int]] = {}
    for item in inputs:
        for path in item.paths:
            with open_source(path) as source:
                direct = path != "-" and not source.compressed and is_json_lines(source)
                place = path if direct else str(folder / f"{item.role}-{len(names)}.jsonl")
                stamps[place] = _stamp(place) if direct else (-1, -1)
                most = limit if item.limited else None
                if direct:
                    lines = _in_place(source)
                    _index(item, path, lines, indices[item.role], len(names), groups, most)
                else:
                    with Path(place).open("wb") as copy:
                        _index(item, path, _copied(source, copy), indices[item.role], len(names), groups, most)
                    stamps[place] = _stamp(place)
                while source.stream.read(1 << 20):
                    pass  # the digest is that of the whole file, also under a limit
                read.append(InputFile(role=item.role, name=Path(path).name, bytes=source.bytes, sha256=source.sha256))
            names.append(path)
            places.append(place)
    rows = {role: len(index.bucket) for role, index in indices.items()}
    count = _partitions(max(rows.values(), default=0))
    cut = {role: index.slices(count, tuple(places)) for role, index in indices.items()}
    return Split(
        partitions=[{role: slices[k] for role, slices in cut.items()} for k in range(count)],
        groups=tuple(sorted(groups)),
        files=tuple(names),
        inputs=read,
        rows=rows,
        stamps=stamps,
    )


def _index(
    item: Input,
    path: str,
    lines: Iterator[tuple[int, int, bytes]],
    index: _Index,
    file: int,
    groups: set[str],
    limit: int | None,
) -> None:
    """Note where every record stands; a record without a readable key is an InputError with its line."""
    bucket, files, numbers, offsets, lengths = index.bucket, index.file, index.line, index.offset, index.length
    key, crc = item.key, zlib.crc32
    count = line = 0
    try:
        for line, offset, text in lines:
            if count == limit:
                return
            if not text.isascii():
                text.decode()
            name, group = key(path, line, text)
            if group is not None:
                groups.add(group)
            bucket.append(crc(name.encode()) >> 24)
            files.append(file)
            numbers.append(line)
            offsets.append(offset)
            lengths.append(len(text))
            count += 1
    except msgspec.ValidationError as error:
        raise InputError(f"{error}; {item.expected}", file=path, line=line) from None
    except msgspec.DecodeError as error:
        raise InputError(f"is not JSON: {error}; {item.expected}", file=path, line=line) from None
    except UnicodeError as error:
        raise InputError(f"is not UTF-8: {error}", file=path, line=line) from None
    except RecursionError:
        raise InputError("is nested too deep to be read", file=path, line=line) from None
    if not count:
        raise InputError("is empty; expected one record a line", file=path)


def _in_place(source: Source) -> Iterator[tuple[int, int, bytes]]:
    """(line, offset, text) of a plain JSON Lines file."""
    offset = 0
    for number, text in enumerate(source.stream, 1):
        start = offset
        offset += len(text)
        if number == 1 and text.startswith(b"\xef\xbb\xbf"):
            text, start = text[3:], start + 3  # noqa: PLW2901 -- a byte order mark is no part of the record
        if not text.isspace():
            yield number, start, text


def _copied(source: Source, copy: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """The same of any other input, written out as JSON Lines on the way."""
    offset = 0
    for number, text in records(source):
        yield number, offset, text
        copy.write(text)
        copy.write(b"\n")
        offset += len(text) + 1


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 -- the same call for a path that is gone
    except OSError:
        return (-1, -1)
    return found.st_size, found.st_mtime_ns


def _partitions(rows: int) -> int:
    """How many partitions: a power of two that depends on the number of records alone."""
    count = 1
    while count < BUCKETS and rows > count * ROWS_A_PARTITION:
        count *= 2
    return count
