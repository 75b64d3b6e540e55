"""Reference lines as columns: the right values of the fields."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.errors import InputError
from adjudge.protocols.check.compiled import Compiled
from adjudge.protocols.check.rows import EXPECTED, block_columns, json_object, key_column, with_cut
from adjudge.protocols.check.values import Answers
from adjudge.readers.blocks import Block
from adjudge.readers.settings import in_words

_astuple = msgspec.structs.astuple


class Reference(msgspec.Struct, kw_only=True, gc=False):
    """A reference line; `gold` are the right values, in the order of the fields."""

    id: str | int | None = None
    gold: Any = None
    meta: Any = None
    input: Any = None


class ReferenceReader:
    """Reads reference lines: the right values of the fields, in `gold` or beside the id."""

    def __init__(self, compiled: Compiled, *, by_line: bool) -> None:
        self.compiled, self.by_line = compiled, by_line
        self.answers = Answers(compiled.fields)
        self.names = compiled.block_keys
        struct: Any = self.answers.struct
        self._decoder: Any = None
        if struct is not None:
            kind = msgspec.defstruct(
                "TypedReference", [("gold", struct | None, None)], bases=(Reference,), kw_only=True
            )
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
        rows = [record.gold if type(record.gold) is tuple else _astuple(record.gold) for record in records]
        columns = {
            "key": key_column(block, [record.id for record in records], by_line=self.by_line, hint=expected),
            "file": pa.array(np.full(len(block), block.file, dtype=np.int32)),
            "line": pa.array(block.lines),
            **dict(zip(self.compiled.field_columns("g"), self.answers.columns(rows), strict=True)),
            **block_columns(self.names, records),
        }
        return with_cut(columns, self.compiled)

    def _loose(self, record: bytes, path: str, line: int) -> Reference:
        """A line of any shape: the right values in `gold`, as an object or its text, or beside the id."""
        data = json_object(record)
        gold = data.get("gold", data)
        if isinstance(gold, str):
            gold = _gold_text(gold, path, line)
        if not isinstance(gold, dict):
            raise InputError("`gold` is no object", file=path, line=line, hint=EXPECTED["reference", "json"])
        converted = self.answers.convert(gold)
        if converted.mistyped:
            field, why = converted.mistyped[0]
            raise InputError(f"the gold value of {field} does not fit its type: {why}", file=path, line=line)
        return Reference(id=data.get("id"), gold=converted.values, meta=data.get("meta"), input=data.get("input"))


def _gold_text(text: str, path: str, line: int) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(f"`gold` is a text that is no JSON: {in_words(error)}", file=path, line=line) from None
