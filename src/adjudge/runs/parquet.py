"""A Parquet file from columns that are encoded already: the frame of pages and footer around them.

Arrow's writer looks at every value of every column. Most columns of evidence are runs of one value, known as such
before a value is looked at, so their pages are a few bytes and cost nothing; this module puts such pages into a file.
Format: https://parquet.apache.org/docs/file-format/ (data pages of version 1, metadata in Thrift's compact protocol).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from adjudge.runs.thrift import Struct, Value, binary, byte, integer, long, sequence, short, struct

MAGIC = b"PAR1"
_LZ4_RAW = 7
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_CONVERTED = {0: 0, 8: 11, 16: 12, 32: 13}  # UTF8, UINT_8, UINT_16, UINT_32


class Physical(enum.IntEnum):
    """How values are stored."""

    INT32 = 1
    DOUBLE = 5
    BYTE_ARRAY = 6


class Encoding(enum.IntEnum):
    """How the values of a page are written."""

    PLAIN = 0
    RLE = 3
    DELTA_BINARY_PACKED = 5
    RLE_DICTIONARY = 8


@dataclass(frozen=True)
class Field:
    """A column of the file: unsigned integers of some bits, doubles, or (for byte arrays) text."""

    name: str
    physical: Physical
    optional: bool = False
    bits: int = 0


@dataclass(frozen=True)
class Page:
    """The encoded values of some rows of a column, definition levels before them where it is optional."""

    rows: int
    data: bytes


@dataclass(frozen=True)
class Chunk:
    """The pages of one column in a row group; the bounds, where given, let a reader skip the group."""

    encoding: Encoding
    pages: Sequence[Page]
    words: Page | None = None
    bounds: tuple[bytes, bytes] | None = None


class FileWriter:
    """Writes row groups to an open file, and the footer at the end."""

    def __init__(self, stream: BinaryIO, fields: Sequence[Field], metadata: Mapping[bytes, bytes]) -> None:
        self._stream, self._fields, self._metadata = stream, fields, metadata
        self._codec = pa.Codec("lz4_raw")
        self._groups: list[Struct] = []
        self._rows = 0
        self._at = stream.write(MAGIC)

    def add(self, rows: int, chunks: Sequence[Chunk]) -> None:
        """Append a row group, a chunk a field."""
        begin, plain = self._at, 0
        columns = []
        for field, chunk in zip(self._fields, chunks, strict=True):
            column, size = self._column(field, chunk, rows)
            columns.append(column)
            plain += size
        self._groups.append(
            struct(
                [
                    (1, sequence(columns)),
                    (2, long(plain)),
                    (3, long(rows)),
                    (5, long(begin)),
                    (6, long(self._at - begin)),
                    (7, short(len(self._groups))),
                ]
            )
        )
        self._rows += rows

    def close(self) -> None:
        """Write the footer."""
        root = struct([(4, binary(b"schema")), (5, integer(len(self._fields)))])
        pairs = [struct([(1, binary(key)), (2, binary(value))]) for key, value in self._metadata.items()]
        footer = [
            (1, integer(2)),
            (2, sequence([root, *map(_element, self._fields)])),
            (3, long(self._rows)),
            (4, sequence(self._groups)),
            (5, sequence(pairs)),
            (6, binary(b"adjudge")),
            (7, sequence([struct([(1, struct())])] * len(self._fields))),  # bounds are in the order of the type
        ]
        data = struct(footer)
        self._stream.write(data + len(data).to_bytes(4, "little") + MAGIC)

    def _column(self, field: Field, chunk: Chunk, rows: int) -> tuple[Struct, int]:
        """Write one chunk; what the footer says of it, and its size before compression."""
        begin, plain = self._at, 0
        if chunk.words is not None:
            plain += self._page(chunk.words, _DICTIONARY_PAGE, Encoding.PLAIN)
        first = self._at
        for page in chunk.pages:
            plain += self._page(page, _DATA_PAGE, chunk.encoding)
        encodings = {chunk.encoding, Encoding.RLE} | ({Encoding.PLAIN} if chunk.words is not None else set())
        about: list[tuple[int, Value | bool]] = [
            (1, integer(field.physical)),
            (2, sequence([integer(encoding) for encoding in sorted(encodings)])),
            (3, sequence([binary(field.name.encode())])),
            (4, integer(_LZ4_RAW)),
            (5, long(rows)),
            (6, long(plain)),
            (7, long(self._at - begin)),
            (9, long(first)),
        ]
        if chunk.words is not None:
            about.append((11, long(begin)))
        if chunk.bounds is not None:
            low, high = chunk.bounds
            about.append((12, struct([(3, long(0)), (5, binary(high)), (6, binary(low))])))
        return struct([(2, long(begin)), (3, struct(about))]), plain

    def _page(self, page: Page, sort: int, encoding: Encoding) -> int:
        """Write one page; its size before compression."""
        packed = self._codec.compress(page.data, asbytes=True)
        about: list[tuple[int, Value | bool]] = [(1, integer(page.rows)), (2, integer(encoding))]
        if sort == _DATA_PAGE:
            about += [(3, integer(Encoding.RLE)), (4, integer(Encoding.RLE))]
        header = struct(
            [
                (1, integer(sort)),
                (2, integer(len(page.data))),
                (3, integer(len(packed))),
                (7 if sort == _DICTIONARY_PAGE else 5, struct(about)),
            ]
        )
        self._at += self._stream.write(header) + self._stream.write(packed)
        return len(header) + len(page.data)


def _element(field: Field) -> Struct:
    """A column in the schema."""
    about: list[tuple[int, Value | bool]] = [
        (1, integer(field.physical)),
        (3, integer(int(field.optional))),
        (4, binary(field.name.encode())),
    ]
    if field.physical == Physical.BYTE_ARRAY:
        about += [(6, integer(_CONVERTED[0])), (10, struct([(1, struct())]))]
    elif field.bits:
        whole = struct([(1, byte(field.bits)), (2, False)])
        about += [(6, integer(_CONVERTED[field.bits])), (10, struct([(10, whole)]))]
    return struct(about)
