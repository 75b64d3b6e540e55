"""New files of a run, whole or absent, with size and digest; and its tables, Parquet that grows by a row group a batch."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.errors import OutputError, RunError
from adjudge.provenance.manifest import RunFile

_BUFFER = 1 << 18


class NewFile(io.RawIOBase):
    """A new file; what stood there before is gone."""

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, 0
        self._stream = path.open("wb", buffering=_BUFFER)
        self._hash = hashlib.sha256()

    def writable(self) -> bool:
        """It is there to be written."""
        return True

    def write(self, data: Any) -> int:
        """Append bytes."""
        self._hash.update(data)
        self.size += len(data)
        return self._stream.write(data)

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._stream.close()
        super().close()

    def listed(self, name: str) -> RunFile:
        """How the manifest lists it."""
        return RunFile(path=name, bytes=self.size, sha256=self._hash.hexdigest())


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that appears, or replaces another, when it is whole and on the disk; a device or a pipe is written to."""
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                yield stream
            return
        place = path.resolve()
        part = place.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with part.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in place when it is whole."""
    with whole_file(path) as stream:
        stream.write(data)


COUNTED = ("part", "row", "sample", "line")
"""Columns of numbers that count up within a batch, or nearly: stored as differences, and with their bounds, by which a reader
skips the batches that do not have what it looks for."""

HASHES = ("input_hash",)
"""Columns of hexadecimal digits: with their lengths apart they are packed in half the time."""

_ZSTD_LEVEL = 1  # on flight S1, level 3 saves 5 to 15 % of the bytes and takes a fifth more time


class TableFile:
    """A Parquet file of batches with the same columns; without a `schema` it is made with the first of them."""

    def __init__(self, path: Path, schema: pa.Schema | None = None) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        if schema is not None:
            self._begin(schema)

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append a batch as one row group, be it empty."""
        writer = self._writer or self._begin(batch.schema)
        _check_columns(self._path, writer.schema, batch.schema)
        writer.write(batch, row_group_size=max(1, batch.num_rows))

    def close(self) -> NewFile | None:
        """Finish the file, and return it if there is one."""
        if self._writer is None:
            return None
        writer, self._writer = self._writer, None
        with self._stream:
            writer.close()
        return self._stream

    def abandon(self) -> None:
        """Let go of a file that nobody wants any more, whatever is wrong with it."""
        with suppress(OSError):
            self.close()

    def _begin(self, schema: pa.Schema) -> pq.ParquetWriter:
        self._stream = NewFile(self._path)
        self._writer = pq.ParquetWriter(self._stream, schema, **_settings(schema))
        return self._writer


def _settings(schema: pa.Schema) -> dict[str, Any]:
    """How each column is written: words by dictionary, what counts up as differences, measurements byte by byte.

    The last bytes of measurements are often 0: all first bytes stand together, then all second ones, and so on.
    """
    counted = [field.name for field in schema if field.name in COUNTED and pa.types.is_integer(field.type)]
    hashes = [field.name for field in schema if field.name in HASHES and pa.types.is_string(field.type)]
    measured = [field.name for field in schema if pa.types.is_float64(field.type)]
    packed = [_path(field) for field in schema if not _is_dense(field.type)]
    return {
        "compression": {_path(field): "none" for field in schema} | dict.fromkeys(packed, "zstd"),
        "compression_level": dict.fromkeys(packed, _ZSTD_LEVEL),
        "use_dictionary": [field.name for field in schema if pa.types.is_dictionary(field.type)],
        "column_encoding": dict.fromkeys(counted, "DELTA_BINARY_PACKED")
        | dict.fromkeys(hashes, "DELTA_LENGTH_BYTE_ARRAY")
        | dict.fromkeys(measured, "BYTE_STREAM_SPLIT"),
        "write_statistics": counted,
    }


def _is_dense(kind: pa.DataType) -> bool:
    """Whether values hardly shrink: numbers of a list of fixed size, and the short codes of a small vocabulary."""
    codes = kind.index_type.bit_width if pa.types.is_dictionary(kind) else 32
    return bool(pa.types.is_fixed_size_list(kind) or codes < 32)


def _path(field: pa.Field) -> str:
    """What Parquet calls a column."""
    is_list = pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type)
    return f"{field.name}.list.element" if is_list else field.name


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as one batch whose bytes follow from its values alone: words are numbered as they first appear."""
    return pa.RecordBatch.from_arrays([_one_array(column) for column in table.columns], schema=table.schema)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if not pa.types.is_dictionary(array.type):
        return array
    codes = array.indices
    if len(codes) and not codes.null_count and (codes.to_numpy() == codes[0].as_py()).all():
        first = array.dictionary.take(codes.slice(0, 1))
        return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, codes.type), len(codes)), first)
    numbers = codes.dictionary_encode()
    words = array.dictionary.take(numbers.dictionary)
    return pa.DictionaryArray.from_arrays(numbers.indices.cast(array.type.index_type), words)


@dataclass(frozen=True)
class StoredBatches:
    """Batches in an Arrow file, so that little has to be sent to another process."""

    path: Path

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch], path: Path) -> StoredBatches:
        """Write batches with the same columns, of which there is at least one."""
        ahead = iter(batches)
        first = next(ahead)
        with pa.ipc.new_stream(str(path), first.schema) as stream:
            stream.write_batch(first)
            for batch in ahead:
                _check_columns(path, first.schema, batch.schema)
                stream.write_batch(batch)
        return cls(path)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(self.path)) as file, pa.ipc.open_stream(file) as batches:
            yield from batches


def _check_columns(path: Path, expected: pa.Schema, schema: pa.Schema) -> None:
    if not schema.equals(expected):
        raise RunError(f"two batches of {path.name} differ in their columns:\n{schema}\nand\n{expected}")
