"""Which keys of the input nobody reads: told by the type that a role's records are decoded into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import inspect

KeyTree = Mapping[str, Any]
"""The keys that are read; the value is the tree of a nested object, or None where all of it is read."""

_NESTED = (dict, list)
_ANY = msgspec.json.Decoder()


def tree_of(kind: Any) -> KeyTree | None:
    """The keys that decoding into a type reads; None where the type takes any keys."""
    return kind if isinstance(kind, Mapping) else _tree(inspect.type_info(kind))


def merged(*trees: KeyTree | None) -> KeyTree | None:
    """The keys that any of some types read, where each record is one of them."""
    known: dict[str, Any] = {}
    for tree in trees:
        if tree is None:
            return None
        for name, inner in tree.items():
            known[name] = merged(known[name], inner) if name in known else inner
    return known


def unread_keys(records: Iterable[bytes], known: KeyTree) -> Counter[str]:
    """In how many records each key stands that nobody reads, nested ones with dots."""
    counts: Counter[str] = Counter()
    for record in records:
        unread: set[str] = set()
        try:
            _look(_ANY.decode(record), known, "", unread)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue  # whoever reads the record says what is wrong with it
        counts.update(unread)
    return counts


def _look(value: Any, known: KeyTree, prefix: str, unread: set[str]) -> None:
    if type(value) is list:
        for item in value:
            _look(item, known, prefix, unread)
    elif type(value) is dict:
        if not value.keys() <= known.keys():
            unread.update(prefix + name for name in value.keys() - known.keys())
        for name, inner in value.items():
            if type(inner) in _NESTED and (nested := known.get(name)) is not None:
                _look(inner, nested, f"{prefix}{name}.", unread)


def _tree(kind: inspect.Type) -> KeyTree | None:
    if isinstance(kind, inspect.StructType):
        return {field.encode_name: _tree(field.type) for field in kind.fields}
    if isinstance(kind, inspect.UnionType):
        trees = [_tree(one) for one in kind.types if isinstance(one, inspect.StructType | inspect.ListType)]
        return merged(*trees) if trees else None
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return _tree(kind.item_type)
    return None
