"""Output and reference lines as columns: the answer taken out of the text, its fields by their types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.errors import InputError
from adjudge.protocols.check.compiled import Compiled
from adjudge.protocols.check.names import Name
from adjudge.protocols.check.values import Answers, Converted, Decode, column
from adjudge.protocols.common.columns import cut, few
from adjudge.readers.blocks import Block
from adjudge.readers.extract import METHODS, Extraction, Extractor, found_as, without_answer
from adjudge.readers.settings import in_words, shown

STATUSES = ("answered", "unparsed", "abstained", "errored", "missing")
ANSWERED, UNPARSED, ABSTAINED, ERRORED, MISSING = range(5)
TEXT_LIMIT = 65_536
MOST_CHARACTERS = 1_000_000
NO_METHOD = 255
EXPECTED = {
    ("outputs", "json"): "an output line is a JSON object with `id`, `response` (the model's text) and `model`",
    ("outputs", "none"): "with `extract: none` an output line is a JSON object with `id`, `model` and the fields",
    ("reference", "json"): "a reference line is a JSON object with `id` and the right values, in `gold` or beside it",
}
_METHOD_CODES = {"": NO_METHOD, **{method: code for code, method in enumerate(METHODS)}}
_any = msgspec.json.Decoder()
NAMES = pa.list_(pa.string())
BLOCK_TYPES = {"number": pa.float64(), "boolean": pa.bool_(), "date": pa.date32()}
"""The columns of keys of `meta` and `input`; all others are text."""
_BLOCK_KINDS: dict[str, Any] = {"number": float, "boolean": bool, "date": dt.date}


class Output(msgspec.Struct, kw_only=True, gc=False):
    """An output line; `meta` and `input` are read where a rule file names keys of theirs."""

    id: str | int | None = None
    response: str | None = None
    model: str | None = None
    error: str | None = None


class OutputWithBlocks(Output, kw_only=True, gc=False):
    """An output line whose `meta` or `input` is read."""

    meta: Any = None
    input: Any = None


def key_tree(compiled: Compiled, *, reference: bool) -> dict[str, Any]:
    """The keys of a line that are read."""
    known: dict[str, Any] = {"id": None}
    if not reference:
        known |= dict.fromkeys(("model", "error", *(["response"] if compiled.file.extract == "json" else [])))
    for name in compiled.block_keys:
        block, key = name.written
        known.setdefault(block, {})[key] = None
    if reference or compiled.file.extract == "none":
        known |= dict.fromkeys(str(each.path.first) for each in compiled.fields)
    if compiled.file.extract == "none":
        known |= dict.fromkeys(compiled.file.schema_keys)
    if reference:
        known["gold"] = dict.fromkeys(str(each.path.first) for each in compiled.fields)
    return known


class OutputReader:
    """Reads blocks of output lines into a table with a row an output.

    `answer` columns are the fields; `mistyped` and `details` name the values of another type, and are null but for few.
    """

    def __init__(self, compiled: Compiled, *, repairs: bool, by_line: bool) -> None:
        self.compiled, self.by_line = compiled, by_line
        self.answers = Answers(compiled.fields, whole=bool(compiled.file.schema), left_out=compiled.file.beside)
        self.names = compiled.block_keys
        kind: Any = OutputWithBlocks if self.names else Output
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
        self._extractor = Extractor([str(key) for key in self.answers.keys], repairs=repairs)
        self._quoted = [f'"{key}"' for key in self.answers.keys]

    def read(self, block: Block) -> pa.Table:
        """A row an output."""
        return self._rows(block) if self.compiled.file.extract == "none" else self._texts(block)

    def _texts(self, block: Block) -> pa.Table:
        def loose(line: int, record: bytes) -> Any:
            return self._loose(record, block.path, line)

        outputs = block.decode(self._decoder, EXPECTED["outputs", "json"], loose)
        texts = [output.response for output in outputs]
        reading, rows = self._answers(texts, [output.error for output in outputs])
        return self._table(block, outputs, pa.array(texts, pa.string()), reading, rows)

    def _answers(
        self, texts: Sequence[str | None], errors: Sequence[str | None]
    ) -> tuple[Reading, list[tuple[Any, ...]]]:
        """The values of the answers in texts."""
        reading = Reading([0 if text is None else len(text) for text in texts])
        return reading, [self._answer(text, errors[row], row, reading) for row, text in enumerate(texts)]

    def again(self, texts: Sequence[str | None]) -> pa.Table:
        """The columns on the answers in texts that a run stores."""
        if self.compiled.file.extract == "none":
            reading, rows = self._converted([json_object((text or "").encode()) for text in texts])
        else:
            reading, rows = self._answers(texts, [None] * len(texts))
        columns = self.answers.columns(rows)
        return pa.table({**reading.columns(), **dict(zip(self.compiled.answer_columns, columns, strict=True))})

    def _answer(self, text: str | None, error: str | None, row: int, reading: Reading) -> tuple[Any, ...]:
        """The values of any text, wherever its answer stands; what is notable of it goes into `reading`."""
        for decode in self.answers.decoders if text else ():
            converted = self._at_once(text or "", decode, row, reading)
            if converted is not None:
                return reading.converted(row, converted)
        extraction = None if text is None else self._extractor.extract(text)
        if extraction is None or extraction.value is None:
            reading.refuse(row, *without_answer(text, error, "" if extraction is None else extraction.error))
            return self.answers.nothing
        reading.take(row, extraction)
        return reading.converted(row, self.answers.convert(extraction.value))

    def _at_once(self, text: str, decode: Decode, row: int, reading: Reading) -> Converted | None:
        """The values of the only object of a text; None where another one, or one inside it, can be a better answer."""
        start, end = text.find("{"), text.rfind("}") + 1
        if not 0 <= start < end or len(text) > MOST_CHARACTERS:
            return None
        body = text[start:end]
        try:
            converted, at_keys = decode(body)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return None
        lacking = at_keys.count(None)
        if lacking == len(at_keys) or (body.find("{", 1) > 0 and not self._fits_best(body, at_keys, lacking)):
            return None
        if len(body) < len(text):
            method = found_as(text[:start], text[end:])
            if method is None:
                return None
            reading.method[row], reading.start[row], reading.end[row] = _METHOD_CODES[method], start, end
        return converted

    def _fits_best(self, body: str, at_keys: Sequence[Any], lacking: int) -> bool:
        """As many keys as this object lacks, and one more, must stand in the text once."""
        alone = 0
        for key, value in zip(self._quoted, at_keys, strict=True):
            if value is not None and body.count(key) == 1:
                alone += 1
                if alone > lacking:
                    return True
        return False

    def _converted(self, records: Sequence[dict[str, Any]]) -> tuple[Reading, list[tuple[Any, ...]]]:
        """The values of records that are answers themselves."""
        reading = Reading([0] * len(records))
        rows = []
        for row, record in enumerate(records):
            converted = self.answers.convert(record)
            error = record.get("error")
            empty = all(value is None for value in converted.values[: len(self.answers.fields)])
            if error is not None and empty:
                reading.refuse(row, "errored", shown(error, 200))
                rows.append(self.answers.nothing)
            else:
                rows.append(reading.converted(row, converted))
        return reading, rows

    def _rows(self, block: Block) -> pa.Table:
        """Rows that are answers themselves."""
        records = block.each(lambda _, record: json_object(record), EXPECTED["outputs", "none"])
        reading, rows = self._converted(records)
        for line, record in zip(block.lines.tolist(), records, strict=True):
            if not isinstance(record.get("id"), str | int | None) or isinstance(record.get("id"), bool):
                raise InputError("`id` is neither text nor a whole number", file=block.path, line=line)
        texts = pa.array([record.decode(errors="replace") for record in block.records()], pa.string())
        outputs = []
        for record in records:
            model = record.get("model")
            named = {key: record.get(key) for key in ("id", "meta", "input")}
            outputs.append(OutputWithBlocks(model=None if model is None else str(model), **named))
        return self._table(block, outputs, texts, reading, rows)

    def _table(
        self,
        block: Block,
        outputs: Sequence[Any],
        texts: pa.StringArray,
        reading: Reading,
        rows: Sequence[tuple[Any, ...]],
    ) -> pa.Table:
        characters, expected = pc.utf8_length(texts), EXPECTED["outputs", self.compiled.file.extract]
        columns = {
            "key": key_column(block, [output.id for output in outputs], by_line=self.by_line, hint=expected),
            "group": _groups([output.model for output in outputs], Path(block.path).stem),
            "file": pa.array(np.full(len(block), block.file, dtype=np.int32)),
            "line": pa.array(block.lines),
            "response": cut(texts, TEXT_LIMIT),
            "characters": characters.cast(pa.int64()),
            **reading.columns(),
            **dict(zip(self.compiled.answer_columns, self.answers.columns(rows), strict=True)),
            **block_columns(self.names, outputs),
        }
        return with_cut(columns, self.compiled)

    def _loose(self, record: bytes, path: str, line: int) -> Any:
        """A line whose response is an object, or whose error is one; any other is refused."""
        data = _any.decode(record)
        if isinstance(data, dict):
            for key, limit in (("response", None), ("error", 300)):
                if key in data and not isinstance(data[key], str | None):
                    data[key] = msgspec.json.encode(data[key]).decode()[:limit]
            record = msgspec.json.encode(data)
        try:
            return self._decoder.decode(record)
        except msgspec.ValidationError as error:
            raise InputError(in_words(error), file=path, line=line, hint=EXPECTED["outputs", "json"]) from None


class Reading:
    """What is notable of the outputs of a block, beside their values; an answer is its whole text unless told."""

    def __init__(self, lengths: list[int]) -> None:
        n = len(lengths)
        self.status = bytearray(n)
        self.method, self.start, self.end = bytearray(n), [0] * n, lengths
        self.notes: list[str | None] = [None] * n
        self.repairs: list[str | None] = [None] * n
        self.mistyped: list[list[str] | None] = [None] * n
        self.details: list[list[str] | None] = [None] * n

    def take(self, row: int, extraction: Extraction) -> None:
        """An answer that was searched for, and what was repaired."""
        self.method[row] = _METHOD_CODES[extraction.method]
        self.start[row], self.end[row] = extraction.start, extraction.end
        self.repairs[row] = ",".join(extraction.repairs) or None

    def refuse(self, row: int, bucket: str, note: str) -> None:
        """An output without an answer."""
        self.status[row], self.notes[row] = STATUSES.index(bucket), note
        self.method[row], self.start[row], self.end[row] = NO_METHOD, -1, -1

    def converted(self, row: int, converted: Converted) -> tuple[Any, ...]:
        """The values of an answer, with what is mistyped noted."""
        if converted.mistyped:
            self.mistyped[row] = [each.field for each in converted.mistyped]
            self.details[row] = [each.why for each in converted.mistyped]
        return converted.values

    def columns(self) -> dict[str, pa.Array]:
        """All of it as columns."""
        return {
            "status": pa.array(np.frombuffer(bytes(self.status), dtype=np.uint8)),
            "method": pa.array(np.frombuffer(bytes(self.method), dtype=np.uint8)),
            "start": pa.array(np.array(self.start, dtype=np.int32)),
            "end": pa.array(np.array(self.end, dtype=np.int32)),
            "note": few(self.notes, pa.string()),
            "repairs": few(self.repairs, pa.string()),
            "mistyped": few(self.mistyped, NAMES),
            "details": few(self.details, NAMES),
        }


def with_cut(columns: dict[str, Any], compiled: Compiled) -> pa.Table:
    """A role's table; a sequence stays together, whatever the ids of its samples."""
    if compiled.file.sequence:
        source = columns.get(compiled.label(compiled.file.sequence).column)
        columns["cut"] = columns["key"] if source is None else source.cast(pa.string()).fill_null("")
    return pa.table(columns)


