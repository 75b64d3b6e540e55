"""Records from any table-like file: JSONL, a JSON list, CSV or Parquet, each record as one line of JSON bytes.

A shape says where a user's records sit in the file and what their keys are called.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from adjudge.errors import ConfigError, InputError
from adjudge.readers.settings import in_words
from adjudge.readers.sources import BOM, JSON_LINES, Source, delimiter_of, format_of, refuse_expansion, whole

if TYPE_CHECKING:
    import pyarrow as pa

_ABSENT: Final = object()


@dataclass
class Shape:
    """`path` leads from a record to the records inside it; `columns` are (our key, the user's key), dots for nesting.

    `seen` counts the records in which a user's key was there.
    """

    path: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    seen: dict[str, int] = field(default_factory=dict)

    def applied(self, record: bytes, file: str, line: int) -> Iterator[bytes]:
        """The records that one record of the file holds, with our keys."""
        try:
            value: Any = msgspec.json.decode(record)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise InputError(f"is not JSON: {in_words(error)}", file=file, line=line) from None
        for name in self.path:
            if not isinstance(value, dict) or name not in value:
                keys = ", ".join(list(value)[:8]) if isinstance(value, dict) else "no keys"
                what = f"has no {name!r} on the way $.{'.'.join(self.path)} (--json-path); it has {keys}"
                raise InputError(what, file=file, line=line)
            value = value[name]
        for item in value if isinstance(value, list) and self.path else [value]:
            yield msgspec.json.encode(self._renamed(item) if isinstance(item, dict) else item)

    def refuse_unseen(self, where: str) -> None:
        """A column that no record of a file has is a mistake of the command."""
        for ours, theirs in self.columns:
            if not self.seen.get(theirs):
                raise ConfigError(f"--column {ours}={theirs}: no record of {where} has a key {theirs!r}")

    def _renamed(self, record: dict[str, Any]) -> dict[str, Any]:
        values = [(ours, theirs, _at(record, theirs)) for ours, theirs in self.columns]
        renamed = record
        for _, theirs in self.columns:
            renamed = _without(renamed, [theirs] if theirs in renamed else theirs.split("."))
        for ours, theirs, value in values:
            if value is not _ABSENT:
                self.seen[theirs] = self.seen.get(theirs, 0) + 1
                _put(renamed, ours, value)
        return renamed


AS_IT_IS: Final = Shape()
"""That of most files: a record stands alone, with keys that are ours."""


def shape_of(role: str, json_path: str | None, columns: dict[str, str]) -> Shape:
    """The shape of one role's files; a column may be of one role alone (`reference:id=key`)."""
    path = tuple(part for part in (json_path or "").removeprefix("$").split(".") if part)
    chosen = []
    for ours, theirs in columns.items():
        its_role, colon, name = ours.partition(":")
        if not colon or its_role == role:
            chosen.append((name if colon else ours, theirs))
    return Shape(path, tuple(chosen)) if path or chosen else AS_IT_IS


def columns_of(words: list[str]) -> dict[str, str]:
    """The columns that `OURS=THEIRS` words name."""
    columns: dict[str, str] = {}
    for word in words:
        ours, equals, theirs = word.partition("=")
        if not equals or not ours or not theirs:
            raise ConfigError(f"--column {word!r} is not OURS=THEIRS, such as id=question_id")
        if ours in columns:
            raise ConfigError(f"--column {ours!r} is given twice")
        columns[ours] = theirs
    return columns


def _at(record: dict[str, Any], key: str) -> Any:
    """The value of a key, or of a path with dots where no key is called so."""
    if key in record:
        return record[key]
    value: Any = record
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return _ABSENT
        value = value[part]
    return value


def _without(record: dict[str, Any], way: list[str]) -> dict[str, Any]:
    """A copy without the value at the end of a way, nor an object that is empty then."""
    first, *rest = way
    inner = record.get(first)
    left = _without(inner, rest) if rest and isinstance(inner, dict) else {} if not rest else inner
    return {key: left if key == first else value for key, value in record.items() if key != first or left}


def _put(record: dict[str, Any], key: str, value: Any) -> None:
    *way, last = key.split(".")
    for part in way:
        inner = record.get(part)
        copied = dict(inner) if isinstance(inner, dict) else {}
        record[part] = copied
        record = copied
    record[last] = value


_CSV_FIELD_LIMIT = 1 << 27
_CSV_ROWS = 2048
_PARQUET_ROWS = 4096
_PARQUET_TEXTS = 1 << 26  # bytes of one column that become text at once
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)", re.ASCII)
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def records(source: Source, shape: Shape = AS_IT_IS) -> Iterator[tuple[int, bytes]]:
    """(line, JSON) of every record; lines count from 1, and blank lines are not records. An empty file is refused."""
    empty = True
    for number, line in _READERS[format_of(source)](source):
        empty = False
        if shape is AS_IT_IS:
            yield number, line
        else:
            for record in shape.applied(line, source.name, number):
                yield number, record
    if empty:
        raise InputError("is empty; expected one record a line", file=source.name)


