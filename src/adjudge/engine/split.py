"""Reading the input once, into columns, cut into partitions by hash of the key.

Every role's records become a table as they are read; the tables go through a spool, so memory is bounded. Where other
processes work, large files of JSON Lines are read in ranges. How many partitions there are depends on the number of
records and the size of the files alone, so the order of the input and the number of workers change nothing.
"""

from __future__ import annotations

import io
import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.matching import Noticed
from adjudge.engine.runner import Recipe, Runner, plan_of
from adjudge.engine.spool import MEMORY_BYTES, Piece, Spool, slot_range, together
from adjudge.errors import ConfigError, InputError
from adjudge.protocols.base import Input
from adjudge.provenance.canonical import SLOTS, file_digest, slots_of
from adjudge.provenance.manifest import InputFile
from adjudge.provenance.redact import redacted
from adjudge.readers import sources
from adjudge.readers.blocks import Block, Keys, blocks, blocks_of_lines
from adjudge.readers.records import Shape, is_json_lines, shape_of
from adjudge.readers.sources import beyond, bound, open_source

ROWS_A_PARTITION, BYTES_A_PARTITION = 1 << 16, 1 << 27
RANGE_BYTES = 1 << 26


@dataclass(frozen=True)
class Part:
    """The records of one role in one partition: some slots of all pieces."""

    pieces: tuple[Piece, ...]
    low: int
    high: int
    raw: bool
    matched: bool = True
    limited: bool = False

    def table(self) -> pa.Table:
        """The records as columns, in the order of the input, each in many chunks."""
        return together([piece.rows(self.low, self.high) for piece in self.pieces])


def raw_rows(table: pa.Table) -> Iterator[tuple[int, int, bytes]]:
    """(file, line, JSON) of records that were kept as they are."""
    return zip(*(table.column(name).to_pylist() for name in ("file", "line", "text")), strict=True)


@dataclass(frozen=True)
class Wanted:
    """What the user says of the input: how many records, where they sit, and what their keys are called."""

    limit: int | None = None
    json_path: str | None = None
    columns: dict[str, str] = field(default_factory=dict)


@dataclass
class Split:
    """The whole input, cut. `groups` are all second parts of the keys (for flight, the models)."""

    partitions: list[dict[str, Part]] = field(default_factory=list)
    groups: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    inputs: list[InputFile] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stamps: dict[str, tuple[int, int | str]] = field(default_factory=dict)

    def check_unchanged(self) -> None:
        """Refuse a result whose input changed while it was read."""
        for path, stamp in self.stamps.items():
            if _stamp(path) != stamp:
                raise InputError("changed while it was being read; run again", file=path)


@dataclass
class Reading:
    """One role while it is read."""

    item: Input
    shape: Shape
    spool: Spool
    groups: set[str] = field(default_factory=set)
    noticed: Noticed = field(default_factory=Noticed)

    @cached_property
    def keys(self) -> Keys | None:
        """The keys that the role reads."""
        return None if self.item.keys is None else Keys.of(self.item.keys)

    def take(self, block: Block, before: int) -> None:
        """Put the records of a block into the spool; `before` of the same file came earlier."""
        table = _kept(self.item, block) if self.item.read is None else self.item.read(block)
        self.noticed.notice(block, before, self.keys)
        self.add(table)

    def add(self, table: pa.Table) -> None:
        """Put records that are columns already into the spool."""
        self.spool.add(table, slots_of(table.column("cut" if "cut" in table.column_names else "key")))
        if "group" in table.column_names:
            self.groups.update(pc.unique(table.column("group")).drop_null().to_pylist())


def split(
    inputs: Sequence[Input], folder: Path, runner: Runner, recipe: Recipe | None = None, wanted: Wanted | None = None
) -> Split:
    """Read every input once and cut it. A limit keeps the first records of each file of a role that is `limited`.

    Without the recipe of its plan an input is read in this process.
    """
    asked = wanted or Wanted()
    memory = 0 if runner.shared else MEMORY_BYTES
    readings = {
        item.role: Reading(item, shape_of(item.role, asked.json_path, asked.columns), Spool(folder, item.role, memory))
        for item in inputs
    }
    paths = [(readings[item.role], path) for item in inputs for path in item.paths]
    cut = Split(files=tuple(redacted(path) for _, path in paths), stamps={path: _stamp(path) for _, path in paths})
    ranges_of_files = [
        _ranges(path)
        if runner.shared
        and recipe is not None
        and reading.shape.as_it_is
        and not reading.item.in_order
        and reading.item.tables is None
        and not (reading.item.limited and asked.limit)
        else []
        for reading, path in paths
    ]
    jobs = [
        Range(recipe, reading.item.role, path, number, *edges, folder)
        for number, ((reading, path), ranges) in enumerate(zip(paths, ranges_of_files, strict=True))
        for edges in ranges
        if recipe is not None
    ]
    # The ranges of all files in one queue, so that no worker waits for the end of a file.
    results = runner.map(read_range, jobs)
    for number, ((reading, path), ranges) in enumerate(zip(paths, ranges_of_files, strict=True)):
        if ranges:
            digest, size = _in_ranges(itertools.islice(results, len(ranges)), path, reading)
        else:
            digest, size = _at_once(reading, path, number, asked.limit if reading.item.limited else None)
        cut.inputs.append(InputFile(role=reading.item.role, name=sources.file_name(path), bytes=size, sha256=digest))
    _close(cut, readings, asked)
    return cut


