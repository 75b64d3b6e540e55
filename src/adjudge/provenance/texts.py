"""Columns of texts as slots and as bytes: by which the input is cut into partitions, and what is hashed of ids and data sets."""

from __future__ import annotations

import zlib
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SLOTS = 256
"""A record's slot is the first byte of the CRC-32 of its key; a partition is a range of slots."""


_LONG = 64


def slots_of(keys: pa.ChunkedArray) -> NDArray[np.uint8]:
    """The slot of every key.

    Of texts of one length, a CRC is that of zeros, changed by every byte for itself, as it stands from the end.
    """
    texts = keys.combine_chunks().cast(pa.string())
    lengths, data = bytes_of(texts)
    longest = int(lengths.max(initial=0))
    if longest > _LONG:
        return np.fromiter(map(_slot, texts.cast(pa.binary()).to_numpy(zero_copy_only=False)), np.uint8, len(texts))
    slots: NDArray[np.uint8] = np.array([_slot(bytes(length)) for length in range(longest + 1)], np.uint8)[lengths]
    letters, place = np.frombuffer(data, dtype=np.uint8), np.cumsum(lengths, dtype=np.int64)
    for from_end in range(longest):
        place -= 1
        letter = letters.take(place, mode="clip") * (lengths > from_end)
        slots ^= _changes(from_end).take(letter)
    return slots


def _slot(text: bytes) -> int:
    return zlib.crc32(text) >> 24


@cache
def _changes(from_end: int) -> NDArray[np.uint8]:
    """What each byte at a place changes in the slot of zeros."""
    rest = bytes(from_end)
    return np.array([_slot(bytes([byte]) + rest) ^ _slot(b"\0" + rest) for byte in range(256)], np.uint8)


def bytes_of(column: pa.StringArray) -> tuple[NDArray[np.int32], memoryview]:
    """The length of every text in bytes, −1 for null, and all their bytes one after another."""
    texts = column.fill_null("") if column.null_count else column
    offsets = np.frombuffer(texts.buffers()[1], dtype="<i4")[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(offsets)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    data = texts.buffers()[2]
    return lengths, memoryview(b"" if data is None else data)[offsets[0] : offsets[-1]]
