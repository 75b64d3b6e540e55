"""A Parquet file from columns that are encoded already: the frame of pages and footer around them.

Arrow's writer looks at every value of every column. Most columns of a run are runs of one value or lie in memory as the
file has them, so their pages cost nothing; this module puts such pages into row groups, and row groups, whoever made
them, into a file. Format: https://parquet.apache.org/docs/file-format/ (data pages of version 1, metadata in Thrift's
compact protocol).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.runs.thrift import Struct, Value, binary, fields_of, integer, long, sequence, short, struct

MAGIC = b"PAR1"
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PROBE = 1 << 15  # bytes that show whether the rest gets smaller
_AT_ONCE = 1 << 20  # bytes that are copied
_LZ4 = pa.Codec("lz4_raw")
_NOTHING = memoryview(b"")


Data = bytes | memoryview


class Sink(Protocol):
    """Where bytes go."""

    def write(self, data: Data, /) -> int:
        """Append some; how many."""


class Physical(enum.IntEnum):
    """How values are stored."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


class Encoding(enum.IntEnum):
    """How the values of a page are written."""

    PLAIN = 0
    RLE = 3
    DELTA_BINARY_PACKED = 5
    DELTA_LENGTH_BYTE_ARRAY = 6
    RLE_DICTIONARY = 8


class Codec(enum.IntEnum):
    """How the pages of a column are compressed."""

    UNCOMPRESSED = 0
    LZ4 = 7


@dataclass(frozen=True)
class Page:
    """So many encoded values; repetition and definition levels before them where the column has any.

    `bulk` comes behind `data`: values that lie in memory as the file has them, and need no copy.
    """

    values: int
    data: bytes
    bulk: memoryview = _NOTHING

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.data) + len(self.bulk)


@dataclass(frozen=True)
class Chunk:
    """The pages of one column in a row group; the bounds, where given, let a reader skip the group."""

    path: tuple[str, ...]
    physical: Physical
    encoding: Encoding
    pages: Sequence[Page]
    words: Page | None = None
    bounds: tuple[bytes, bytes] | None = None


@dataclass(frozen=True)
class Column:
    """What the footer says of a column in a row group; places count from the beginning of the group."""

    physical: int
    encodings: tuple[int, ...]
    path: tuple[str, ...]
    codec: int
    values: int
    plain: int
    packed: int
    data_at: int
    words_at: int | None = None
    bounds: tuple[bytes, bytes] | None = None


@dataclass(frozen=True)
class Span:
    """Bytes that lie in a file."""

    path: Path
    start: int
    size: int

    def __len__(self) -> int:
        return self.size

    def copy(self, stream: Sink) -> None:
        """Append them to another file."""
        with self.path.open("rb") as own:
            own.seek(self.start)
            left = self.size
            while left:
                left -= stream.write(own.read(min(left, _AT_ONCE)))


@dataclass(frozen=True)
class Group:
    """A row group as it stands in a file, wherever in it: in pieces one after another."""

    rows: int
    columns: tuple[Column, ...]
    pieces: Sequence[Data | Span]

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return sum(map(len, self.pieces))

    def write(self, stream: Sink) -> None:
        """Append it to a file."""
        for piece in self.pieces:
            if isinstance(piece, Span):
                piece.copy(stream)
            else:
                stream.write(piece)


def group_of(rows: int, parts: Iterable[Chunk | pa.Table]) -> Group:
    """A row group from its columns; a table of one column is left to Arrow's writer."""
    out = _Out([])
    columns: list[Column] = []
    for part in parts:
        columns += [_packed(part, out)] if isinstance(part, Chunk) else _by_arrow(part, out)
    return Group(rows, tuple(columns), out.pieces)


@dataclass
class _Out:
    """Pieces, and how many bytes they are."""

    pieces: list[Data | Span]
    size: int = 0

    def add(self, data: Data) -> None:
        self.pieces.append(data)
        self.size += len(data)


def _packed(chunk: Chunk, out: _Out) -> Column:
    begin, plain = out.size, 0
    codec = Codec.UNCOMPRESSED  # doubles seldom get much smaller, and packing them takes longer than writing them
    if chunk.physical != Physical.DOUBLE and any(map(_shrinks, chunk.pages)):
        codec = Codec.LZ4
    if chunk.words is not None:
        plain += _page(chunk.words, _DICTIONARY_PAGE, Encoding.PLAIN, codec, out)
    first = out.size
    for page in chunk.pages:
        plain += _page(page, _DATA_PAGE, chunk.encoding, codec, out)
    encodings = {chunk.encoding, Encoding.RLE} | ({Encoding.PLAIN} if chunk.words is not None else set())
    return Column(
        physical=chunk.physical,
        encodings=tuple(sorted(encodings)),
        path=chunk.path,
        codec=codec,
        values=sum(page.values for page in chunk.pages),
        plain=plain,
        packed=out.size - begin,
        data_at=first,
        words_at=None if chunk.words is None else begin,
        bounds=chunk.bounds,
    )


