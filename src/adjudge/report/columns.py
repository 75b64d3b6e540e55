"""Arrow columns as plain data for a page: words as codes, numbers to nine digits, long texts and lists cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

CHARACTERS = 4000
_ITEMS, _DIGITS = 64, 9
_LARGEST = 22  # the highest power of ten that a double holds exactly


def plain(column: pa.ChunkedArray) -> dict[str, Any]:
    """A column as `words` and `codes` (−1 for null), or as `values`."""
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_string(_word_type(kind)):
        return _words(column)
    if pa.types.is_floating(kind):
        return {"values": rounded(_floats(column)).tolist()}  # NaN is written as null
    if pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type) and kind.list_size <= _ITEMS:
        return {"values": _rows(column.combine_chunks(), kind.list_size)}
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return {"values": [None] * len(column)}
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return {"values": column.to_pylist()}
    return {"values": [_short(value) for value in column.to_pylist()]}


def listed(values: Sequence[Any]) -> dict[str, Any]:
    """Plain values as a column: words as codes where there is nothing else."""
    if any(not isinstance(value, str | None) for value in values):
        return {"values": list(values)}
    words: dict[str, int] = {}
    codes = [-1 if value is None else words.setdefault(value, len(words)) for value in values]
    return {"words": list(words), "codes": codes}


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers to nine significant digits, so that they are short as text; what is not finite is NaN."""
    out = np.where(np.isfinite(values), values, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.floor(np.log10(np.abs(out)))
    for exponent in np.unique(exponents[np.isfinite(exponents)]):
        decimals = int(_DIGITS - 1 - exponent)
        if abs(decimals) <= _LARGEST:
            here = exponents == exponent
            out[here] = np.round(out[here], decimals)
    return out


def _word_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _words(column: pa.ChunkedArray) -> dict[str, Any]:
    """Each word once, in the order in which they come; long ones cut."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    words = encoded.dictionary
    cut = pc.binary_join_element_wise(pc.utf8_slice_codeunits(words, 0, CHARACTERS), " …", "")
    words = pc.if_else(pc.greater(pc.utf8_length(words), CHARACTERS), cut, words)
    return {"words": words.to_pylist(), "codes": encoded.indices.fill_null(-1).to_pylist()}


def _floats(column: pa.ChunkedArray | pa.Array) -> NDArray[np.float64]:
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def _rows(lists: pa.Array, width: int) -> list[list[float] | None]:
    """Lists of one length; null stays null."""
    rows = rounded(_floats(lists.fill_null([None] * width).flatten())).reshape(-1, width).tolist()
    return [row if valid else None for row, valid in zip(rows, lists.is_valid().to_pylist(), strict=True)]


def _short(value: Any) -> Any:
    """A value as the page shows it: long texts cut, long lists not at all."""
    if isinstance(value, str):
        return value if len(value) <= CHARACTERS else value[:CHARACTERS] + " …"
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
    if isinstance(value, list):
        return [_short(item) for item in value] if len(value) <= _ITEMS else f"{len(value)} values"
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    return value if isinstance(value, int | bool | None) else str(value)
