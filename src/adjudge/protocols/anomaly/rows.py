"""Flights and scores as users have them: CSV, Parquet or a folder, one row a time step, read into columns by flight; and splits.json."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.words import TEST, TRAIN, VAL
from adjudge.readers.settings import json_of

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""How many of a unit of time are a second."""
_LONG_S = 7200.0
Codes = NDArray[np.int32]
OVERLAP_BOUND = 0.01
"""The share of a flight's rows from which shared rows are a leak."""


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
        for name, values in [("", self.time), *sorted(self.columns.items())]:
            total.update(f"{name}:{values.size};".encode())
            total.update(np.ascontiguousarray(values + 0.0, dtype="<f8").tobytes())
        return total.hexdigest()


class DataOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How a table of flights is read, and what its columns and rows may be.

    `rename` maps our names to those in the file; `fill` = "forward" repeats the last value where a cell is blank.
    `sensors` says what a column is, `sources` what it was made from, `overlap_bound` is the share of a flight's rows from
    which rows shared with another are a leak.
    """

    flight_column: str = "flight"
    time_column: str = "t"
    time_unit: str | None = None
    label_column: str = "label"
    target_column: str | None = None
    shift_column: str | None = None
    rename: dict[str, str] = {}
    fill: str | None = None
    features: list[str] | None = None
    sources: dict[str, str] = {}
    sensors: dict[str, str] = {}
    imu_only: bool = False
    correlation_threshold: float = 0.9
    overlap_bound: float = OVERLAP_BOUND

    @property
    def placing(self) -> list[str]:
        """The columns that say where a row belongs: its flight, its time and, where there is one, its condition."""
        return [self.flight_column, self.time_column, *([self.shift_column] if self.shift_column else [])]

    @property
    def special(self) -> frozenset[str | None]:
        """Names of columns that are no features."""
        return frozenset([*self.placing, self.label_column, self.target_column])


class Flights(NamedTuple):
    """The flights of a file or folder by id, and what a reader should know of how they were read."""

    flights: list[Flight]
    notes: list[str]


def read_flights(path: Path, options: DataOptions) -> Flights:
    """The flights of a file or folder by id; every column beside flight and time must hold numbers."""
    table, notes = read_table(path, options.rename, flight=options.flight_column)
    for name in options.placing:
        need_column(table, name, path, "--flight-column, --time-column, --shift-column or --column name them.")
    names, code = flight_codes(table.column(options.flight_column), options.flight_column, path)
    time = seconds(table.column(options.time_column), options, path, code, notes)
    wanted = [name for name in table.column_names if name not in options.placing]
    if options.features is not None:
        kept = {*options.features, options.label_column, options.target_column}
        unread = [name for name in wanted if name not in kept]
        notes += [f"columns that no feature list names were not read: {', '.join(unread)}"] if unread else []
        wanted = [name for name in wanted if name in kept]
    values = {name: numbers(table.column(name), name, path) for name in wanted}
    shifts = [] if options.shift_column is None else table.column(options.shift_column).to_pylist()
    conditions = [normal_id(value) for value in shifts]
    order = np.argsort(code, kind="stable")
    rows_of_flights = np.split(order, np.searchsorted(code[order], np.arange(1, len(names))))
    flights, filled = [], 0
    for name, rows in zip(names, rows_of_flights, strict=True):
        flight_conditions = sorted({conditions[row] for row in rows.tolist()}) if conditions else [None]
        if len(flight_conditions) > 1:
            raise InputError(mixed_condition(name, str(options.shift_column)), file=str(path))
        parts = {key: column[rows] for key, column in values.items()}
        if options.fill is not None:
            filled += sum(_fill_forward(part) for key, part in parts.items() if key not in options.special)
        flights.append(Flight(name, time[rows], parts, flight_conditions[0]))
    if options.fill is not None:
        notes.append(f"{filled} blank cells were filled with the value before them (--fill forward)")
    return Flights(sorted(flights, key=lambda item: item.id), notes)


def need_column(table: pa.Table, name: str, path: Path, hint: str) -> None:
    """Refuse a table without a column."""
    if name not in table.column_names:
        raise InputError(f"has no column {name!r} (it has {', '.join(table.column_names)}).", file=str(path), hint=hint)


def normal_id(value: Any) -> str:
    """A flight id as text: 1, 1.0, "1" and " 1 " are the same flight."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def mixed_condition(flight: str, column: str) -> str:
    """What is wrong with a flight under two conditions."""
    return f"flight {flight} has more than one value of {column!r}; a condition holds for a whole flight"