def _shrinks(page: Page) -> bool:
    """Whether compression halves it; less is not worth the time, here and for every reader."""
    probe = page.data[:_PROBE]
    probe += page.bulk[: _PROBE - len(probe)]
    return page.size > 64 and 2 * _LZ4.compress(probe).size < len(probe)


def _page(page: Page, sort: int, encoding: Encoding, codec: Codec, out: _Out) -> int:
    """Append one page; its size before compression."""
    pieces: tuple[Data, ...] = (page.data, page.bulk)
    if codec == Codec.LZ4:
        pieces = (_LZ4.compress(page.data + page.bulk, asbytes=True),)
    about: list[tuple[int, Value | bool]] = [(1, integer(page.values)), (2, integer(encoding))]
    if sort == _DATA_PAGE:
        about += [(3, integer(Encoding.RLE)), (4, integer(Encoding.RLE))]
    header = struct(
        [
            (1, integer(sort)),
            (2, integer(page.size)),
            (3, integer(sum(map(len, pieces)))),
            (7 if sort == _DICTIONARY_PAGE else 5, struct(about)),
        ]
    )
    for piece in (header, *pieces):
        if len(piece):
            out.add(piece)
    return len(header) + page.size


_BY_NAME = {"PLAIN": 0, "PLAIN_DICTIONARY": 2, "RLE": 3, "BIT_PACKED": 4, "RLE_DICTIONARY": 8}


def _by_arrow(table: pa.Table, out: _Out) -> list[Column]:
    """Append a column as Arrow writes it; a list or a structure may be several there."""
    file = pa.BufferOutputStream()
    pq.write_table(
        table, file, compression="lz4", use_dictionary=False, write_statistics=False, row_group_size=max(1, len(table))
    )
    data = file.getvalue()
    about = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    columns, name = [], table.column_names[0]  # a name may have dots of its own
    for index in range(about.num_columns):
        own = about.column(index)
        inside = own.path_in_schema[len(name) + 1 :]
        begin = own.dictionary_page_offset or own.data_page_offset
        moved = out.size - begin
        out.add(data[begin : begin + own.total_compressed_size].to_pybytes())
        columns.append(
            Column(
                physical=Physical[own.physical_type],
                encodings=tuple(sorted(_BY_NAME[name] for name in own.encodings)),
                path=(name, *inside.split(".")) if inside else (name,),
                codec=Codec[own.compression],
                values=own.num_values,
                plain=own.total_uncompressed_size,
                packed=own.total_compressed_size,
                data_at=own.data_page_offset + moved,
                words_at=None if own.dictionary_page_offset is None else own.dictionary_page_offset + moved,
            )
        )
    return columns


class FileWriter:
    """Writes row groups to an open file, and the footer at the end."""

    def __init__(self, stream: Sink, schema: pa.Schema) -> None:
        self._stream, self._schema = stream, schema
        self._groups: list[Struct] = []
        self._rows = 0
        self._at = stream.write(MAGIC)

    def add(self, group: Group) -> None:
        """Append a row group of the schema."""
        columns = [_footer_of(column, self._at) for column in group.columns]
        self._groups.append(
            struct(
                [
                    (1, sequence(columns)),
                    (2, long(sum(column.plain for column in group.columns))),
                    (3, long(group.rows)),
                    (5, long(self._at)),
                    (6, long(group.size)),
                    (7, short(len(self._groups))),
                ]
            )
        )
        group.write(self._stream)
        self._at += group.size
        self._rows += group.rows

    def close(self) -> None:
        """Write the footer."""
        said = _said_by_arrow(self._schema)
        footer: list[tuple[int, Value | bool]] = [
            (1, said[1]),
            (2, said[2]),
            (3, long(self._rows)),
            (4, sequence(self._groups)),
            (5, said[5]),
            (6, binary(b"adjudge")),
            (7, said[7]),
        ]
        data = struct(footer)
        self._stream.write(data + len(data).to_bytes(4, "little") + MAGIC)


@lru_cache(maxsize=4)
def _said_by_arrow(schema: pa.Schema) -> dict[int, Value]:
    """The footer that Arrow gives a file of this schema: version, columns, its own types, and the order of bounds."""
    out = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), out)
    data = out.getvalue().to_pybytes()
    size = int.from_bytes(data[-8:-4], "little")
    return fields_of(data[-8 - size : -8])


def _footer_of(column: Column, begin: int) -> Struct:
    """A column of a row group that begins there."""
    about: list[tuple[int, Value | bool]] = [
        (1, integer(column.physical)),
        (2, sequence([integer(encoding) for encoding in column.encodings])),
        (3, sequence([binary(name.encode()) for name in column.path])),
        (4, integer(column.codec)),
        (5, long(column.values)),
        (6, long(column.plain)),
        (7, long(column.packed)),
        (9, long(begin + column.data_at)),
    ]
    if column.words_at is not None:
        about.append((11, long(begin + column.words_at)))
    if column.bounds is not None:
        low, high = column.bounds
        about.append((12, struct([(3, long(0)), (5, binary(high)), (6, binary(low))])))
    first = column.data_at if column.words_at is None else column.words_at
    return struct([(2, long(begin + first)), (3, struct(about))])
