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

from adjudge.provenance.canonical import SLOTS

TOGETHER = 4  # slots in a batch of a file: few batches, and a partition reads little that is not its own
PIECE = 32_000_000  # bytes: many blocks, so that a partition is put together from few tables and batches
_BUFFER = 1 << 20  # a file is written in few calls, not in one for each buffer of each column
MEMORY_BYTES = 150_000_000
"""Of one role, in memory; what comes then goes to files."""


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
