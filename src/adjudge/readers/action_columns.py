"""Many action texts at once: the plain forms by a compiled loop, into columns, and the places of all others.

For the texts it takes, the columns hold what `action_dsl.parse` gives; the rest is left to `parse`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.loops import available
from adjudge.readers.action_dsl import ALONE, POINTING, WITH_TEXT
from adjudge.readers.scan import copied

COMMANDS = ("key", "scroll")
NAMES = (*POINTING, *WITH_TEXT, *COMMANDS, *ALONE)
_SORTS = np.repeat(np.arange(4, dtype=np.int32), [len(POINTING), len(WITH_TEXT), len(COMMANDS), len(ALONE)])
_BYTES = np.frombuffer("".join(NAMES).encode(), dtype=np.uint8)
_PLACES = np.cumsum([0, *(len(name) for name in NAMES)]).astype(np.int32)


@dataclass(frozen=True)
class PlainActions:
    """`name` is a place in NAMES, −1 for a text that is no plain action; a coordinate that is not there is NaN."""

    name: NDArray[np.int8]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    argument: pa.StringArray
    element: pa.StringArray


def plain_actions(texts: pa.StringArray, *, fast: bool) -> PlainActions:
    """The plain actions among the texts; none where the compiled loop is not to be had."""
    n = len(texts)
    name = np.full(n, -1, dtype=np.int8)
    x, y = np.full(n, np.nan), np.full(n, np.nan)
    if not n or not fast or not available():
        return PlainActions(name, x, y, pa.nulls(n, pa.string()), pa.nulls(n, pa.string()))
    from adjudge.readers import _action_kernels as kernels

    _, offsets, buffer = texts.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + n + 1]
    # One byte in front, so that a place is never 0.
    data = np.frombuffer(b" " + (b"" if buffer is None else memoryview(buffer)[: places[-1]]), dtype=np.uint8)
    spans = np.zeros((4, n), dtype=np.int32)
    kernels.read_plain(data, places + np.int32(1), _BYTES, _PLACES, _SORTS, name, x, y, spans)
    return PlainActions(name, x, y, copied(data, spans[2], spans[3]), copied(data, spans[0], spans[1]))