def _json_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(source.stream, 1):
        text = line.removeprefix(BOM) if number == 1 else line
        if not text.isspace():
            yield number, text.rstrip(b"\r\n")


def _json_list(source: Source) -> Iterator[tuple[int, bytes]]:
    text = whole(source).removeprefix(BOM)
    try:
        items = msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"is not a JSON list: {in_words(error)}", file=source.name) from None
    for number, item in enumerate(items, 1):
        yield number, msgspec.json.format(bytes(item), indent=-1)


def _json_document(source: Source) -> Iterator[tuple[int, bytes]]:
    text = whole(source).removeprefix(BOM)
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(
            f"is neither JSON Lines nor one JSON document: {in_words(error)}",
            file=source.name,
            line=_line_of(text, str(error)),
        ) from None
    yield 1, msgspec.json.format(text, indent=-1)


def _line_of(text: bytes, message: str) -> int:
    digits = message.rpartition("(byte ")[2].rstrip(")")
    return text[: int(digits)].count(b"\n") + 1 if digits.isdigit() else 1


def _csv(source: Source) -> Iterator[tuple[int, bytes]]:
    text = io.TextIOWrapper(source.stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    header = source.stream.peek(1 << 16).partition(b"\n")[0].decode("utf-8", "replace")
    reader = csv.DictReader(text, delimiter=delimiter_of(header), strict=True)
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

    data = whole(source)
    try:
        schema = pq.ParquetFile(pa.BufferReader(data)).schema_arrow
        texts = [each.name for each in schema if pa.types.is_string(each.type) or pa.types.is_binary(each.type)]
        table = pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"is not readable as Parquet: {type(error).__name__}", file=source.name) from None
    _refuse_twice(schema.names, source.name)
    number = size = 0
    try:
        for batch in table.iter_batches(batch_size=_PARQUET_ROWS):
            for row in _rows(batch):
                number += 1
                record = msgspec.json.encode(_plain(row))
                size += len(record)
                refuse_expansion(source.name, len(data), size)
                yield number, record
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"cannot be read after record {number}: {first[:200]}", file=source.name) from None


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch, as many at once as memory takes: a text that stands once in the file may be in every row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    longest = 1
    for column in batch.columns:
        if isinstance(column, pa.DictionaryArray):
            longest = max(longest, pc.max(pc.binary_length(column.dictionary)).as_py() or 0)
    step = max(1, min(_PARQUET_ROWS, _PARQUET_TEXTS // longest))
    for start in range(0, batch.num_rows, step):
        columns = [
            column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
            for column in batch.slice(start, step).columns
        ]
        yield from pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and value != value else value for key, value in row.items()}  # noqa: PLR0124 -- NaN


_READERS: dict[str, Callable[[Source], Iterator[tuple[int, bytes]]]] = {
    JSON_LINES: _json_lines,
    "a JSON list": _json_list,
    "one JSON document": _json_document,
    "CSV": _csv,
    "Parquet": _parquet,
}