def _groups(models: Sequence[str | None], stem: str) -> pa.Array:
    """The model of every output; one without is called as its file."""
    if len(set(models)) == 1:
        return pa.repeat(pa.scalar(models[0] or stem, pa.string()), len(models))
    return pa.array([model or stem for model in models], pa.string())


def key_column(block: Block, ids: Sequence[Any], *, by_line: bool, hint: str) -> pa.Array:
    """The ids of records, or their lines; a record without an id is refused."""
    if by_line:
        return pa.array(block.lines).cast(pa.string())
    if None in ids:
        line = int(block.lines[list(ids).index(None)])
        more = f"; {hint}. Another key is named by --column id=KEY, and --match line takes the line number"
        raise InputError(f"the record has no `id`{more}", file=block.path, line=line)
    try:
        return pa.array(ids, pa.string())
    except pa.ArrowTypeError:  # some are numbers
        return pa.array([str(key) for key in ids], pa.string())


def block_columns(names: Sequence[Name], outputs: Sequence[Any]) -> dict[str, pa.Array]:
    """The keys of `meta` and `input` that are read."""
    columns = {}
    for name in names:
        block, key = name.written
        tables = [getattr(output, block) for output in outputs]
        values = [_of_kind(table.get(key), name.kind) if isinstance(table, dict) else None for table in tables]
        columns[name.column] = column(values, BLOCK_TYPES.get(name.kind, pa.string()))
    return columns


def _of_kind(value: Any, kind: str) -> Any:
    """A value by its declared type, null where it is of another; what is neither number, boolean nor date is text."""
    if value is None or (isinstance(value, str) and kind not in _BLOCK_KINDS):
        return value
    if kind not in _BLOCK_KINDS:
        return msgspec.json.encode(value).decode()
    try:
        return msgspec.convert(value, _BLOCK_KINDS[kind])
    except msgspec.ValidationError:
        return None


def json_object(record: bytes) -> dict[str, Any]:
    """A record that is an object."""
    value = _any.decode(record)
    if not isinstance(value, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{'array' if isinstance(value, list) else 'str'}`")
    return value
