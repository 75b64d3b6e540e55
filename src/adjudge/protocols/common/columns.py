"""Columns of samples.parquet: words as codes in memory and dictionaries in Arrow, numbers with NaN for null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

WORD = pa.dictionary(pa.int32(), pa.string())
"""The type of a column of words."""


def coded(values: NDArray[Any], words: Sequence[str], width: type[np.signedinteger[Any]] = np.int8) -> pa.Array:
    """Codes as a column of words; a negative code is null."""
    absent = values < 0
    indices = pa.array(values.astype(width), mask=absent if absent.any() else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(words), pa.string()))


def codes(samples: pa.Table, name: str, words: Sequence[str]) -> NDArray[np.int8]:
    """A column of words as codes; null is −1."""
    column = samples.column(name).combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    where = {word: code for code, word in enumerate(words)}
    translate = np.array([where.get(word, -1) for word in column.dictionary.to_pylist()] + [-1], dtype=np.int8)
    places: NDArray[np.int8] = translate[column.indices.fill_null(len(translate) - 1).to_numpy()]
    return places


def floats(samples: pa.Table, name: str) -> NDArray[np.float64]:
    """A column of numbers, NaN for null."""
    return np.asarray(samples.column(name).to_numpy(), dtype=float)
