"""Tools of a forger: files of a run changed in place, and every digest made to fit again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.provenance.canonical import file_digest, pretty


class Inapplicable(Exception):
    """The run has nothing that could be changed in this way."""


def fit(run: Path) -> None:
    """What a careful forger does last: the manifest lists the files as they are now."""
    manifest = json.loads((run / "manifest.json").read_text())
    listed = [entry for entry in manifest["files"] if (run / entry["path"]).is_file()]
    for entry in listed:
        entry |= {"bytes": (run / entry["path"]).stat().st_size, "sha256": file_digest(run / entry["path"])}
    manifest["files"] = listed
    (run / "manifest.json").write_bytes(pretty(manifest))


def edit(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """A change of one JSON file."""

    def apply(run: Path) -> None:
        path = run / name
        if not path.is_file():
            raise Inapplicable
        value = json.loads(path.read_text())
        before = json.dumps(value)
        try:
            again = change(value)
        except (StopIteration, LookupError):
            raise Inapplicable from None
        value = value if again is None else again
        if json.dumps(value) == before:
            raise Inapplicable
        path.write_bytes(pretty(value))

    return apply


def first_part(run: Path, folder: str) -> Path:
    """The first partition of a table."""
    return min((run / folder).glob("part-*.parquet"))


def edit_table(
    name: str, change: Callable[[list[dict[str, Any]]], Any], schema: Callable[[pa.Schema], pa.Schema] | None = None
) -> Callable[[Path], None]:
    """A change of the rows of the first batch of a table; other batches stay."""

    def apply(run: Path) -> None:
        path = first_part(run, name) if not name.endswith(".parquet") else run / name
        file = pq.ParquetFile(path)
        groups = [file.read_row_group(place) for place in range(file.num_row_groups)]
        rows = groups[0].to_pylist()
        if not rows:
            raise Inapplicable
        before = repr(rows)
        try:
            again = change(rows)
        except (StopIteration, LookupError):
            raise Inapplicable from None
        rows = rows if again is None else again
        columns = groups[0].schema if schema is None else schema(groups[0].schema)
        if repr(rows) == before and columns == groups[0].schema:
            raise Inapplicable
        groups[0] = pa.Table.from_pylist(rows, schema=columns)
        with pq.ParquetWriter(path, columns) as writer:
            for group in groups:
                table = group if group.schema == columns else group.select(columns.names).cast(columns)
                writer.write_table(table, row_group_size=max(1, group.num_rows))

    return apply


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + 0.25
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1, *value[1:]]) if value else b"x"
    if isinstance(value, list):
        return [other(value[0]), *value[1:]] if value else value
    if isinstance(value, dict):
        key = next((key for key in value if other(value[key]) != value[key]), None)
        return value if key is None else {**value, key: other(value[key])}
    return value


def some(rows: list[dict[str, Any]], name: str, wanted: Callable[[Any], bool] = lambda value: value is not None) -> Any:
    """The first row whose value is wanted."""
    for row in rows:
        if name in row and wanted(row[name]):
            return row
    raise Inapplicable
