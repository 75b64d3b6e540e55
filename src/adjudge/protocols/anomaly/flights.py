"""Flights from CSV or Parquet: one row a time step, grouped by flight in the order of their time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Flight:
    """One flight: its times in seconds and its columns, row by row as in the file."""

    id: str
    time: Floats
    columns: dict[str, Floats]
    condition: str | None = None
    """What `--shift-column` says of the flight."""

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.time.size)

    def matrix(self, names: Sequence[str]) -> Floats:
        """The named columns side by side, one row a time step."""
        return np.column_stack([self.columns[name] for name in names]) if names else np.zeros((self.n, 0))

    def digest(self) -> str:
        """SHA-256 over names, times and values, to show that rows were left as they were."""
        total = hashlib.sha256()
        for name in ("", *sorted(self.columns)):
            values = self.time if name == "" else self.columns[name]
            total.update(f"{name}:{values.size};".encode())
            total.update(np.ascontiguousarray(values + 0.0, dtype="<f8").tobytes())
        return total.hexdigest()


@dataclass(frozen=True)
class Columns:
    """The columns that are no features, by their names in the file."""

    flight: str = "flight"
    time: str = "t"
    label: str = "label"
    target: str | None = None
    shift: str | None = None

    def special(self) -> frozenset[str]:
        """Names of columns that are no features."""
        return frozenset(name for name in (self.flight, self.time, self.label, self.target, self.shift) if name)


def normal_id(value: Any) -> str:
    """A flight id as text: 1, 1.0, "1" and " 1 " are the same flight."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def read_table(path: Path, *, flight: str | None = None) -> pa.Table:
    """One file, or all files of a folder one after the other; a folder's files may leave out the flight column."""
    if path.is_dir():
        files = sorted(item for item in path.iterdir() if item.suffix in {".csv", ".parquet", ".pq"})
        if not files:
            raise InputError("the folder holds no .csv or .parquet file", file=str(path))
        tables = [_with_flight(read_table(item), item, flight) for item in files]
        try:
            return pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowInvalid as error:
            raise InputError(f"the files of the folder do not have the same columns: {error}", file=str(path)) from None
    if not path.is_file():
        raise InputError("there is no such file", file=str(path))
    try:
        with path.open("rb") as stream:
            parquet = stream.read(4) == b"PAR1"
        if parquet:
            import pyarrow.parquet as pq

            words = [field.name for field in pq.read_schema(path) if pa.types.is_string(field.type)]
            return pq.read_table(path, read_dictionary=words)
        from pyarrow import csv

        return csv.read_csv(path)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise InputError(f"is neither readable CSV nor Parquet: {error}", file=str(path)) from None


def read_flights(path: Path, columns: Columns) -> list[Flight]:
    """The flights of a file or folder by id; every column beside flight and time must hold numbers."""
    table = read_table(path, flight=columns.flight)
    for name in (columns.flight, columns.time):
        if name not in table.column_names:
            raise InputError(
                f"has no column {name!r} (it has {', '.join(table.column_names)}).",
                file=str(path),
                hint="--flight-column and --time-column name them.",
            )
    if table.num_rows == 0:
        raise InputError("has no rows", file=str(path))
    names, code = flight_codes(table.column(columns.flight))
    time = seconds(table.column(columns.time), columns.time, path)
    values = {
        name: numbers(table.column(name), name, path)
        for name in table.column_names
        if name not in {columns.flight, columns.time, columns.shift}
    }
    conditions = _conditions(table, columns, path)
    order = np.argsort(code, kind="stable")
    edges = np.searchsorted(code[order], np.arange(len(names) + 1))
    flights = []
    for index, name in enumerate(names):
        rows = order[edges[index] : edges[index + 1]]
        own = sorted({conditions[row] for row in rows.tolist()}) if conditions else [None]
        if len(own) > 1:
            raise InputError(mixed_condition(name, str(columns.shift)), file=str(path))
        flights.append(Flight(name, time[rows], {key: column[rows] for key, column in values.items()}, own[0]))
    return sorted(flights, key=lambda item: item.id)


def _conditions(table: pa.Table, columns: Columns, path: Path) -> list[str]:
    """The condition of each row as text; none where no column is named."""
    if columns.shift is None:
        return []
    if columns.shift not in table.column_names:
        raise InputError(
            f"has no column {columns.shift!r} for --shift-column (it has {', '.join(table.column_names)})",
            file=str(path),
        )
    return [normal_id(value) for value in table.column(columns.shift).to_pylist()]


def mixed_condition(flight: str, column: str) -> str:
    """What is wrong with a flight under two conditions."""
    return f"flight {flight} has more than one value of {column!r}; a condition holds for a whole flight"


def flight_codes(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct normal ids and, for each row, which it is."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.combine_chunks()
    raw = [normal_id(value) for value in whole.dictionary.to_pylist()]
    if whole.null_count:
        raise InputError(f"{whole.null_count} rows have no flight id")
    names = sorted(set(raw))
    where = {name: index for index, name in enumerate(names)}
    translate = np.array([where[name] for name in raw], dtype=np.int32)
    return names, translate[whole.indices.to_numpy(zero_copy_only=False)]


def seconds(column: pa.ChunkedArray, name: str, path: Path) -> Floats:
    """A time column in seconds: numbers as they are, timestamps (also as text) since 1970."""
    try:
        if pa.types.is_dictionary(column.type):
            column = pc.cast(column, column.type.value_type)
        if pa.types.is_string(column.type):
            column = pc.cast(column, pa.timestamp("us"))
        if pa.types.is_timestamp(column.type):
            stamps = pc.cast(pc.cast(column, pa.timestamp("us")), pa.int64())
            return np.asarray(stamps.to_numpy(), dtype=np.float64) / 1e6
        return numbers(column, name, path)
    except pa.ArrowInvalid:
        raise InputError(
            f"column {name!r} holds text that is no time (expected seconds or ISO timestamps)", file=str(path)
        ) from None


def numbers(column: pa.ChunkedArray, name: str, path: Path) -> Floats:
    """A column as float64, null as NaN; text is an error that names the column."""
    try:
        return np.asarray(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"column {name!r} is {column.type}, expected numbers", file=str(path)) from None


def _with_flight(table: pa.Table, path: Path, flight: str | None) -> pa.Table:
    if flight is None or flight in table.column_names:
        return table
    return table.append_column(flight, pa.array([path.stem] * table.num_rows))
