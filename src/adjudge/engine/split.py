"""Cutting the input into partitions by hash of the key, in bounded memory.

Every input is read once from front to back; what is kept of a record is where it stands and a hash of its key. A
partition then reads its own records. Input that cannot be read at a place (compressed, standard input, CSV, Parquet, one
JSON document) is first written as JSON Lines to the run's temporary folder. How many partitions there are depends on the
number of records alone, so the order of the input, the number of workers and the number of files change nothing.
"""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

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
_BLOCK = 1 << 18
_NEWLINE, _OPEN, _CLOSE = b"\n{}"
_BOM = b"\xef\xbb\xbf"
Offsets = NDArray[np.int64]


@dataclass(frozen=True)
class Slice:
    """The records of one role in one partition: where each stands."""

    paths: tuple[str, ...]
    file: NDArray[np.int16]
    line: NDArray[np.int64]
    offset: NDArray[np.int64]
    length: NDArray[np.int32]

    def rows(self) -> Iterator[tuple[int, int, bytes]]:
        """(file, line, JSON) of the records, in the order they were read."""
        opened = {file: os.open(self.paths[file], os.O_RDONLY) for file in np.unique(self.file).tolist()}
        files = self.file.tolist()
        try:
            texts = map(os.pread, map(opened.__getitem__, files), self.length.tolist(), self.offset.tolist())
            yield from zip(files, self.line.tolist(), texts, strict=True)
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


class _Index:
    """Where the records of one role stand, block by block."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self.rows = 0

    def add(self, block: _Block) -> None:
        """Append the records of one block of lines."""
        self._blocks.append(block)
        self.rows += len(block.bucket)

    def slices(self, count: int, paths: tuple[str, ...]) -> list[Slice]:
        bucket, file, line, offset, length = (np.concatenate(column) for column in zip(*self._blocks, strict=True))
        part = (bucket.astype(np.int64) * count) // BUCKETS
        order = np.argsort(part, kind="stable")
        edges = np.searchsorted(part[order], np.arange(count + 1))
        rows = [order[edges[k] : edges[k + 1]] for k in range(count)]
        return [Slice(paths, file[own], line[own], offset[own], length[own]) for own in rows]


class _Block(NamedTuple):
    """Some records of one file: bucket of the key's hash, number of the file, line, offset and length."""

    bucket: NDArray[np.uint8]
    file: NDArray[np.int16]
    line: NDArray[np.int64]
    offset: NDArray[np.int64]
    length: NDArray[np.int32]


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
                reader = _Reader(item, path, indices[item.role], len(names), groups, most)
                if direct:
                    reader.read_in_place(source)
                else:
                    with Path(place).open("wb") as copy:
                        reader.read_copied(source, copy)
                    stamps[place] = _stamp(place)
                while source.stream.read(1 << 20):
                    pass  # the digest is that of the whole file, also under a limit
                read.append(InputFile(role=item.role, name=Path(path).name, bytes=source.bytes, sha256=source.sha256))
            names.append(path)
            places.append(place)
    rows = {role: index.rows for role, index in indices.items()}
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


