"""Rows of tables that lie in many chunks, in another order: long values are copied once, on their way to the new place."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.loops import available

LONG: Final = 64  # bytes of a value; Arrow is as fast for shorter ones
WORTH_IT: Final = 1_000_000  # bytes of a column
MOST: Final = (1 << 31) - 1  # bytes that offsets of 32 bits reach


def in_order(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """Some rows of a table in this order, as one chunk; Arrow would lay the chunks of a column together first."""
    index = pa.array(rows)
    columns = [
        _copied(column, rows) if _is_long(column) else column.combine_chunks().take(index) for column in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _is_long(column: pa.ChunkedArray) -> bool:
    """Whether a column has long values and many of them, as far as its first chunk tells."""
    kind = column.type
    if column.num_chunks <= 1 or not (kind in (pa.string(), pa.binary()) or pa.types.is_fixed_size_binary(kind)):
        return False
    first = column.chunk(0)
    size = first.nbytes // max(1, len(first))
    return size > LONG and size * len(column) > WORTH_IT and available()


def _copied(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> pa.Array:
    """Some values of a column, from wherever they lie."""
    from adjudge.readers import _text_kernels

    places = [_places(chunk) for chunk in column.chunks]
    address = np.concatenate([own for own, _ in places])[rows]
    size = np.concatenate([sizes for _, sizes in places])[rows]
    if size.sum(dtype=np.int64) > MOST:  # more than one array can hold: Arrow says so
        return column.combine_chunks().take(pa.array(rows))
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum(size, out=offsets[1:])
    out = np.empty(offsets[-1], dtype=np.uint8)
    _text_kernels.copy_from(address, offsets, out)
    bitmap = None
    if column.null_count:
        bitmap = pa.py_buffer(np.packbits(column.is_valid().to_numpy()[rows], bitorder="little"))
    buffers = [bitmap, pa.py_buffer(out)]
    if not pa.types.is_fixed_size_binary(column.type):
        buffers.insert(1, pa.py_buffer(offsets))
    return pa.Array.from_buffers(column.type, len(rows), buffers)


def _places(chunk: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Where the values of a chunk begin in memory, and how long they are."""
    *_, data = buffers = chunk.buffers()
    begin = data.address if data else 0
    if pa.types.is_fixed_size_binary(chunk.type):
        size = chunk.type.byte_width
        first = begin + chunk.offset * size
        return np.arange(first, first + len(chunk) * size, size), np.full(len(chunk), size, dtype=np.int32)
    offsets = np.frombuffer(buffers[1], dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    return offsets[:-1] + np.int64(begin), np.diff(offsets)
