"""Which keys of the input nobody reads: told by the type that a role's records are decoded into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect

KeyTree = Mapping[str, Any]
"""The keys that are read; the value is the tree of a nested object, or None where all of it is read."""

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


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


@dataclass(frozen=True)
class Keys:
    """The keys that are read, and a decoder that takes no others: for records that have no others it is quick."""

    tree: KeyTree
    strict: msgspec.json.Decoder[Any]

    @classmethod
    def of(cls, kind: Any) -> Keys | None:
        """The keys of a type or a tree; None where any key is read."""
        tree = tree_of(kind)
        return None if tree is None else cls(tree, msgspec.json.Decoder(_strict(tree)))


def unread_keys(records: Sequence[bytes], keys: Keys) -> Counter[str]:
    """In how many records each key stands that nobody reads, nested ones with dots; null is nothing to read."""
    counts: Counter[str] = Counter()
    try:
        keys.strict.decode_lines(b"\n".join(records))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        known = keys.tree  # somewhere there is another key, or a value of another kind
    else:
        return counts
    for record in records:
        unread: set[str] = set()
        try:
            _look(record, known, "", unread)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue  # whoever reads the record says what is wrong with it
        counts.update(unread)
    return counts


def _look(text: bytes, known: KeyTree, prefix: str, unread: set[str]) -> None:
    """Note the unread keys of the objects in a JSON text; what nobody asks for in them is passed over."""
    if text[:1] == b"[":
        for item in _LIST.decode(text):
            _look(bytes(item), known, prefix, unread)
    elif text[:1] == b"{":
        values = _OBJECT.decode(text)
        for name, value in values.items():
            if name not in known:
                if bytes(value) != b"null":
                    unread.add(prefix + name)
            elif (nested := known[name]) is not None:
                _look(bytes(value), nested, f"{prefix}{name}.", unread)


def _strict(tree: KeyTree) -> Any:
    """A struct of these keys alone, nested ones too; their values are passed over."""
    fields: list[tuple[str, Any, Any]] = []
    for place, inner in enumerate(tree.values()):
        if inner is None:
            fields.append((f"f{place}", msgspec.Raw, msgspec.Raw(b"")))
        else:
            nested = _strict(inner)
            fields.append((f"f{place}", nested | list[nested] | None, None))  # type: ignore[valid-type]
    names = {f"f{place}": name for place, name in enumerate(tree)}
    return msgspec.defstruct("Strict", fields, rename=names, forbid_unknown_fields=True, gc=False)


def _tree(kind: inspect.Type) -> KeyTree | None:
    if isinstance(kind, inspect.StructType):
        return {field.encode_name: _tree(field.type) for field in kind.fields}
    if isinstance(kind, inspect.UnionType):
        trees = [_tree(one) for one in kind.types if isinstance(one, inspect.StructType | inspect.ListType)]
        return merged(*trees) if trees else None
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return _tree(kind.item_type)
    return None
