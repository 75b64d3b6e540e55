"""Columns of texts as slots and as bytes: by which the input is cut into partitions, and what is hashed of ids and data sets."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SLOTS = 256
"""A record's slot is the first byte of the CRC-32 of its key; a partition is a range of slots."""


def slots_of(keys: pa.ChunkedArray) -> NDArray[np.uint8]:
    """The slot of every key."""
    codes = np.fromiter(map(zlib.crc32, keys.cast(pa.binary()).to_numpy()), dtype=np.uint32, count=len(keys))
    return (codes >> np.uint32(24)).astype(np.uint8)


def bytes_of(column: pa.StringArray) -> tuple[NDArray[np.int32], memoryview]:
    """The length of every text in bytes, −1 for null, and all their bytes one after another."""
    texts = column.fill_null("") if column.null_count else column
    offsets = np.frombuffer(texts.buffers()[1], dtype="<i4")[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(offsets)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    data = texts.buffers()[2]
    return lengths, memoryview(b"" if data is None else data)[offsets[0] : offsets[-1]]
