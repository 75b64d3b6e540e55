"""Columns of a table as Parquet's pages, from the buffers of Arrow without a look at each value.

What is one value throughout is a run, words are codes, numbers and texts lie in the file as they lie in memory. Types
that the runs of our own protocols do not have are left to Arrow's writer.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.runs.encodings import (
    as_it_lies,
    bits_for,
    counted,
    differing,
    level_bits,
    levels,
    list_starts,
    of_those_there,
    repeated,
    repeated_levels,
    runs,
    same_level,
    same_or_packed,
    texts,
)
from adjudge.runs.parquet import Chunk, Encoding, Group, Page, Physical, group_of

_PAGE = 1 << 20  # bytes of text in a page
_MOST = 1 << 30  # numbers up to which counting up stays far from the end of 32 bits


def encoded(table: pa.Table, bounded: Collection[str]) -> Group:
    """A table as a row group, with the bounds of some columns of numbers."""
    parts = []
    for field, column in zip(table.schema, table.columns, strict=True):
        array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        chunk = _chunk(field, array, bounded=field.name in bounded)
        parts.append(table.select([field.name]) if chunk is None else chunk)
    return group_of(table.num_rows, parts)


def coded(name: str, codes: NDArray[Any], words: Sequence[str]) -> Chunk:
    """Words by their codes, shaped (positions, samples)."""
    bits = bits_for(len(words))
    data = bytes([bits]) + runs(codes.ravel(), _edges(codes), bits)
    return _worded(name, Page(codes.size, data), words)


def maybe(name: str, codes: NDArray[Any], words: Sequence[str]) -> Chunk:
    """Words by their codes, shaped (positions, samples); none where a code is negative."""
    there = codes >= 0
    bits = bits_for(len(words))
    data = levels(there) + bytes([bits]) + runs(*of_those_there(codes, there), bits)
    return _worded(name, Page(codes.size, data), words)


def repeated_words(name: str, codes: NDArray[Any], times: int, words: Sequence[str]) -> Chunk:
    """As `maybe`, of one code a position, the same for so many samples."""
    bits, there = bits_for(len(words)), codes >= 0
    data = repeated_levels(there, times) + bytes([bits]) + repeated(codes[there], times, bits)
    return _worded(name, Page(codes.size * times, data), words)


def none(name: str, size: int) -> Chunk:
    """No word anywhere."""
    return _worded(name, Page(size, same_level(0, size) + b"\1"), ())


def _worded(name: str, page: Page, words: Sequence[str]) -> Chunk:
    dictionary = Page(len(words), texts(words))
    return Chunk((name,), Physical.BYTE_ARRAY, Encoding.RLE_DICTIONARY, [page], dictionary)


def _edges(values: NDArray[Any]) -> NDArray[np.intp]:
    """Where each position begins and ends, flat."""
    width, n = values.shape
    return np.arange(width + 1, dtype=np.intp) * np.intp(n)


def _chunk(field: pa.Field, array: pa.Array, *, bounded: bool) -> Chunk | None:
    """A column; None where it is for Arrow."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        return _words(field, array)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _texts(field, array)
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        return _lists(field, array)
    if pa.types.is_boolean(kind):
        bits = np.packbits(_values(array), bitorder="little").tobytes()
        return Chunk((field.name,), Physical.BOOLEAN, Encoding.PLAIN, [Page(len(array), _there(field, array) + bits)])
    if kind in _STORED:
        return _numbers(field, array, bounded=bounded)
    return None


_STORED: dict[pa.DataType, tuple[Physical, str]] = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), (Physical.INT32, "<i4")),
    **dict.fromkeys((pa.uint8(), pa.uint16(), pa.uint32()), (Physical.INT32, "<u4")),
    pa.int64(): (Physical.INT64, "<i8"),
    pa.uint64(): (Physical.INT64, "<u8"),
    pa.float64(): (Physical.DOUBLE, "<f8"),
}


def _there(field: pa.Field, array: pa.Array) -> bytes:
    """Definition levels, where a column may have nulls."""
    if not field.nullable:
        return b""
    if array.null_count in {0, len(array)}:
        return same_level(int(array.null_count == 0), len(array))
    bitmap = array.buffers()[0]
    if array.offset == 0 and bitmap is not None:
        return level_bits(np.frombuffer(bitmap, dtype=np.uint8), len(array))
    return levels(array.is_valid().to_numpy(zero_copy_only=False)[None, :])


