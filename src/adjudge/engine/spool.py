"""Columns of records, cut by the hash of their key: in memory while they are few, then in files of the scratch folder."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.readers.rows import in_order

BUCKETS = 256
NONE = -1  # the bucket of what is no record
TOGETHER = 4  # buckets in a batch of a file: few batches, and a partition reads little that is not its own
HELD_PIECE, FILE_PIECE = 2_000_000, 8_000_000  # bytes: about a block as it is, and enough for a file
_WRITTEN_AT_ONCE = 1 << 18  # bytes: a column of a batch is often a few hundred
HELD_BYTES = 80_000_000
"""Of one role, in memory; what comes then goes to files."""


@dataclass(frozen=True)
class Piece:
    """Records in the order of their bucket, bucket b from edges[b] to edges[b + 1]: a table, or the batches of a file.

    In a file some buckets are a batch, unless they are empty. Lines count from `first_line`.
    """

    edges: NDArray[np.int64]
    table: pa.Table | None = None
    path: str = ""
    first_line: int = 0

    def rows(self, low: int, high: int) -> pa.Table:
        """The records of the buckets low..high."""
        if self.table is not None:
            found = self.table.slice(self.edges[low], self.edges[high] - self.edges[low])
        else:
            groups = self.edges[::TOGETHER]
            held = np.cumsum(np.concatenate([[0], np.diff(groups) > 0]))
            reader = _reader(self.path)
            first, last = low // TOGETHER, -(-high // TOGETHER)
            batches = [reader.get_batch(k) for k in range(int(held[first]), int(held[last]))]
            found = pa.Table.from_batches(batches, schema=reader.schema)
            found = found.slice(self.edges[low] - groups[first], self.edges[high] - self.edges[low])
        if self.first_line and "line" in found.column_names:
            at = found.column_names.index("line")
            moved = found.column(at).combine_chunks().to_numpy() + self.first_line
            found = found.set_column(at, "line", pa.array(moved))
        return found


@functools.lru_cache(maxsize=256)
def _reader(path: str) -> pa.ipc.RecordBatchFileReader:
    return pa.ipc.open_file(pa.OSFile(path), options=pa.ipc.IpcReadOptions(use_threads=False))


@dataclass
class Room:
    """The memory that a spool may still take."""

    left: int = field(default_factory=lambda: HELD_BYTES)


@dataclass
class Spool:
    """Takes the records of one role and gives them back by bucket; `name` makes its files unique in the folder.

    Where other processes work (`room` is none), everything goes through files, of about `file_piece` bytes each.
    """

    folder: Path
    name: str
    room: Room | None = None
    file_piece: int = field(default_factory=lambda: FILE_PIECE)
    pieces: list[Piece] = field(default_factory=list)
    rows: int = 0
    _tables: list[pa.Table] = field(default_factory=list)
    _buckets: list[NDArray[np.int16]] = field(default_factory=list)
    _bytes: int = 0

    def add(self, table: pa.Table, bucket: NDArray[np.int16]) -> None:
        """Append records; a row with the bucket NONE is none."""
        self._tables.append(table)
        self._buckets.append(bucket)
        self._bytes += table.nbytes
        self.rows += int(np.count_nonzero(bucket != NONE))
        if self._bytes > (HELD_PIECE if self._held() else self.file_piece):
            self.close()

    def close(self) -> None:
        """What is left becomes a piece, in memory where there is room."""
        if not self._tables:
            return
        if self._held():
            assert self.room is not None  # noqa: S101 -- what is held has room
            self.room.left -= self._bytes
            table, edges = self._sorted()
            self.pieces.append(Piece(edges, table))
        else:
            self._spill()

    def _held(self) -> bool:
        return self.room is not None and self.room.left > 0

    def _spill(self) -> None:
        table, edges = self._sorted()
        path = self.folder / f"{self.name}-{len(self.pieces)}.arrow"
        with (
            pa.OSFile(str(path), "wb") as raw,
            pa.BufferedOutputStream(raw, _WRITTEN_AT_ONCE) as stream,
            pa.ipc.new_file(stream, table.schema, options=pa.ipc.IpcWriteOptions(use_threads=False)) as writer,
        ):
            for low, high in itertools.pairwise(edges[::TOGETHER].tolist()):
                if high > low:
                    writer.write_table(table.slice(low, high - low))
        self.pieces.append(Piece(edges, path=str(path)))

    def _sorted(self) -> tuple[pa.Table, NDArray[np.int64]]:
        bucket = np.concatenate(self._buckets)
        order = np.argsort(bucket, kind="stable")
        edges = np.searchsorted(bucket[order], np.arange(BUCKETS + 1)).astype(np.int64)
        table = in_order(together(self._tables), order[edges[0] :])
        self._tables, self._buckets, self._bytes = [], [], 0
        return table, edges - edges[0]


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """Records one after another, as chunks; a column may be of nulls alone in some tables, and take no room there."""
    return pa.concat_tables(tables, promote_options="default")
