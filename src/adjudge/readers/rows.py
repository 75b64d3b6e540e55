"""Rows of tables that lie in many chunks, in another order: long texts are copied once, on their way to the new place."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.loops import available

LONG: Final = 1_000_000  # bytes of a column; below that Arrow's two copies are no slower


def in_order(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """Some rows of a table in this order, as one chunk; Arrow would lay the chunks of a column together first."""
    index = pa.array(rows)
    columns = [
        _texts(column, rows) if _is_long(column) else column.combine_chunks().take(index) for column in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _is_long(column: pa.ChunkedArray) -> bool:
    if column.num_chunks < 2 or column.type not in (pa.string(), pa.binary()):
        return False
    return column.chunk(0).nbytes * column.num_chunks > LONG and available()


def _texts(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> pa.Array:
    """The texts of some rows, from wherever they lie."""
    from adjudge.readers import _text_kernels

    addresses, sizes = [], []
    for chunk in column.chunks:
        _, edges, data = chunk.buffers()
        offsets = np.frombuffer(edges, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        addresses.append(offsets[:-1] + np.int64(data.address if data else 0))
        sizes.append(np.diff(offsets))
    address, size = np.concatenate(addresses)[rows], np.concatenate(sizes)[rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum(size, out=offsets[1:])
    out = np.empty(offsets[-1], dtype=np.uint8)
    _text_kernels.copy_from(address, offsets, out)
    bitmap = None
    if column.null_count:
        there = column.is_valid().to_numpy()[rows]
        bitmap = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(column.type, len(rows), [bitmap, pa.py_buffer(offsets), pa.py_buffer(out)])
