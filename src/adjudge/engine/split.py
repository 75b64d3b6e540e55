"""Reading the input once, into columns, cut into partitions by hash of the key.

Every role's records become a table as they are read; the tables go through a spool, so memory is bounded. Where other
processes work, large files of JSON Lines are read in ranges. How many partitions there are depends on the number of
records and the size of the files alone, so the order of the input and the number of workers change nothing.
"""

from __future__ import annotations

import functools
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.engine.matching import Noticed
from adjudge.engine.runner import Recipe, Runner
from adjudge.errors import ConfigError, InputError
from adjudge.protocols.base import Input
from adjudge.provenance.canonical import SLOTS, file_digest, slots_of
from adjudge.provenance.manifest import InputFile
from adjudge.provenance.redact import redacted
from adjudge.readers import sources
from adjudge.readers.blocks import Block, Keys, blocks
from adjudge.readers.records import AS_IT_IS, Shape, shape_of
from adjudge.readers.sources import beyond, bound, open_source

ROWS_A_PARTITION, BYTES_A_PARTITION = 1 << 16, 1 << 27
TOGETHER = 4  # slots in a batch of a file: few batches, and a partition reads little that is not its own
PIECE = 32_000_000  # bytes: many blocks, so that a partition is put together from few tables and batches
_BUFFER = 1 << 20  # a file is written in few calls, not in one for each buffer of each column
MEMORY_BYTES = 150_000_000
"""Of one role, in memory; what comes then goes to files."""


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

    def shape(self, role: str) -> Shape:
        """What that says of the files of a role."""
        return shape_of(role, self.json_path, self.columns) if self.json_path or self.columns else AS_IT_IS


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
            if stamp_of(path) != stamp:
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
    readings = {item.role: Reading(item, asked.shape(item.role), Spool(folder, item.role, memory)) for item in inputs}
    paths = [(readings[item.role], path) for item in inputs for path in item.paths]
    cut = Split(files=tuple(redacted(path) for _, path in paths), stamps={path: stamp_of(path) for _, path in paths})
    ranged = None
    if runner.shared and recipe is not None:
        from adjudge.engine.ranges import RangedFiles

        ranged = RangedFiles(paths, runner, recipe, folder, limit=asked.limit)
    for number, (reading, path) in enumerate(paths):
        read = None if ranged is None else ranged.read(number)
        digest, size = read or _at_once(reading, path, number, asked.limit if reading.item.limited else None)
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
        return file_digest(Path(path)), stamp_of(path)[0]
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


def stamp_of(path: str) -> tuple[int, int | str]:
    """Size and time of change of a file, by which one that changes while it is read is noticed."""
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


def slot_range(part: int, parts: int) -> tuple[int, int]:
    """The slots low..high of one partition."""
    return part * SLOTS // parts, (part + 1) * SLOTS // parts


@dataclass(frozen=True)
class Piece:
    """Records in the order of their slot, slot s from edges[s] to edges[s + 1]: a table, or the batches of a file.

    In a file some slots are a batch, unless they are empty. Lines count from `first_line`.
    """

    edges: NDArray[np.int64]
    table: pa.Table | None = None
    path: str = ""
    first_line: int = 0

    def rows(self, low: int, high: int) -> pa.Table:
        """The records of the slots low..high."""
        if self.table is not None:
            rows = self.table.slice(self.edges[low], self.edges[high] - self.edges[low])
        else:
            groups = self.edges[::TOGETHER]
            batch_of_group = np.cumsum(np.concatenate([[0], np.diff(groups) > 0]))
            reader = _reader(self.path)
            first, last = low // TOGETHER, -(-high // TOGETHER)
            batches = [reader.get_batch(k) for k in range(int(batch_of_group[first]), int(batch_of_group[last]))]
            rows = pa.Table.from_batches(batches, schema=reader.schema)
            rows = rows.slice(self.edges[low] - groups[first], self.edges[high] - self.edges[low])
        if self.first_line and "line" in rows.column_names:
            at = rows.column_names.index("line")
            moved = rows.column(at).combine_chunks().to_numpy() + self.first_line
            rows = rows.set_column(at, "line", pa.array(moved))
        return rows


@functools.lru_cache(maxsize=256)
def _reader(path: str) -> pa.ipc.RecordBatchFileReader:
    return pa.ipc.open_file(pa.OSFile(path), options=pa.ipc.IpcReadOptions(use_threads=False))


@dataclass
class Spool:
    """Takes the records of one role and gives them back by slot, with it as a column; `name` makes its files unique in the folder.

    Up to `memory` bytes stay in memory; where other processes work that is 0, and everything goes through files.
    """

    folder: Path
    name: str
    memory: int = 0
    piece: int = field(default_factory=lambda: PIECE)
    pieces: list[Piece] = field(default_factory=list)
    rows: int = 0
    _tables: list[pa.Table] = field(default_factory=list)
    _slots: list[NDArray[np.uint8]] = field(default_factory=list)
    _bytes: int = 0

    def add(self, table: pa.Table, slots: NDArray[np.uint8]) -> None:
        """Append records."""
        self._tables.append(table)
        self._slots.append(slots)
        self._bytes += table.nbytes
        self.rows += table.num_rows
        if self._bytes > self.piece:
            self.close()

    def close(self) -> None:
        """What is left becomes a piece, in memory where there is room."""
        if not self._tables:
            return
        slots = np.concatenate(self._slots)
        order = np.argsort(slots, kind="stable")
        edges = np.searchsorted(slots[order], np.arange(SLOTS + 1)).astype(np.int64)
        table = together(self._tables).append_column("slot", pa.array(slots)).take(pa.array(order))
        if self.memory > 0:
            self.memory -= self._bytes
            self.pieces.append(Piece(edges, table))
        else:
            self._spill(table, edges)
        self._tables, self._slots, self._bytes = [], [], 0

    def _spill(self, table: pa.Table, edges: NDArray[np.int64]) -> None:
        path = self.folder / f"{self.name}-{len(self.pieces)}.arrow"
        with (
            pa.BufferedOutputStream(pa.OSFile(str(path), "wb"), _BUFFER) as stream,
            pa.ipc.new_file(stream, table.schema, options=pa.ipc.IpcWriteOptions(use_threads=False)) as writer,
        ):
            for low, high in itertools.pairwise(edges[::TOGETHER].tolist()):
                if high > low:
                    writer.write_table(table.slice(low, high - low).combine_chunks())
        self.pieces.append(Piece(edges, path=str(path)))


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """Records one after another; a column may be of nulls alone in some tables, and take no room there."""
    return pa.concat_tables(tables, promote_options="default")
