"""Output and reference lines as columns: the answer taken out of the text, its fields by their types."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.errors import InputError
from adjudge.protocols.check.compiled import BLOCK_KINDS, Compiled
from adjudge.protocols.check.declarations import FieldType
from adjudge.protocols.check.names import Name
from adjudge.protocols.check.values import Answers, Converted, Decode, column
from adjudge.protocols.common.columns import cut, few
from adjudge.readers.blocks import Block
from adjudge.readers.extract import METHODS, Extractor, found_as, without_answer
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


class Reference(msgspec.Struct, kw_only=True, gc=False):
    """A reference line; `gold` are the right values, in the order of the fields."""

    id: str | int | None = None
    gold: Any = None
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
        known |= dict.fromkeys(str(each.path.steps[0]) for each in compiled.fields)
    if compiled.file.extract == "none":
        known |= dict.fromkeys(compiled.file.schema_keys)
    if reference:
        known["gold"] = dict.fromkeys(str(each.path.steps[0]) for each in compiled.fields)
    return known


class OutputReader:
    """Reads blocks of output lines into a table with a row an output.

    `answer` columns are the fields; `mistyped` and `details` name the values of another type, and are null but for few.
    """

    def __init__(self, compiled: Compiled, *, repairs: bool, by_line: bool) -> None:
        self.compiled, self.by_line = compiled, by_line
        self.answers = Answers(compiled.fields, whole=bool(compiled.file.schema), left_out=compiled.file.beside)
        kind: Any = OutputWithBlocks if compiled.block_keys else Output
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
        reading = self._answers(texts, [output.error for output in outputs])
        return self._table(block, outputs, pa.array(texts, pa.string()), reading)

    def _answers(self, texts: Sequence[str | None], errors: Sequence[str | None]) -> Reading:
        """The answers in texts."""
        reading = Reading(self.answers, [0 if text is None else len(text) for text in texts])
        for row, (text, error) in enumerate(zip(texts, errors, strict=True)):
            self._answer(text, error, row, reading)
        return reading

    def again(self, texts: Sequence[str | None]) -> pa.Table:
        """The columns on the answers in texts that a run stores."""
        if self.compiled.file.extract == "none":
            reading = self._converted([json_object((text or "").encode()) for text in texts])
        else:
            reading = self._answers(texts, [None] * len(texts))
        return pa.table(reading.columns(self.compiled.answer_columns))

    def _answer(self, text: str | None, error: str | None, row: int, reading: Reading) -> None:
        """Read any text, wherever its answer stands."""
        for decode in self.answers.decoders if text else ():
            if self._at_once(text or "", decode, row, reading):
                return
        extraction = None if text is None else self._extractor.extract(text)
        if extraction is None or extraction.value is None:
            reading.refuse(row, *without_answer(text, error, "" if extraction is None else extraction.error))
            return
        reading.place(row, extraction.method, extraction.start, extraction.end)
        reading.repairs[row] = ",".join(extraction.repairs) or None
        reading.answer(row, self.answers.convert(extraction.value))

    def _at_once(self, text: str, decode: Decode, row: int, reading: Reading) -> bool:
        """Read the only object of a text, unless another one, or one inside it, can be a better answer."""
        start, end = text.find("{"), text.rfind("}") + 1
        if not 0 <= start < end or len(text) > MOST_CHARACTERS:
            return False
        body = text[start:end]
        try:
            converted, at_keys = decode(body)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return False
        lacking = at_keys.count(None)
        if lacking == len(at_keys) or (body.find("{", 1) > 0 and not self._fits_best(body, at_keys, lacking)):
            return False
        if len(body) < len(text):
            method = found_as(text[:start], text[end:])
            if method is None:
                return False
            reading.place(row, method, start, end)
        reading.answer(row, converted)
        return True

    def _fits_best(self, body: str, at_keys: Sequence[Any], lacking: int) -> bool:
        """As many keys as this object lacks, and one more, must stand in the text once."""
        keys = (key for key, value in zip(self._quoted, at_keys, strict=True) if value is not None)
        alone = (key for key in keys if body.count(key) == 1)
        return next(islice(alone, lacking, None), None) is not None

    def _converted(self, records: Sequence[dict[str, Any]]) -> Reading:
        """Records that are answers themselves."""
        reading = Reading(self.answers, [0] * len(records))
        for row, record in enumerate(records):
            converted = self.answers.convert(record)
            error = record.get("error")
            if error is not None and all(value is None for value in converted.values[: len(self.answers.fields)]):
                reading.refuse(row, "errored", shown(error, 200))
            else:
                reading.answer(row, converted)
        return reading

    def _rows(self, block: Block) -> pa.Table:
        """Rows that are answers themselves."""
        records = block.each(lambda _, record: json_object(record), EXPECTED["outputs", "none"])
        reading = self._converted(records)
        outputs = []
        for line, record in zip(block.lines.tolist(), records, strict=True):
            model, named = record.get("model"), {key: record.get(key) for key in ("id", "meta", "input")}
            if not isinstance(named["id"], str | int | None) or isinstance(named["id"], bool):
                raise InputError("`id` is neither text nor a whole number", file=block.path, line=line)
            outputs.append(OutputWithBlocks(model=None if model is None else str(model), **named))
        texts = pa.array([record.decode(errors="replace") for record in block.records()], pa.string())
        return self._table(block, outputs, texts, reading)

    def _table(self, block: Block, outputs: Sequence[Any], texts: pa.StringArray, reading: Reading) -> pa.Table:
        columns = {
            "group": _groups([output.model for output in outputs], Path(block.path).stem),
            "response": cut(texts, TEXT_LIMIT),
            "characters": pc.utf8_length(texts).cast(pa.int64()),
            **reading.columns(self.compiled.answer_columns),
        }
        expected = EXPECTED["outputs", self.compiled.file.extract]
        return _role_table(block, outputs, columns, self.compiled, by_line=self.by_line, expected=expected)

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
    """The answers of a block, row by row, and what is notable of each; an answer is its whole text unless told."""

    def __init__(self, answers: Answers, lengths: list[int]) -> None:
        n = len(lengths)
        self.answers, self.values = answers, [answers.nothing] * n
        self.status = bytearray(n)
        self.method, self.start, self.end = bytearray(n), [0] * n, lengths
        self.notes: list[str | None] = [None] * n
        self.repairs: list[str | None] = [None] * n
        self.mistyped: list[list[str] | None] = [None] * n
        self.details: list[list[str] | None] = [None] * n

    def place(self, row: int, method: str, start: int, end: int) -> None:
        """Where an answer stands in its text, and how it was found there; "" for none."""
        self.method[row], self.start[row], self.end[row] = _METHOD_CODES[method], start, end

    def refuse(self, row: int, bucket: str, note: str) -> None:
        """An output without an answer."""
        self.status[row], self.notes[row] = STATUSES.index(bucket), note
        self.place(row, "", -1, -1)

    def answer(self, row: int, converted: Converted) -> None:
        """The values of an answer, and what is mistyped."""
        self.values[row] = converted.values
        if converted.mistyped:
            self.mistyped[row] = [name for name, _ in converted.mistyped]
            self.details[row] = [why for _, why in converted.mistyped]

    def columns(self, names: Sequence[str]) -> dict[str, pa.Array]:
        """All of it as columns; `names` are those of the answers' values."""
        return {
            **dict(zip(names, self.answers.columns(self.values), strict=True)),
            "status": pa.array(np.frombuffer(bytes(self.status), dtype=np.uint8)),
            "method": pa.array(np.frombuffer(bytes(self.method), dtype=np.uint8)),
            "start": pa.array(np.array(self.start, dtype=np.int32)),
            "end": pa.array(np.array(self.end, dtype=np.int32)),
            "note": few(self.notes, pa.string()),
            "repairs": few(self.repairs, pa.string()),
            "mistyped": few(self.mistyped, NAMES),
            "details": few(self.details, NAMES),
        }


