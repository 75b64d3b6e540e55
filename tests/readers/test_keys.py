"""Keys that nothing reads, by the type that records are decoded into."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from adjudge.readers.blocks import Keys, merged, tree_of, unread_keys


class Inner(msgspec.Struct):
    x: float | None = None


class Row(msgspec.Struct, rename={"kind": "type"}):
    id: str
    kind: str = ""
    inner: Inner | None = None
    many: list[Inner] = []
    free: dict[str, Any] = {}
    raw: msgspec.Raw = msgspec.Raw(b"")


def unread(*records):
    return dict(unread_keys([json.dumps(record).encode() for record in records], Keys.of(Row)))


def test_known_keys_are_read_at_every_depth():
    assert (
        unread({"id": "a", "type": "t", "inner": {"x": 1}, "many": [{"x": 1}], "free": {"a": 1}, "raw": {"b": 1}}) == {}
    )


def test_unread_keys_are_counted_once_a_record():
    rows = ({"id": "a", "kind": 1, "inner": {"y": 1}}, {"id": "b", "many": [{"z": 1}, {"z": 2}], "inner": None})
    assert unread(*rows) == {"kind": 1, "inner.y": 1, "many.z": 1}


def test_a_record_of_one_of_several_shapes():
    tree = merged(tree_of(Row), {"id": None, "other": None, "inner": {"w": None}})
    record = b'{"id": 1, "other": 2, "inner": {"w": 1, "x": 2, "y": 3}}'
    assert dict(unread_keys([record], Keys.of(tree))) == {"inner.y": 1}


def test_what_is_no_object_has_no_keys():
    assert unread_keys([b"[1, 2", b"3", b'{"id": '], Keys.of(Row)) == {}