def _close(cut: Split, readings: dict[str, Reading], asked: Wanted) -> None:
    """Cut what was read into partitions, and say what was noticed."""
    for reading in readings.values():
        reading.spool.close()
    cut.rows = {role: reading.spool.rows for role, reading in readings.items()}
    cut.groups = tuple(sorted(set().union(*(reading.groups for reading in readings.values()))))
    parts = partition_count(max(cut.rows.values(), default=0), sum(file.bytes for file in cut.inputs))
    for part in range(parts):
        low, high = slot_range(part, parts)
        cut.partitions.append(
            {
                role: Part(
                    tuple(reading.spool.pieces),
                    low,
                    high,
                    raw=reading.item.read is None and reading.item.tables is None,
                    matched=reading.item.matched,
                    limited=reading.item.limited,
                )
                for role, reading in readings.items()
            }
        )
    if len(cut.groups) > bound("models"):
        hint = "Is it the right key? --column model=NAME says which one names the model."
        raise InputError(f"the input names {len(cut.groups):,} models; {beyond('models')}.", hint=hint)
    cut.notes = [note for role, reading in readings.items() for note in reading.noticed.notes(role)]
    for ours, theirs in asked.columns.items():
        if not any(reading.shape.seen.get(theirs) for reading in readings.values()):
            raise ConfigError(f"--column {ours}={theirs}: no record has a key {theirs!r}")


def _at_once(reading: Reading, path: str, number: int, limit: int | None) -> tuple[str, int]:
    """One file from front to back; its digest and size."""
    before = 0
    if reading.item.tables is not None:
        for table in reading.item.tables(path, number, limit):
            reading.add(table)
        return file_digest(Path(path)), _stamp(path)[0]
    with open_source(path) as source:
        for block in blocks(source, number, reading.shape, limit=limit):
            try:
                reading.take(block, before)
            except InputError:
                reading.shape.refuse_unseen(path)
                raise
            before += len(block)
        reading.noticed.decimal_commas += source.decimal_commas or 0
        while source.stream.read(1 << 20):
            pass  # the digest is that of the whole file, also under a limit
        return source.sha256, source.bytes


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
    reading = Reading(item, Shape(), spool)
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
    from concurrent.futures import ThreadPoolExecutor  # not at every start

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
        return digest.result(), _stamp(path)[0]


def _digest(path: str) -> str:
    if not sources.is_url(path):
        return file_digest(Path(path))
    with open_source(path) as source:
        while source.stream.read(1 << 20):
            pass
        return source.sha256


def _ranges(path: str) -> list[tuple[int, int]]:
    """Where a large plain file of JSON Lines can be cut; none where it cannot, or is small."""
    size = _stamp(path)[0]
    if path == "-" or size < 2 * RANGE_BYTES:
        return []
    with open_source(path) as source:
        if source.compressed or not is_json_lines(source):
            return []
    edges = [0]
    with sources.open_url(path, block=1 << 16) if sources.is_url(path) else Path(path).open("rb") as stream:
        while edges[-1] + RANGE_BYTES < size:
            stream.seek(edges[-1] + RANGE_BYTES)
            stream.readline()
            edges.append(stream.tell())
    return list(zip(edges, [*edges[1:], size], strict=True))


def _kept(item: Input, block: Block) -> pa.Table:
    """Records as they are, beside their keys."""
    key, path = item.key, block.path
    assert key is not None  # noqa: S101 -- a role has a key or reads columns
    texts: list[bytes] = []

    def keep(line: int, text: bytes) -> tuple[str, str | None]:
        name = key(path, line, text)
        texts.append(text)
        return name

    keys = block.each(keep, item.expected)
    return pa.table(
        {
            "key": pa.array([name for name, _ in keys], pa.string()),
            "group": pa.array([group for _, group in keys], pa.string()),
            "file": pa.array([block.file] * len(keys), pa.int32()),
            "line": pa.array(block.lines),
            "text": pa.array(texts, pa.binary()),
        }
    )


def _stamp(path: str) -> tuple[int, int | str]:
    if sources.is_url(path):
        return sources.stamp(path)
    try:
        status = os.stat(path)  # noqa: PTH116 -- the same call for a path that is gone
    except OSError:
        return (0, -1)
    return status.st_size, status.st_mtime_ns if stat.S_ISREG(status.st_mode) else 0  # a pipe changes as it is read


def partition_count(rows: int, size: int = 0) -> int:
    """How many partitions: a power of two that depends on the numbers of records and of bytes in the files alone."""
    count = 1
    while count < min(SLOTS, rows) and (rows > count * ROWS_A_PARTITION or size > count * BYTES_A_PARTITION):
        count *= 2
    return count