class ReferenceReader:
    """Reads reference lines: the right values of the fields, in `gold` or beside the id."""

    def __init__(self, compiled: Compiled, *, by_line: bool) -> None:
        self.compiled, self.by_line = compiled, by_line
        self.answers = Answers(compiled.fields)
        self._decoder: Any = None
        if self.answers.struct is not None:
            gold = [("gold", self.answers.struct | None, None)]
            kind = msgspec.defstruct("TypedReference", gold, bases=(Reference,), kw_only=True)
            self._decoder = msgspec.json.Decoder(kind)

    def read(self, block: Block) -> pa.Table:
        """A row a reference line. A value of the wrong type is refused: a reference is to be right."""
        expected = EXPECTED["reference", "json"]

        def loose(line: int, record: bytes) -> Reference:
            return self._loose(record, block.path, line)

        def strict(line: int, record: bytes) -> Reference:
            reference: Reference = self._decoder.decode(record)
            return loose(line, record) if reference.gold is None else reference

        records = block.each(loose, expected) if self._decoder is None else block.decode(self._decoder, expected, loose)
        if any(record.gold is None for record in records):
            records = block.each(strict, expected)
        rows = [
            record.gold if type(record.gold) is tuple else msgspec.structs.astuple(record.gold) for record in records
        ]
        columns = dict(zip(self.compiled.field_columns("g"), self.answers.columns(rows), strict=True))
        return _role_table(block, records, columns, self.compiled, by_line=self.by_line, expected=expected)

    def _loose(self, record: bytes, path: str, line: int) -> Reference:
        """A line of any shape: the right values in `gold`, as an object or its text, or beside the id."""
        data = json_object(record)
        gold = data.get("gold", data)
        if isinstance(gold, str):
            try:
                gold = _any.decode(gold)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                what = f"`gold` is a text that is no JSON: {in_words(error)}"
                raise InputError(what, file=path, line=line) from None
        if not isinstance(gold, dict):
            raise InputError("`gold` is no object", file=path, line=line, hint=EXPECTED["reference", "json"])
        converted = self.answers.convert(gold)
        if converted.mistyped:
            field, why = converted.mistyped[0]
            raise InputError(f"the gold value of {field} does not fit its type: {why}", file=path, line=line)
        return Reference(id=data.get("id"), gold=converted.values, meta=data.get("meta"), input=data.get("input"))


