"""Columns of decoded records and of samples.parquet, words as codes, numbers with NaN for null; and roles matched by id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.provenance.canonical import order_of

Fields = dict[str, tuple[Any, ...]]
WORD = pa.dictionary(pa.int32(), pa.string())
"""The type of a column of words."""


def fields_of(rows: Sequence[msgspec.Struct], kind: type[msgspec.Struct]) -> Fields:
    """The fields of records, each as a column."""
    columns = list(zip(*map(astuple, rows), strict=True))
    return dict(zip(kind.__struct_fields__, columns or [()] * len(kind.__struct_fields__), strict=True))


def cut(texts: pa.StringArray, limit: int, ending: str = "") -> pa.StringArray:
    """Texts of at most `limit` characters, with `ending` in place of the last where more were cut off."""
    longest = pc.max(pc.binary_length(texts)).as_py()
    if longest is None or longest <= limit:
        return texts
    shorter = pc.utf8_slice_codeunits(texts, 0, limit - len(ending))
    long = pc.greater(pc.utf8_length(texts), limit)
    return pc.if_else(long, pc.binary_join_element_wise(shorter, ending, ""), texts)


def coded(values: NDArray[Any], words: Sequence[str], width: type[np.signedinteger[Any]] = np.int8) -> pa.Array:
    """Codes as a column of words; a negative code is null."""
    absent = values < 0
    indices = pa.array(values.astype(width), mask=absent if absent.any() else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(words), pa.string()))


def few(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of what few rows have; one of nulls alone takes no room."""
    return pa.nulls(len(values)) if values.count(None) == len(values) else pa.array(values, kind)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece; nothing is copied where it is so already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


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


def distinct_words(samples: pa.Table, name: str) -> tuple[list[Any], NDArray[np.int64]]:
    """The words of a column that occur (None last), and the code of each row."""
    column = samples.column(name).combine_chunks()
    words = column.dictionary.to_pylist()
    used, dense = np.unique(_indices(column), return_inverse=True)
    return [words[i] if i < len(words) else None for i in used], dense.astype(np.int64)


def places_in(samples: pa.Table, name: str, words: Sequence[str]) -> NDArray[np.int64]:
    """A column of words as indices into `words`; what is not there, and null, is one past the last."""
    column = samples.column(name).combine_chunks()
    where = {word: index for index, word in enumerate(words)}
    translate = [where.get(word, len(words)) for word in column.dictionary.to_pylist()]
    return np.array([*translate, len(words)], dtype=np.int64)[_indices(column)]


def holds(samples: pa.Table, name: str, word: str) -> NDArray[np.bool_]:
    """Which rows of a column of words hold this one."""
    return np.equal(places_in(samples, name, (word,)), 0)


def known(samples: pa.Table, name: str) -> NDArray[np.bool_]:
    """Which rows of a column are not null."""
    column = samples.column(name)
    if column.null_count == len(column):
        return np.zeros(len(column), dtype=bool)
    mask: NDArray[np.bool_] = column.is_valid().to_numpy()
    return mask


def _indices(column: pa.DictionaryArray) -> NDArray[np.int64]:
    """Codes of a dictionary column; null is one past the last word."""
    indices = column.indices
    codes: NDArray[np.int64] = (indices.fill_null(len(column.dictionary)) if indices.null_count else indices).to_numpy()
    return codes


Index = NDArray[np.int64]


def numbered(columns: Sequence[pa.ChunkedArray]) -> tuple[pa.StringArray, Index]:
    """The keys of some columns, sorted, each once; and the place of every row's key among them, column after column."""
    keys = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string()).combine_chunks()
    coded = keys.dictionary_encode()
    order = order_of(coded.dictionary)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return coded.dictionary.take(pa.array(order)), places[coded.indices.to_numpy()]


def rows_at(places: Index, count: int, table: pa.Table, files: Sequence[str]) -> Index:
    """The row of the table that stands at each of so many places, −1 for none; two at one place are refused."""
    crowded = np.flatnonzero(np.bincount(places, minlength=count) > 1)
    if crowded.size:
        _refuse_twice(table.take(pa.array(np.flatnonzero(places == crowded[0]))), files)
    rows = np.full(count, -1, dtype=np.int64)
    rows[places] = np.arange(len(places))
    return rows


def taken(table: pa.Table, rows: Index) -> pa.Table:
    """Rows of a table, null for −1."""
    absent = rows < 0
    return table.take(pa.array(rows, mask=absent if absent.any() else None)).combine_chunks()


def texts_by_row(column: pa.ChunkedArray) -> dict[int, str]:
    """The texts of a column that has few, by row."""
    if column.null_count == len(column):
        return {}
    rows = np.flatnonzero(pc.is_valid(column).to_numpy()).tolist()
    return dict(zip(rows, column.drop_null().to_pylist(), strict=True))


def _refuse_twice(table: pa.Table, files: Sequence[str]) -> None:
    """Say where the first two of some rows with the same id (and model) stand."""
    columns = [name for name in ("key", "group", "file", "line") if name in table.column_names]
    rows = table.select(columns).to_pylist()
    first, second, *_ = sorted(rows, key=lambda row: (row["file"], row["line"]))
    of_model = f"of model {first['group']!r} stands here" if "group" in first else "stands in the reference"
    raise InputError(
        f"id {first['key']!r} {of_model} a second time; first at {files[first['file']]}:{first['line']}."
        + (" Each model answers a sample once." if "group" in first else ""),
        file=files[second["file"]],
        line=second["line"],
    )
