"""A block of records as columns of values, decoded into those keys of a struct that the block has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Literal

import msgspec
from msgspec.structs import astuple

from adjudge.readers.blocks import Block

LOOKED_AT = 64
"""Records of a block that are looked at for its keys and words."""

_MOST_WORDS = 16
_MOST_OTHERS = 8
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def columns_of(
    block: Block, kind: type[msgspec.Struct], expected: str, words: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Any, ...]]:
    """The values of every field that some record of the block has, in the order of the records.

    Most files have few of the keys of a struct, and its `words` (fields by name, each with texts that it is known to
    take) have few different values. Both are told from some records; a decoder of these keys and words alone takes two
    thirds of the time. Where it meets any other, the block is decoded into the whole struct.
    """
    rows: Sequence[Any] = []
    try:
        decoder = _decoder_for(block, kind, words)
        if decoder is not None and block.is_objects:
            rows = decoder.decode_lines(block.data)
    except _UNREADABLE:
        rows = []
    if len(rows) != len(block):
        rows = block.decode(msgspec.json.Decoder(kind), expected)
    names = rows[0].__struct_fields__
    columns = dict(zip(names, zip(*map(astuple, rows), strict=True), strict=True))
    return {
        field.name: columns[field.name]
        for field in msgspec.structs.fields(kind)
        if field.name in columns and (field.required or not _all_none(columns[field.name]))
    }


def _decoder_for(
    block: Block, kind: type[msgspec.Struct], words: Mapping[str, Sequence[str]]
) -> msgspec.json.Decoder[Any] | None:
    """A decoder of the keys and words that some records have, spread over the block."""
    records = [_OBJECT.decode(text) for text in block.some_records(range(0, len(block), len(block) // LOOKED_AT + 1))]
    keys = tuple(dict.fromkeys(chain.from_iterable(records)))
    seen = []
    for name, known in words.items():
        values = {msgspec.json.decode(record[name]) for record in records if name in record}
        if values and len(values) <= _MOST_WORDS and all(type(value) is str for value in values):
            seen.append((name, tuple(sorted(values.union(known)))))
    return _narrow(kind, keys, tuple(seen))


@lru_cache(maxsize=64)
def _narrow(
    kind: type[msgspec.Struct], keys: tuple[str, ...], words: tuple[tuple[str, tuple[str, ...]], ...]
) -> msgspec.json.Decoder[Any] | None:
    """A decoder of records with these keys and no other; those that the struct does not have are passed over."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    others = [key for key in keys if key not in fields]
    if len(others) > _MOST_OTHERS:
        return None
    hints: dict[str, Any] = {name: Literal[texts] | None for name, texts in words}
    required: list[tuple[str, Any]] = [(field.name, field.type) for field in fields.values() if field.required]
    optional: list[tuple[str, Any, Any]] = [
        (fields[key].name, hints.get(fields[key].name, fields[key].type), fields[key].default)
        for key in keys
        if key in fields and not fields[key].required
    ]
    passed_over = [(f"other_{place}", msgspec.Raw, None) for place in range(len(others))]
    names = {fields[key].name: key for key in keys if key in fields}
    names |= {f"other_{place}": key for place, key in enumerate(others)}
    narrow = msgspec.defstruct(
        "Narrow", [*required, *optional, *passed_over], rename=names, gc=False, forbid_unknown_fields=True
    )
    return msgspec.json.Decoder(narrow)


def _all_none(column: tuple[Any, ...]) -> bool:
    return column[0] is None and column.count(None) == len(column)
