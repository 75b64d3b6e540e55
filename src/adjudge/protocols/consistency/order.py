"""Sorting keys: by eight bytes as one number, where these tell all keys apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_BYTES = 8
_LONGEST = 64  # of what all keys may begin with
_FIRST = np.array([(1 << 64) - (1 << 8 * (_BYTES - size)) for size in range(_BYTES + 1)], dtype=np.uint64)
"""The first 0 to 8 bytes of a number."""


def key_order(keys: pa.StringArray) -> tuple[pa.Array, bool]:
    """The order of the keys, byte by byte as Arrow sorts them; and whether it is certain that no key stands twice."""
    numbers = _numbers(keys)
    order = np.argsort(numbers)
    ranked = numbers[order]
    if len(keys) and (ranked[1:] == ranked[:-1]).any():
        return pc.sort_indices(keys), False
    return pa.array(order.astype(np.uint64)), True


def _numbers(keys: pa.StringArray) -> NDArray[np.uint64]:
    """Eight bytes of each key, those behind what all begin with; as if zeros stood behind its end."""
    _, places, data = keys.buffers()
    edges: Any = np.frombuffer(places, dtype=np.int32)[keys.offset : keys.offset + len(keys) + 1]
    text = np.frombuffer(data or b"\0", dtype=np.uint8)
    starts, ends = edges[:-1].astype(np.intp), edges[1:].astype(np.intp)
    shared = 0
    shortest = int((ends - starts).min(initial=_LONGEST))
    while shared < shortest and (text[starts + shared] == text[starts[:1] + shared]).all():
        shared += 1
    padded = np.concatenate([text, np.zeros(_BYTES, dtype=np.uint8)])
    eight = np.lib.stride_tricks.sliding_window_view(padded, _BYTES)[starts + shared]
    numbers: NDArray[np.uint64] = eight.view(">u8").ravel().astype(np.uint64)
    numbers &= _FIRST[np.minimum(ends - starts - shared, _BYTES)]
    return numbers
