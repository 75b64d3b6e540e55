"""Data in memory as input: a list of dicts, or anything that gives an Arrow C stream, written to a file that is read like any other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from adjudge.errors import InputError


def is_data(value: object) -> bool:
    """Whether a value is a table: an Arrow table, a pandas or Polars frame, or a list of dicts."""
    if hasattr(value, "__arrow_c_stream__"):
        return True
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(row, Mapping) for row in value)


def write(value: Any, folder: Path, name: str) -> Path:
    """The rows in a file of a folder, as Parquet or JSON Lines."""
    if hasattr(value, "__arrow_c_stream__"):
        return _write_table(value, folder / f"{name}.parquet", name)
    path = folder / f"{name}.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for number, row in enumerate(value, 1):
            try:
                stream.write(json.dumps(dict(row), ensure_ascii=False, default=_plain) + "\n")
            except (TypeError, ValueError) as error:
                raise InputError(f"row {number} of {name} cannot be written as JSON: {error}") from None
    return path


def _write_table(value: Any, path: Path, name: str) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pa.RecordBatchReader.from_stream(value) as reader, pq.ParquetWriter(path, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    except pa.ArrowException as error:
        raise InputError(f"{name} cannot be taken as a table: {error}") from None
    return path


def _plain(value: Any) -> Any:
    """A value that JSON does not have: a NumPy number as a number, a time as text."""
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r:.60} is a {type(value).__name__}, which is no JSON value")
