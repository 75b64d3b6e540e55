"""Numbers by sample: typed states as rows, and rows as Arrow lists of one size and back."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.flight.fields import FIELDS

Floats = NDArray[np.float64]


def state_rows(states: Sequence[msgspec.Struct]) -> Floats:
    """A row a state."""
    return _rows(map(msgspec.structs.astuple, states), len(FIELDS))


def array_rows(arrays: Sequence[msgspec.Struct], steps: int) -> Floats:
    """A row an object whose fields are arrays of so many steps; its numbers by step, then field."""
    by_field = _rows(map(chain.from_iterable, map(msgspec.structs.astuple, arrays)), len(FIELDS) * steps)
    return by_field.reshape(-1, len(FIELDS), steps).transpose(0, 2, 1).reshape(-1, steps * len(FIELDS))


def _rows(numbers: Iterable[Iterable[float]], width: int) -> Floats:
    """Rows of so many numbers each, to be written to."""
    pack = struct.Struct(f"{width}d").pack
    return np.frombuffer(bytearray().join([pack(*row) for row in numbers])).reshape(-1, width)


def finite(rows: Floats) -> Floats:
    """The rows with NaN for infinity: the decoder of numeric strings takes "inf" for a number."""
    rows[np.isinf(rows)] = np.nan
    return rows


def as_lists(rows: NDArray[Any], absent: NDArray[np.bool_] | None = None) -> pa.FixedSizeListArray:
    """A list a row; null where it is absent."""
    mask = None if absent is None or not absent.any() else pa.array(absent)
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1], mask=mask)


def from_lists(column: pa.ChunkedArray) -> Floats:
    """A row a list, not to be written to; NaN where the list is null."""
    lists = column.combine_chunks()
    size = lists.type.list_size
    first = lists.offset * size
    rows = lists.values.to_numpy()[first : first + len(lists) * size].reshape(-1, size)
    return np.where(valid(lists)[:, None], rows, np.nan) if lists.null_count else rows


def valid(column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """Where a column is not null."""
    mask: NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return mask
