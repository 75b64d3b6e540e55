"""Canonical JSON and content digests: the same content gives the same bytes and the same hash everywhere.

Columns of texts become slots, by which the input is cut into partitions, and bytes, by which ids and data sets are hashed.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import ConfigError

_PIECE = 1000
"""Entries that are formatted at once: a document of millions of numbers is never held twice."""


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces; a number that JSON cannot carry is a ConfigError, never NaN in a file."""
    _refuse_nan(value)
    return msgspec.json.encode(value, order="sorted")


def pretty(value: Any) -> bytes:
    """The JSON that stands in the run directory: readable, one byte sequence for one value, a newline at the end."""
    try:
        return b"".join([*_pieces(value, 2, b"\n"), b"\n"])
    except ValueError:
        _refuse_nan(value)
        raise


def _pieces(value: Any, depth: int, margin: bytes) -> Iterator[bytes]:
    """A value as indented JSON: the entries of a small dict one by one down to `depth`, those of a large one in pieces.

    `margin` is the line break before the value's closing bracket.
    """
    named = isinstance(value, dict) and bool(value) and all(type(key) is str for key in value)
    if named and len(value) > _PIECE:
        entries = iter(value.items())
        parts = iter(lambda: dict(islice(entries, _PIECE)), {})
        yield from _joined(b"{", parts, b"}", margin)
    elif named and depth:
        for number, (key, item) in enumerate(value.items()):
            yield (b"," if number else b"{") + margin + b"  " + _indented(key) + b": "
            yield from _pieces(item, depth - 1, margin + b"  ")
        yield margin + b"}"
    elif isinstance(value, list) and len(value) > _PIECE:
        lists = (value[start : start + _PIECE] for start in range(0, len(value), _PIECE))
        yield from _joined(b"[", lists, b"]", margin)
    else:
        yield _indented(value).replace(b"\n", margin)


def _joined(start: bytes, parts: Iterable[Any], end: bytes, margin: bytes) -> Iterator[bytes]:
    """Dicts or lists as one, without the brackets of each."""
    for number, part in enumerate(parts):
        yield b"," if number else start
        yield _indented(part)[1:-2].replace(b"\n", margin)
    yield margin + end


def _indented(value: Any) -> bytes:
    """Numbers as Python writes them, which are the shortest that read back the same; a ValueError where one is not finite."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except TypeError:  # a struct, or another value that msgspec knows
        _refuse_nan(value)
        text = json.dumps(json.loads(msgspec.json.encode(value)), ensure_ascii=False, allow_nan=False)
    return msgspec.json.format(text.encode(), indent=2)


def digest(value: Any) -> str:
    """SHA-256 over the canonical JSON of a value."""
    return hashlib.sha256(canonical(value)).hexdigest()


def short(value: Any) -> str:
    """The first 16 hex digits of `digest`, as shown to people."""
    return digest(value)[:16]


def file_digest(path: Path) -> str:
    """SHA-256 over the bytes of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _refuse_nan(value: Any) -> None:
    if not _finite(value):
        where, number = _not_finite(value, "$")
        raise ConfigError(f"{where} is {number}, which JSON cannot carry; a number that does not exist is null")


def _finite(value: Any) -> bool:
    """Whether no number in a value is NaN or infinite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    return all(map(_finite, value)) if isinstance(value, list | tuple) else True


def _not_finite(value: Any, where: str) -> tuple[str, float]:
    """The place of the first number that is not finite, and the number."""
    if isinstance(value, float):
        return where, value
    entries = (
        ((f"{where}.{key}", item) for key, item in value.items())
        if isinstance(value, dict)
        else ((f"{where}[{index}]", item) for index, item in enumerate(value))
    )
    return next(_not_finite(item, place) for place, item in entries if not _finite(item))


SLOTS = 256
"""A record's slot is the first byte of the CRC-32 of its key; a partition is a range of slots."""


def slots_of(keys: pa.ChunkedArray) -> NDArray[np.uint8]:
    """The slot of every key."""
    texts = keys.cast(pa.string()).cast(pa.binary()).to_numpy()
    checksums = np.fromiter(map(zlib.crc32, texts), np.uint32, len(texts))
    return (checksums >> 24).astype(np.uint8)


_HEAD = 8
_OF_HEAD = np.array([(1 << 64) - (1 << 8 * (_HEAD - kept)) for kept in range(_HEAD + 1)], dtype=np.uint64)
"""By how many bytes a text has: those bits of a number that they fill."""


def order_of(texts: pa.StringArray) -> NDArray[np.int64]:
    """The order of texts, none of them null, by their bytes; equal ones stand as they came.

    The eight bytes after the beginning that all have in common are a number, and numbers sort in a tenth of the time; only
    texts that are alike in these are held against each other.
    """
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    lengths, data = bytes_of(texts)
    ends = pc.min_max(texts)
    pairs = zip(ends["min"].as_py().encode(), ends["max"].as_py().encode(), strict=False)
    shared = next((place for place, (low, high) in enumerate(pairs) if low != high), int(lengths.min()))
    padded = np.append(np.frombuffer(data, dtype=np.uint8), np.zeros(_HEAD, dtype=np.uint8))
    starts = np.cumsum(lengths, dtype=np.int64) - lengths + shared
    heads = np.lib.stride_tricks.sliding_window_view(padded, _HEAD)[starts].view(">u8").ravel()
    heads = heads.astype(np.uint64) & _OF_HEAD[np.minimum(lengths - shared, _HEAD)]
    order = np.argsort(heads)
    alike = np.diff(heads[order]) == 0
    tied = np.append(alike, False) | np.append(False, alike)
    if tied.any():
        rows = np.sort(order[tied])
        order[tied] = rows[pc.array_sort_indices(texts.take(pa.array(rows)))]
    return order


def bytes_of(column: pa.StringArray) -> tuple[NDArray[np.int32], memoryview]:
    """The length of every text in bytes, −1 for null, and all their bytes one after another."""
    texts = column.fill_null("") if column.null_count else column
    offsets = np.frombuffer(texts.buffers()[1], dtype="<i4")[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(offsets)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    data = texts.buffers()[2]
    return lengths, memoryview(b"" if data is None else data)[offsets[0] : offsets[-1]]