def flight_codes(column: pa.ChunkedArray, name: str, path: Path) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct normal ids and, for each row, which it is."""
    if pa.types.is_binary(column.type):
        column = words_of(column, name, path)
    elif not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.combine_chunks()
    if whole.null_count:
        raise InputError(f"{whole.null_count} rows have no flight id", file=str(path))
    raw = [normal_id(value) for value in whole.dictionary.to_pylist()]
    names = sorted(set(raw))
    where = {name: index for index, name in enumerate(names)}
    translate = np.array([where[name] for name in raw], dtype=np.int32)
    return names, translate[whole.indices.to_numpy(zero_copy_only=False)]


def seconds(column: pa.ChunkedArray, options: DataOptions, path: Path, code: Codes, notes: list[str]) -> Floats:
    """A time column in seconds: numbers in their unit, timestamps (also as text) since 1970.

    Without `time_unit`, whole numbers that rise by 2 to 1000 and would make a flight longer than two hours are taken for
    milliseconds, and a note says so.
    """
    name = options.time_column
    try:
        if pa.types.is_dictionary(column.type):
            column = pc.cast(column, column.type.value_type)
        if pa.types.is_string(column.type):
            column = pc.cast(column, pa.timestamp("us"))
        if pa.types.is_timestamp(column.type):
            stamps = pc.cast(pc.cast(column, pa.timestamp("us")), pa.int64())
            return np.asarray(stamps.to_numpy(), dtype=np.float64) / 1e6
        values = numbers(column, name, path)
    except pa.ArrowInvalid:
        text = f"column {name!r} holds text that is no time (expected seconds or ISO timestamps)"
        raise InputError(text, file=str(path)) from None
    if options.time_unit is not None:
        return values / UNITS[options.time_unit]
    steps = np.diff(values)[np.diff(code) == 0]
    step = float(np.median(steps)) if steps.size else 0.0
    whole = bool((np.mod(values, 1.0) == 0).all())
    span = step * values.size / max(1, int(code.max(initial=0)) + 1)
    if whole and 2 <= step <= UNITS["ms"] and span > _LONG_S:
        told = f"whole numbers in steps of {step:g} (--time-unit s if they are seconds)"
        notes.append(f"{name!r} was taken for milliseconds: {told}")
        return values / UNITS["ms"]
    return values


def numbers(column: pa.ChunkedArray, name: str, path: Path) -> Floats:
    """A column as float64, null as NaN; text is an error that names the column."""
    try:
        return np.asarray(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"column {name!r} is {column.type}, expected numbers.",
            file=str(path),
            hint="`features` in the configuration, or --feature, names the columns to read.",
        ) from None


def labels(column: pa.ChunkedArray, name: str, path: Path) -> NDArray[np.int8]:
    """A column of 0 and 1; anything else is an error that names its row."""
    values = numbers(column, name, path)
    wrong = np.flatnonzero((values != 0) & (values != 1))
    if wrong.size:
        value = values[wrong[0]]
        text = "blank" if np.isnan(value) else f"{value:g}"
        raise InputError(f"{name} is {text}, expected 0 or 1", file=str(path), line=int(wrong[0]) + 2)
    return values.astype(np.int8)


def _fill_forward(values: Floats) -> int:
    """Repeat the last value in blank cells, in place; a blank start stays. How many were filled."""
    blank = np.isnan(values)
    values[:] = pc.fill_null_forward(pa.array(values, from_pandas=True)).to_numpy(zero_copy_only=False)
    return int((blank & ~np.isnan(values)).sum())


_ENDINGS = frozenset({".csv", ".tsv", ".txt", ".parquet", ".pq"})
_DELIMITERS = {";": "semicolon", "\t": "tab", "|": "bar"}


def read_table(path: Path, rename: Mapping[str, str], *, flight: str | None = None) -> tuple[pa.Table, list[str]]:
    """One file, or all files of a folder one after the other, and notes; a folder's files may leave out the flight.

    `rename` maps our names to those in the file.
    """
    if path.is_dir():
        table, notes = _read_folder(path, rename, flight)
    elif path.is_file():
        table, notes = _read_file(path, rename)
    else:
        raise InputError("there is no such file", file=str(path))
    if table.num_rows == 0:
        raise InputError("has no rows", file=str(path))
    return table, notes


def _read_folder(folder: Path, rename: Mapping[str, str], flight: str | None) -> tuple[pa.Table, list[str]]:
    every = sorted(item for item in folder.rglob("*") if item.is_file() and not item.name.startswith("."))
    files = [item for item in every if item.suffix.lower() in _ENDINGS]
    if not files:
        raise InputError("the folder and its sub-folders hold no .csv or .parquet file", file=str(folder))
    others = [str(item.relative_to(folder)) for item in every if item not in files]
    notes = [f"{len(others)} files of other kinds were not read: {', '.join(others[:3])}"] if others else []
    tables = []
    for file in files:
        table, more = _read_file(file, rename)
        notes += [f"{file.relative_to(folder)}: {text}" for text in more]
        if flight is not None and flight not in table.column_names:
            twins = [str(other.relative_to(folder)) for other in files if other.stem == file.stem]
            if len(twins) > 1:
                text = f"{' and '.join(twins[:2])} would both be flight {file.stem!r}; add a column {flight!r}"
                raise InputError(text, file=str(folder))
            table = table.append_column(flight, pa.array([file.stem] * table.num_rows))
        tables.append(table)
    try:
        return pa.concat_tables(tables, promote_options="permissive"), notes
    except pa.ArrowInvalid as error:
        raise InputError(f"the files of the folder do not have the same columns: {error}", file=str(folder)) from None


def _read_file(path: Path, rename: Mapping[str, str]) -> tuple[pa.Table, list[str]]:
    notes: list[str] = []
    try:
        with path.open("rb") as stream:
            parquet = stream.read(4) == b"PAR1"
        if parquet:
            import pyarrow.parquet as pq

            words = [field.name for field in pq.read_schema(path) if pa.types.is_string(field.type)]
            table = pq.read_table(path, read_dictionary=words)
            table.validate(full=True)  # a damaged page may name words that its dictionary does not have
        else:
            table = _read_csv(path, notes)
        names = table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"is neither readable CSV nor Parquet: {error}", file=str(path)) from None
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"has the column {twice[0]!r} more than once; rename or remove one", file=str(path))
    for ours, theirs in rename.items():
        if theirs not in table.column_names:
            listed = ", ".join(table.column_names)
            raise InputError(f"--column {ours}={theirs}: has no column {theirs!r} (it has {listed})", file=str(path))
        if ours in table.column_names and ours != theirs:
            raise InputError(f"--column {ours}={theirs}: has a column {ours!r} already", file=str(path))
    back = {theirs: ours for ours, theirs in rename.items()}
    return table.rename_columns([back.get(name, name) for name in table.column_names]), notes


def words_of(column: pa.ChunkedArray, name: str, path: Path) -> pa.ChunkedArray:
    """A column as dictionary-encoded words; bytes are an error that names the column."""
    try:
        return column if pa.types.is_dictionary(column.type) else pc.cast(column, pa.string()).dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"column {name!r} is {column.type}, expected words", file=str(path)) from None


def _read_csv(path: Path, notes: list[str]) -> pa.Table:
    """A CSV file; another delimiter than a comma, and a decimal comma, are told by the first two lines and noted."""
    from pyarrow import csv as arrow_csv

    with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        head, first = stream.readline(1 << 20), stream.readline(1 << 20)
    delimiter = max(",;\t|", key=head.count) if head.strip() else ","
    convert = arrow_csv.ConvertOptions(strings_can_be_null=False)
    if delimiter != ",":
        decimal = "," if "," in first and "." not in first else "."
        convert = arrow_csv.ConvertOptions(decimal_point=decimal)
        told = f"was read with the delimiter {_DELIMITERS[delimiter]}"
        notes.append(told + (" and a decimal comma" if decimal == "," else ""))
    table = arrow_csv.read_csv(path, parse_options=arrow_csv.ParseOptions(delimiter=delimiter), convert_options=convert)
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_binary(field.type):
            cells = enumerate(column.fill_null(b"").to_pylist(), start=2)
            line = next(line for line, cell in cells if cell.decode(errors="replace").encode() != cell)
            text, hint = f"column {field.name!r} holds text that is not UTF-8.", "Save the file as UTF-8."
            raise InputError(text, file=str(path), line=line, hint=hint)
    return table


SPLITS = (TRAIN, VAL, TEST)


@dataclass(frozen=True)
class Splits:
    """Normal flight ids by split, as listed; `notes` says which aliases were accepted."""

    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def of(self, split: str) -> tuple[str, ...]:
        """The flights of one split."""
        return {TRAIN: self.train, VAL: self.val, TEST: self.test}[split]

    def content(self) -> dict[str, list[str]]:
        """As it stands in the run, under the documented keys."""
        return {f"{split}_flights": list(self.of(split)) for split in SPLITS}


def read_splits(path: Path) -> Splits:
    """The splits of a file; a missing or unknown key is an error that says which."""
    return parse_splits(json_of(path), str(path))


def parse_splits(data: object, where: str) -> Splits:
    """Splits from decoded JSON."""
    if not isinstance(data, dict):
        expected = "an object with train_flights, val_flights, test_flights"
        raise InputError(f"expected {expected}, found {type(data).__name__}", file=where)
    ids_of_splits: list[tuple[str, ...]] = []
    notes = []
    for split in SPLITS:
        keys = [key for key in (f"{split}_flights", split, f"{split}_ids") if key in data]
        if not keys:
            text = f"has no key '{split}_flights' (it has {', '.join(map(str, data)) or 'none'})."
            raise InputError(text, file=where, hint=f"'{split}' and '{split}_ids' are accepted too.")
        if len(keys) > 1:
            raise InputError(f"has both {keys[0]!r} and {keys[1]!r}; keep one", file=where)
        if keys[0] != f"{split}_flights":
            notes.append(f"{keys[0]!r} was read as '{split}_flights'")
        ids = data[keys[0]]
        if not isinstance(ids, list) or not all(isinstance(item, str | int | float) for item in ids):
            raise InputError(f"{keys[0]!r} is no list of flight ids", file=where)
        ids_of_splits.append(tuple(normal_id(item) for item in ids))
    train, val, test = ids_of_splits
    return Splits(train, val, test, tuple(notes))
