"""Records from any table-like file: JSONL, a JSON list, CSV or Parquet, each record as one line of JSON bytes."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from adjudge.errors import InputError
from adjudge.readers.shape import AS_IT_IS, Shape
from adjudge.readers.sources import Source, whole
from adjudge.readers.wording import in_words

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"
_CSV_FIELD_LIMIT = 1 << 27
_CSV_ROWS = 2048
_DELIMITERS = ",;\t"
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)", re.ASCII)
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_NAMES = {
    "_json_lines": "JSON Lines",
    "_json_list": "a JSON list",
    "_json_document": "one JSON document",
    "_csv": "CSV",
    "_parquet": "Parquet",
}


def records(source: Source, shape: Shape = AS_IT_IS) -> Iterator[tuple[int, bytes]]:
    """(line, JSON) of every record; lines count from 1, and blank lines are not records. An empty file is refused."""
    empty = True
    for number, line in _records(source):
        empty = False
        if shape.as_it_is:
            yield number, line
        else:
            for record in shape.applied(line, source.name, number):
                yield number, record
    if empty:
        raise InputError("is empty; expected one record a line", file=source.name)


def is_json_lines(source: Source) -> bool:
    """Whether the input is one JSON record a line (or nothing that is known, which is then refused line by line)."""
    return _format(source) is _json_lines


def format_name(source: Source) -> str:
    """What kind of file a source is, in words."""
    return _NAMES[_format(source).__name__]


def _records(source: Source) -> Iterator[tuple[int, bytes]]:
    return _format(source)(source)


def _format(source: Source) -> Callable[[Source], Iterator[tuple[int, bytes]]]:
    """Told by content where the name does not say."""
    head = source.stream.peek(1 << 16)
    if head[:4] == b"PAR1":
        return _parquet
    if head[:2] in _UTF_16:
        hint = f"iconv -f UTF-16 -t UTF-8 {source.name} > again"
        raise InputError(f"is UTF-16 text, expected UTF-8 ({hint})", file=source.name)
    first = head.removeprefix(_BOM).lstrip()[:1]
    if first == b"[":
        return _json_list
    if first == b"{":
        return _json_lines if b"\n" not in head or _complete(head) else _json_document
    named = source.name.lower().removesuffix(".gz").removesuffix(".zst").endswith((".csv", ".tsv"))
    return _csv if first and (named or _looks_like_csv(head)) else _json_lines


def _complete(head: bytes) -> bool:
    """Whether the first line is a whole JSON value, so that the file is JSON Lines and not one indented document."""
    line = head.removeprefix(_BOM).lstrip().partition(b"\n")[0].strip()
    return not (line == b"{" or (line.startswith(b"{") and not line.endswith(b"}") and len(line) < 200))


def _looks_like_csv(head: bytes) -> bool:
    header = head.removeprefix(_BOM).partition(b"\n")[0].decode("utf-8", "replace").strip()
    names = [name.strip().strip('"') for name in header.split(_delimiter(header))]
    return len(names) > 1 and all(
        name and name.replace("_", "").replace(".", "").replace(" ", "").isalnum() for name in names
    )


def _delimiter(header: str) -> str:
    """What separates the names of a header: the sign that most often does."""
    return max(_DELIMITERS, key=header.count)


def _json_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(source.stream, 1):
        text = line.removeprefix(_BOM) if number == 1 else line
        if not text.isspace():
            yield number, text.rstrip(b"\r\n")


def _json_list(source: Source) -> Iterator[tuple[int, bytes]]:
    text = whole(source).removeprefix(_BOM)
    try:
        items = msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"is not a JSON list: {in_words(error)}", file=source.name) from None
    for number, item in enumerate(items, 1):
        yield number, msgspec.json.format(bytes(item), indent=-1)


def _json_document(source: Source) -> Iterator[tuple[int, bytes]]:
    yield 1, msgspec.json.format(_checked(source), indent=-1)


def _checked(source: Source) -> bytes:
    text = whole(source).removeprefix(_BOM)
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(
            f"is neither JSON Lines nor one JSON document: {in_words(error)}",
            file=source.name,
            line=_line_of(text, str(error)),
        ) from None
    return text


def _line_of(text: bytes, message: str) -> int:
    digits = message.rpartition("(byte ")[2].rstrip(")")
    return text[: int(digits)].count(b"\n") + 1 if digits.isdigit() else 1


def _csv(source: Source) -> Iterator[tuple[int, bytes]]:
    text = io.TextIOWrapper(source.stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    header = source.stream.peek(1 << 16).partition(b"\n")[0].decode("utf-8", "replace")
    reader = csv.DictReader(text, delimiter=_delimiter(header), strict=True)
    rows = _numbered(reader, source)
    try:
        while True:
            with _wide_fields():
                csv_rows = list(itertools.islice(rows, _CSV_ROWS))
            if not csv_rows:
                return
            yield from csv_rows
    except csv.Error as error:
        raise InputError(f"is not readable as CSV: {error}", file=source.name, line=reader.line_num) from None
    finally:
        text.detach()  # a wrapper that is collected would close the source


def _numbered(reader: csv.DictReader[str], source: Source) -> Iterator[tuple[int, bytes]]:
    name = source.name
    _refuse_twice(reader.fieldnames or (), name)
    left_alone = source.decimal_commas is None or reader.reader.dialect.delimiter == ","
    for row in reader if left_alone else _with_points(reader, source):
        if None in row or None in row.values():
            width = len(reader.fieldnames or ())
            what = f"row has another number of cells than the {width} columns of the header"
            raise InputError(what, file=name, line=reader.line_num)
        yield reader.line_num, _encoded(_nested(row, name, reader.line_num))


def _with_points(rows: Iterable[dict[str, str]], source: Source) -> Iterator[dict[str, str]]:
    """Rows of a file that spreadsheets write where the comma is the decimal sign: a cell that is such a number gets a point."""
    for row in rows:
        numbers = {
            name: match
            for name, cell in row.items()
            if cell and "," in cell and (match := _DECIMAL_COMMA.fullmatch(cell))
        }
        source.decimal_commas = (source.decimal_commas or 0) + len(numbers)
        yield row | {name: f"{match[1]}.{match[2]}" for name, match in numbers.items()}


def _encoded(record: dict[str, Any]) -> bytes:
    """A record as JSON; bytes that are no characters stay, to be replaced and noted as in other formats."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _refuse_twice(names: Iterable[str], file: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"column {twice[0]!r} stands twice; every column has a name of its own", file=file)


