"""Matching the rows of roles by id: every id once, sorted, and for each the row that stands for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError

Index = NDArray[np.int64]


def numbered(columns: Sequence[pa.ChunkedArray]) -> tuple[pa.StringArray, Index]:
    """The keys of some columns, sorted, each once; and the place of every row's key among them, column after column."""
    keys = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string()).combine_chunks()
    places = pc.rank(keys, tiebreaker="dense").to_numpy().astype(np.int64) - 1
    first = np.empty(places.max(initial=-1) + 1, dtype=np.int64)
    first[places] = np.arange(len(places))
    return keys.take(pa.array(first)), places


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