def _role_table(
    block: Block, records: Sequence[Any], columns: dict[str, Any], compiled: Compiled, *, by_line: bool, expected: str
) -> pa.Table:
    """A role's table: where its records stand, these columns, and what is read of `meta` and `input`.

    A sequence stays together, whatever the ids of its samples.
    """
    columns |= {
        "key": _key_column(block, [record.id for record in records], by_line=by_line, hint=expected),
        "file": pa.array(np.full(len(block), block.file, dtype=np.int32)),
        "line": pa.array(block.lines),
        **block_columns(compiled.block_keys, records),
    }
    if compiled.file.sequence:
        source = columns.get(compiled.label(compiled.file.sequence).column)
        columns["cut"] = columns["key"] if source is None else source.cast(pa.string()).fill_null("")
    return pa.table(columns)


def _groups(models: Sequence[str | None], stem: str) -> pa.Array:
    """The model of every output; one without is called as its file."""
    if len(set(models)) == 1:
        return pa.repeat(pa.scalar(models[0] or stem, pa.string()), len(models))
    return pa.array([model or stem for model in models], pa.string())


def _key_column(block: Block, ids: Sequence[Any], *, by_line: bool, hint: str) -> pa.Array:
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
        kind = FieldType(name.kind).decoded if name.kind in BLOCK_KINDS else None
        tables = [getattr(output, block) for output in outputs]
        values = [_of_kind(table.get(key), kind) if isinstance(table, dict) else None for table in tables]
        columns[name.column] = column(values, name.arrow)
    return columns


def _of_kind(value: Any, kind: Any) -> Any:
    """A value as what msgspec decodes its type into, null where it is of another; as text where there is no such type."""
    if value is None or (kind is None and isinstance(value, str)):
        return value
    if kind is None:
        return msgspec.json.encode(value).decode()
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


def json_object(record: bytes) -> dict[str, Any]:
    """A record that is an object."""
    value = _any.decode(record)
    if not isinstance(value, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{'array' if isinstance(value, list) else 'str'}`")
    return value
