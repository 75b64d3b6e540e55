"""What a file is: its format, how many records it has, and which keys with which types, shares and examples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from adjudge.readers.blocks import blocks
from adjudge.readers.records import Shape
from adjudge.readers.sources import format_of, open_source

FIRST, EVERY = 10_000, 100
"""Keys are looked at in the first records, and in every so many after them."""

_DEPTH = 3
_EXAMPLE = 32
_TYPES = {str: "text", bool: "true/false", int: "whole number", float: "number", list: "list", dict: "object"}


@dataclass
class Key:
    """One key, nested ones with dots: in how many records it stands, its types, and one value."""

    name: str
    count: int = 0
    types: Counter[str] = field(default_factory=Counter)
    example: str = ""


@dataclass
class Description:
    """One file. `inside` are lists of objects within a document, by path, with their lengths.

    `other` are the records, of those looked at, that are no JSON objects; `first_other` is the line and text of the first.
    """

    path: str
    format: str
    size: int = 0
    records: int = 0
    looked: int = 0
    keys: dict[str, Key] = field(default_factory=dict)
    inside: dict[str, int] = field(default_factory=dict)
    samples: list[bytes] = field(default_factory=list)
    other: int = 0
    first_other: tuple[int, str] = (0, "")


def describe(path: str, shape: Shape) -> Description:
    """Read a file from front to back and say what is in it."""
    with open_source(path) as source:
        packed = " (compressed)" if source.compressed else ""
        description = Description(path, format_of(source) + packed)
        for block in blocks(source, 0, shape):
            for place, record in enumerate(block.records(), description.records):
                if place < FIRST or place % EVERY == 0:
                    _look(record, int(block.lines[place - description.records]), description)
            description.records += len(block)
        description.size = source.bytes
    return description


def _look(record: bytes, line: int, description: Description) -> None:
    description.looked += 1
    try:
        value = msgspec.json.decode(record, type=dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        if not description.other:
            description.first_other = line, record[:_EXAMPLE].decode("utf-8", "replace")
        description.other += 1
    else:
        description.samples.append(record)
        _keys(value, "", description, 1)


def _keys(value: dict[str, Any], prefix: str, description: Description, depth: int) -> None:
    for name, inner in value.items():
        path = f"{prefix}{name}"
        key = description.keys.setdefault(path, Key(path))
        key.count += 1
        key.types["null" if inner is None else _TYPES[type(inner)]] += 1
        if not key.example and inner not in (None, "", [], {}):
            text = msgspec.json.encode(inner).decode()
            key.example = text if len(text) <= _EXAMPLE else text[: _EXAMPLE - 1] + "…"
        if isinstance(inner, dict) and depth < _DEPTH:
            _keys(inner, f"{path}.", description, depth + 1)
        elif isinstance(inner, list) and inner and all(isinstance(item, dict) for item in inner[:10]):
            description.inside[path] = description.inside.get(path, 0) + len(inner)
