"""A table that is written batch by batch, each of them a row group; batches may be made in other processes."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from adjudge.errors import RunError
from adjudge.runs.columns import encoded
from adjudge.runs.new_file import NewFile
from adjudge.runs.parquet import FileWriter, Group, Span


@dataclass(frozen=True)
class Batch:
    """Rows as they will stand in a file, and the columns they have."""

    schema: pa.Schema
    group: Group

    @classmethod
    def of(cls, table: pa.Table, bounded: Collection[str] = ()) -> Batch:
        """Some rows, with the bounds of some columns."""
        return cls(table.schema, encoded(table, bounded))


def stored(batches: Iterable[Batch], path: Path) -> list[Batch]:
    """The same batches with their bytes in a file, so that little has to be sent to another process.

    What stands in the file is overwritten, not cut off: its pages are used again.
    """
    found = []
    with open(path, "wb", opener=_overwriting) as stream:
        for batch in batches:
            span = Span(path, stream.tell(), batch.group.size)
            batch.group.write(stream)
            found.append(replace(batch, group=replace(batch.group, pieces=(span,))))
    return found


def _overwriting(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_TRUNC, 0o666)


class TableFile:
    """A file of batches with the same columns; it is made with the first of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: tuple[FileWriter, NewFile, pa.Schema] | None = None

    def add(self, batch: Batch) -> None:
        """Append a batch."""
        if self._open is None:
            stream = NewFile(self._path)
            self._open = FileWriter(stream, batch.schema), stream, batch.schema
        file, _, schema = self._open
        if not batch.schema.equals(schema):
            raise RunError(f"two batches of {self._path.name} differ in their columns:\n{batch.schema}\nand\n{schema}")
        file.add(batch.group)

    def close(self) -> NewFile | None:
        """Finish the file, and return it if there is one."""
        if self._open is None:
            return None
        file, stream, _ = self._open
        self._open = None
        with stream:
            file.close()
        return stream

    def abandon(self) -> None:
        """Leave half a file."""
        if self._open is not None:
            self._open[1].close()
            self._open = None