def _values(array: pa.Array) -> NDArray[Any]:
    """The values that are there."""
    found = array.drop_null() if array.null_count else array
    values: NDArray[Any] = found.to_numpy(zero_copy_only=False)
    return values


def _words(field: pa.Field, array: pa.DictionaryArray) -> Chunk | None:
    if field.type.value_type != pa.string() or array.dictionary.null_count:
        return None
    words, codes = array.dictionary.to_pylist(), _values(array.indices)
    data = same_or_packed(codes, bits_for(len(words)))
    return _worded(field.name, Page(len(array), _there(field, array) + data), words)


def _numbers(field: pa.Field, array: pa.Array, *, bounded: bool) -> Chunk:
    physical, stored = _STORED[field.type]
    values = _values(array).astype(stored, copy=False)
    bounds = None
    if bounded and values.size:
        bounds = (values.min().tobytes(), values.max().tobytes())
    bits = values.view(f"<u{values.itemsize}")  # one double may be written in two ways
    if values.size and (bits == bits[0]).all():
        data = _there(field, array) + same_or_packed(np.zeros(values.size, dtype=np.uint8), 1)
        word = Page(1, values[:1].tobytes())
        return Chunk((field.name,), physical, Encoding.RLE_DICTIONARY, [Page(len(array), data)], word, bounds)
    there = _there(field, array)
    if physical == Physical.INT32 and values.size and 0 <= values[0] < _MOST and (np.diff(bits) == 1).all():
        page, how = Page(len(array), there + counted(int(values[0]), values.size, 1)), Encoding.DELTA_BINARY_PACKED
    else:
        page, how = Page(len(array), there, as_it_lies(values)), Encoding.PLAIN
    return Chunk((field.name,), physical, how, [page], bounds=bounds)


def _texts(field: pa.Field, array: pa.Array) -> Chunk:
    """All lengths of a page, then all letters."""
    pages = []
    for low, high in itertools.pairwise(_cuts(array)):
        some = array.slice(low, high - low)
        held = some.drop_null() if some.null_count else some
        offsets = _offsets(held)
        _, _, data = held.buffers()
        letters = np.frombuffer(data or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
        pages.append(Page(len(some), _there(field, some) + differing(np.diff(offsets)), as_it_lies(letters)))
    return Chunk((field.name,), Physical.BYTE_ARRAY, Encoding.DELTA_LENGTH_BYTE_ARRAY, pages)


def _cuts(array: pa.Array) -> list[int]:
    """Where pages of about so many bytes begin and end."""
    places = _offsets(array).astype(np.int64)
    edges = np.searchsorted(places, np.arange(places[0] + _PAGE, places[-1], _PAGE))
    return [0, *np.unique(edges[(edges > 0) & (edges < len(array))]).tolist(), len(array)]


def _offsets(array: pa.Array) -> NDArray[np.int32]:
    """Where each text begins, and the last ends."""
    if not len(array):
        return np.zeros(1, dtype=np.int32)
    return np.frombuffer(array.buffers()[1], dtype=np.int32, count=len(array) + 1, offset=4 * array.offset)


def _lists(field: pa.Field, array: pa.Array) -> Chunk | None:
    """Lists of doubles, all of them there and none of them empty."""
    inner = field.type.value_field
    if inner.type != pa.float64() or array.null_count or not len(array):
        return None
    values = array.flatten()
    if pa.types.is_fixed_size_list(field.type):
        starts = _even_starts(len(array), field.type.list_size)
    else:
        places = array.offsets.to_numpy()
        if (np.diff(places) == 0).any():
            return None
        starts = list_starts(places[:-1] - places[0], len(values))
    if values.null_count or not len(values):
        return None
    depth = int(field.nullable) + 1 + int(inner.nullable)
    page = Page(len(values), starts + same_level(depth, len(values)), as_it_lies(values.to_numpy()))
    return Chunk((field.name, "list", inner.name), Physical.DOUBLE, Encoding.PLAIN, [page])


@lru_cache(maxsize=4)
def _even_starts(lists: int, size: int) -> bytes:
    return list_starts(np.arange(lists) * size, lists * size)
