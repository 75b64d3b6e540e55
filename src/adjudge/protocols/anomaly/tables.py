"""Tables from CSV, Parquet or a folder of them, with a note on whatever had to be guessed."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from adjudge.errors import InputError

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
        else:
            table = _read_csv(path, notes)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise InputError(f"is neither readable CSV nor Parquet: {error}", file=str(path)) from None
    twice = [name for name, times in Counter(table.column_names).items() if times > 1]
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


def _read_csv(path: Path, notes: list[str]) -> pa.Table:
    """A CSV file; another delimiter than a comma, and a decimal comma, are told by the first two lines and noted."""
    from pyarrow import csv as arrow_csv

    with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        head, first = stream.readline(1 << 20), stream.readline(1 << 20)
    delimiter = max(",;\t|", key=head.count) if head.strip() else ","
    names = next(csv.reader([head], delimiter=delimiter), [])
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"has the column {twice[0]!r} more than once; rename or remove one", file=str(path))
    convert = arrow_csv.ConvertOptions(strings_can_be_null=False)
    if delimiter != ",":
        decimal = "," if "," in first and "." not in first else "."
        convert = arrow_csv.ConvertOptions(decimal_point=decimal)
        told = f"was read with the delimiter {_DELIMITERS[delimiter]}"
        notes.append(told + (" and a decimal comma" if decimal == "," else ""))
    return arrow_csv.read_csv(path, parse_options=arrow_csv.ParseOptions(delimiter=delimiter), convert_options=convert)
