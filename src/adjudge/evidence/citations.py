"""Citations: which atoms a verdict rests on, as a bitmap over the positions of a sample's evidence."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def pack_citations(cites: NDArray[np.bool_]) -> pa.Array:
    """Bit k of a sample's citations is the k-th atom of its evidence; `cites` is shaped (positions, samples)."""
    return citation_column(packed_bits(cites))


def packed_bits(cites: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Eight positions a byte, shaped (bytes, samples)."""
    width, n = cites.shape
    packed = np.zeros((-(-width // 8), n), dtype=np.uint8)
    for position, row in enumerate(cites.view(np.uint8)):  # np.packbits takes many times as long across rows
        packed[position // 8] |= row << np.uint8(position % 8)
    return packed


def citation_column(packed: NDArray[np.uint8]) -> pa.Array:
    """Citations that are packed already, shaped (bytes, samples)."""
    width, n = packed.shape
    offsets = pa.array(np.arange(0, (n + 1) * width, width, dtype=np.int32))
    return pa.Array.from_buffers(
        pa.binary(), n, [None, offsets.buffers()[1], pa.py_buffer(np.ascontiguousarray(packed.T))]
    )


def unpack_citations(packed: bytes, width: int) -> NDArray[np.intp]:
    """The positions that a sample's verdict cites."""
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), bitorder="little")[:width]
    return np.flatnonzero(bits)