class _Reader:
    """Reads the keys of one file; a record without a readable key is an InputError with its line."""

    def __init__(self, item: Input, path: str, index: _Index, file: int, groups: set[str], limit: int | None) -> None:
        self.item, self.path, self.index, self.file, self.groups = item, path, index, file, groups
        self.left = limit
        self.count = 0

    def read_in_place(self, source: Source) -> None:
        """A plain JSON Lines file, in blocks of whole lines."""
        line, offset = 1, 0
        while block := source.stream.read(_BLOCK):
            block += source.stream.readline()
            data = np.frombuffer(block, dtype=np.uint8)
            ends = np.flatnonzero(data == _NEWLINE) + 1
            if not block.endswith(b"\n"):
                ends = np.append(ends, len(block))
            starts = np.concatenate([[0], ends[:-1]])
            if offset == 0 and block.startswith(_BOM):
                starts[0] = len(_BOM)  # a byte order mark is no part of the record
            last = ends - 1 - (data[ends - 1] == _NEWLINE)
            # Where every line begins and ends with a brace, no record runs over two of them.
            ordinary = bool((data[starts] == _OPEN).all() and (data[last] == _CLOSE).all())
            if self.left == 0 or not self._block(block, starts, ends - starts, line, offset, ordinary=ordinary):
                break
            line += len(ends)
            offset += len(block)
        self._finish()

    def read_copied(self, source: Source, copy: BinaryIO) -> None:
        """Any other input, written out as JSON Lines on the way."""
        offset = 0
        for line, text in records(source):
            if self.left == 0 or not self._rows([(line, offset, text)]):
                break
            copy.write(text)
            copy.write(b"\n")
            offset += len(text) + 1
        self._finish()

    def _block(
        self, block: bytes, starts: Offsets, lengths: Offsets, line: int, offset: int, *, ordinary: bool
    ) -> bool:
        """One block of lines; False when the limit is reached."""
        at_once = ordinary and self.item.keys is not None and self.left is None
        keys = self._keys(block, int(starts[0])) if at_once else None
        if keys is not None and len(keys) == len(starts):
            lines = np.arange(line, line + len(starts))
            self._add(keys, lines, starts + offset, lengths)
            return True
        # Something is out of the ordinary: a blank line, a bad record, a limit. Line by line it gets its place.
        places = zip(itertools.count(line), starts.tolist(), lengths.tolist(), strict=False)
        texts = ((number, start, block[start : start + length]) for number, start, length in places)
        return self._rows([(number, start + offset, text) for number, start, text in texts if not text.isspace()])

    def _keys(self, block: bytes, start: int) -> Sequence[tuple[str, str | None]] | None:
        assert self.item.keys is not None  # noqa: S101 -- the caller has looked
        try:
            _check_utf8(block)
            return self.item.keys(self.path, block[start:] if start else block)
        except (msgspec.DecodeError, UnicodeError, RecursionError, InputError):
            return None

    def _rows(self, rows: Sequence[tuple[int, int, bytes]]) -> bool:
        """Records one by one, so that an error names its line."""
        if self.left is not None:
            rows = rows[: self.left]
            self.left -= len(rows)
        item, path, line = self.item, self.path, 0
        keys = []
        try:
            for line, _, text in rows:
                _check_utf8(text)
                keys.append(item.key(path, line, text))
        except msgspec.ValidationError as error:
            raise InputError(f"{error}; {item.expected}", file=path, line=line) from None
        except msgspec.DecodeError as error:
            raise InputError(f"is not JSON: {error}; {item.expected}", file=path, line=line) from None
        except UnicodeError as error:
            raise InputError(f"is not UTF-8: {error}", file=path, line=line) from None
        except RecursionError:
            raise InputError("is nested too deep to be read", file=path, line=line) from None
        if rows:
            lines, offsets = (np.array([row[k] for row in rows], dtype=np.int64) for k in (0, 1))
            self._add(keys, lines, offsets, np.array([len(text) for _, _, text in rows]))
        return self.left != 0

    def _add(self, keys: Sequence[tuple[str, str | None]], lines: Offsets, offsets: Offsets, lengths: Offsets) -> None:
        crc = zlib.crc32
        bucket = np.array([crc(name.encode()) >> 24 for name, _ in keys], dtype=np.uint8)
        self.groups.update(group for group in {group for _, group in keys} if group is not None)
        file = np.full(len(keys), self.file, dtype=np.int16)
        self.index.add(_Block(bucket, file, lines, offsets, lengths.astype(np.int32)))
        self.count += len(keys)

    def _finish(self) -> None:
        if not self.count:
            raise InputError("is empty; expected one record a line", file=self.path)


def _check_utf8(text: bytes) -> None:
    """The keys alone would not notice a broken character elsewhere in the record."""
    if not text.isascii():
        text.decode()


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
