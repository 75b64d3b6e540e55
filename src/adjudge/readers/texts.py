"""Columns of texts out of the JSON of many values at once, without a Python string for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pyarrow as pa
from pyarrow import json

NO_TEXT = msgspec.Raw(b"null")
"""The default of a field whose values `texts_of` makes a column of."""

_OPTIONS = json.ParseOptions(explicit_schema=pa.schema([("text", pa.string())]))


def texts_of(values: Sequence[msgspec.Raw], other: Callable[[int, msgspec.Raw], str | None]) -> pa.StringArray:
    """The texts, null where JSON has null; of a value that is no text, what `other(place, value)` gives.

    The values were decoded as a part of their records, so all are JSON, and the escapes in them stand for characters.
    """
    if all(value is NO_TEXT for value in values):
        return pa.nulls(len(values), pa.string())
    try:
        return _parsed(values)
    except pa.ArrowInvalid:  # somewhere stands a value of another kind
        read = [
            value if bytes(value)[:1] in b'"n' else msgspec.Raw(msgspec.json.encode(other(place, value)))
            for place, value in enumerate(values)
        ]
        return _parsed(read)


def _parsed(values: Sequence[msgspec.Raw]) -> pa.StringArray:
    lines = b'{"text":' + b'}\n{"text":'.join(values) + b"}"
    reading = json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    return json.read_json(pa.BufferReader(lines), reading, _OPTIONS).column("text").combine_chunks()
