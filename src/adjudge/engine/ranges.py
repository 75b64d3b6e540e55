"""Large plain files of JSON Lines, read in ranges by other processes."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adjudge.engine.matching import Noticed
from adjudge.engine.runner import Recipe, Runner, plan_of
from adjudge.engine.split import Piece, Reading, Spool, stamp_of
from adjudge.errors import InputError
from adjudge.provenance.canonical import file_digest
from adjudge.readers import sources
from adjudge.readers.blocks import blocks_of_lines
from adjudge.readers.records import AS_IT_IS
from adjudge.readers.sources import JSON_LINES, format_of, open_source

RANGE_BYTES = 1 << 26


class RangedFiles:
    """The ranges of all files in one queue, so that no worker waits for the end of a file."""

    def __init__(
        self,
        paths: Sequence[tuple[Reading, str]],
        runner: Runner,
        recipe: Recipe,
        folder: Path,
        *,
        limit: int | None,
    ) -> None:
        self._paths = paths
        self._ranges = [
            _ranges(path)
            if reading.shape is AS_IT_IS
            and not reading.item.in_order
            and reading.item.tables is None
            and not (reading.item.limited and limit)
            else []
            for reading, path in paths
        ]
        jobs = [
            Range(recipe, reading.item.role, path, number, *edges, folder)
            for number, ((reading, path), ranges) in enumerate(zip(paths, self._ranges, strict=True))
            for edges in ranges
        ]
        self._results = runner.map(read_range, jobs)

    def read(self, number: int) -> tuple[str, int] | None:
        """Take the ranges of a file, one file after the other; its digest and size, or None where it has no ranges."""
        (reading, path), ranges = self._paths[number], self._ranges[number]
        return _in_ranges(itertools.islice(self._results, len(ranges)), path, reading) if ranges else None


@dataclass(frozen=True)
class Range:
    """Some lines of a large file, for another process."""

    recipe: Recipe
    role: str
    path: str
    file: int
    start: int
    end: int
    folder: Path


@dataclass(frozen=True)
class ReadRange:
    """What became of a range; its lines still count from 1."""

    pieces: list[Piece]
    rows: int
    lines: int
    groups: set[str]
    noticed: Noticed


def read_range(job: Range) -> ReadRange:
    """Read the lines of a range into a file of the scratch folder."""
    item = next(item for item in plan_of(job.recipe).inputs() if item.role == job.role)
    spool = Spool(job.folder, f"{job.role}-{job.file}-{job.start}", piece=RANGE_BYTES)
    reading = Reading(item, AS_IT_IS, spool)
    lines = before = 0
    with _opened(job.path, job.start, job.end) as stream:
        for block, count in blocks_of_lines(stream, job.path, job.file, first=job.start == 0):
            reading.take(block, before)
            before += len(block)
            lines += count
    spool.close()
    return ReadRange(spool.pieces, spool.rows, lines, reading.groups, reading.noticed)


def _opened(path: str, start: int, end: int) -> io.BufferedIOBase:
    """Some bytes of a file as a stream."""
    if sources.is_url(path):
        data = sources.fetch(path, start, end)
        if len(data) != end - start:
            raise InputError("changed while it was being read; run again", file=path)
        return io.BytesIO(data)
    return io.BufferedReader(_Section(path, start, end), 1 << 20)


class _Section(io.RawIOBase):
    """The bytes start..end of a file."""

    def __init__(self, path: str, start: int, end: int) -> None:
        self._stream = Path(path).open("rb", buffering=0)  # noqa: SIM115 -- closed with this stream
        self._stream.seek(start)
        self._left = end - start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._stream.readinto(memoryview(buffer)[: self._left])
        self._left -= count
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


def _in_ranges(ranges: Iterable[ReadRange], path: str, reading: Reading) -> tuple[str, int]:
    """One file, read by other processes; its digest, taken here meanwhile, and its size."""
    from concurrent.futures import ThreadPoolExecutor

    lines = 0
    with ThreadPoolExecutor(1) as beside:
        digest = beside.submit(_digest, path)
        try:
            for one in ranges:
                reading.spool.pieces += [replace(piece, first_line=lines) for piece in one.pieces]
                reading.spool.rows += one.rows
                reading.groups |= one.groups
                one.noticed.mended = [(file, line + lines, what) for file, line, what in one.noticed.mended]
                reading.noticed.add(one.noticed)
                lines += one.lines
        except InputError as error:
            if error.line is None:
                raise
            raise InputError(error.what, file=error.file, line=error.line + lines, hint=error.hint) from None
        return digest.result(), stamp_of(path)[0]


def _digest(path: str) -> str:
    if not sources.is_url(path):
        return file_digest(Path(path))
    with open_source(path) as source:
        while source.stream.read(1 << 20):
            pass
        return source.sha256


def _ranges(path: str) -> list[tuple[int, int]]:
    """Where a large plain file of JSON Lines can be cut; none where it cannot, or is small."""
    size = stamp_of(path)[0]
    if path == "-" or size < 2 * RANGE_BYTES:
        return []
    with open_source(path) as source:
        if source.compressed or format_of(source) != JSON_LINES:
            return []
    edges = [0]
    with sources.open_url(path, block=1 << 16) if sources.is_url(path) else Path(path).open("rb") as stream:
        while edges[-1] + RANGE_BYTES < size:
            stream.seek(edges[-1] + RANGE_BYTES)
            stream.readline()
            edges.append(stream.tell())
    return list(zip(edges, [*edges[1:], size], strict=True))
