"""A block of records as columns of values, decoded into those keys of a struct that the block has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import msgspec
from msgspec.structs import astuple

from adjudge.readers.blocks import Block

LOOKED_AT = 64
"""Records of a block that are looked at for its keys and words."""

_MOST_WORDS = 16
_MOST_OTHERS = 8
_PLAIN = re.compile(r'[^\\"\x00-\x1f]*')
"""What the name of a struct's field may hold."""
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


class ColumnReader:
    """Reads blocks of one kind of record into columns of values.

    Most files have few of the keys of a struct, and its `words` (fields by name, each with texts that it is known to
    take) have few different values. Both are told from some records of the blocks so far; a decoder of these keys and
    words alone takes two thirds of the time. A block in which it meets any other is decoded into the whole struct.
    """

    def __init__(self, kind: type[msgspec.Struct], expected: str, words: Mapping[str, Sequence[str]]) -> None:
        self._kind, self._expected = kind, expected
        self._whole = msgspec.json.Decoder(kind)
        self._fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        self._keys: dict[str, None] = {}
        self._words = {name: set(known) for name, known in words.items()}
        self._narrow: msgspec.json.Decoder[Any] | None = None

    def read(self, block: Block) -> dict[str, list[Any]]:
        """The values of every field that some record of the block has, in the order of the records."""
        rows = self._rows(block)
        values, names = list(chain.from_iterable(map(astuple, rows))), rows[0].__struct_fields__
        columns = {name: values[place :: len(names)] for place, name in enumerate(names)}
        return {
            field.name: columns[field.name]
            for field in self._fields.values()
            if field.name in columns and (field.required or not _all_none(columns[field.name]))
        }

    def _rows(self, block: Block) -> Sequence[Any]:
        if block.is_objects:
            for look in (False, True):
                try:
                    if look:
                        self._look_at(block)
                    rows = self._narrow.decode_lines(block.data) if self._narrow is not None else []
                except _UNREADABLE:
                    continue
                if len(rows) == len(block):
                    return rows
        return block.decode(self._whole, self._expected)

    def _look_at(self, block: Block) -> None:
        """Learn the keys and words of some records, spread over the block."""
        some = block.some_records(range(0, len(block), len(block) // LOOKED_AT + 1))
        records = [_OBJECT.decode(text) for text in some]
        self._keys |= dict.fromkeys(chain.from_iterable(records))
        for name, seen in list(self._words.items()):
            values = [msgspec.json.decode(record[name]) for record in records if name in record]
            seen.update(value for value in values if type(value) is str)
            if len(seen) > _MOST_WORDS or any(value is not None and type(value) is not str for value in values):
                del self._words[name]
        few = len(self._keys) <= len(self._fields) + _MOST_OTHERS
        self._narrow = self._decoder() if few and all(map(_PLAIN.fullmatch, self._keys)) else None

    def _decoder(self) -> msgspec.json.Decoder[Any]:
        """A decoder of records with the keys seen and no other; those that the struct does not have are passed over."""
        fields = self._fields
        hints: dict[str, Any] = {
            name: Literal[tuple(sorted(seen))] | None for name, seen in self._words.items() if seen
        }
        required: list[tuple[str, Any]] = [(field.name, field.type) for field in fields.values() if field.required]
        optional: list[tuple[str, Any, Any]] = [
            (fields[key].name, hints.get(fields[key].name, fields[key].type), fields[key].default)
            for key in self._keys
            if key in fields and not fields[key].required
        ]
        others = [key for key in self._keys if key not in fields]
        passed_over = [(f"other_{place}", msgspec.Raw, None) for place in range(len(others))]
        names = {field.name: key for key, field in fields.items()} | {
            f"other_{place}": key for place, key in enumerate(others)
        }
        narrow = msgspec.defstruct(
            "Narrow", [*required, *optional, *passed_over], rename=names, gc=False, forbid_unknown_fields=True
        )
        return msgspec.json.Decoder(narrow)


def _all_none(column: list[Any]) -> bool:
    return column[0] is None and column.count(None) == len(column)