def _nested(row: dict[str, str], file: str, line: int) -> dict[str, Any]:
    """A row without its empty cells, which are absent values; names with dots become nested objects."""
    record: dict[str, Any] = {}
    for name, cell in row.items():
        if cell == "":
            continue
        place, way = record, name.split(".") if _PATH.fullmatch(name) else [name]
        for part in way[:-1]:
            inner = place.setdefault(part, {})
            if not isinstance(inner, dict):
                raise InputError(f"row has a value for {part!r} and one inside of it, {name!r}", file=file, line=line)
            place = inner
        place[way[-1]] = cell
    return record


@contextmanager
def _wide_fields() -> Iterator[None]:
    """Long cells for as long as some rows are read; the limit is one for the whole process."""
    before = csv.field_size_limit(_CSV_FIELD_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _parquet(source: Source) -> Iterator[tuple[int, bytes]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(pa.BufferReader(whole(source)))
        names = table.schema_arrow.names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"is not readable as Parquet: {type(error).__name__}", file=source.name) from None
    _refuse_twice(names, source.name)
    number = 0
    try:
        for batch in table.iter_batches(batch_size=4096):
            for row in batch.to_pylist():
                number += 1
                yield number, msgspec.json.encode(_plain(row))
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"cannot be read after record {number}: {first[:200]}", file=source.name) from None


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and value != value else value for key, value in row.items()}  # noqa: PLR0124 -- NaN
