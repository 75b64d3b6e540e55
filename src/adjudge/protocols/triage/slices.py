"""What a `meta` object holds at the keys that slices are cut by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from adjudge.provenance.canonical import canonical
from adjudge.readers.scan import Path


class SliceTexts:
    """What a `meta` object holds at the keys that slices are cut by, as a short text.

    For every slice a list: nothing where the first key is not there, so that the manifest may say it; otherwise the
    value, null for none; and where that is no single value, what it is instead.
    """

    def __init__(self, slices: Sequence[str]) -> None:
        self._keys = [name.removeprefix("meta.").split(".") for name in slices]
        self.paths: list[Path] = list(dict.fromkeys(("meta", key[0]) for key in self._keys))

    def text(self, meta: msgspec.Raw) -> str:
        """The text of a record's `meta`."""
        found = msgspec.json.decode(meta) if bytes(meta) else None
        values = [_at(found, key) if isinstance(found, dict) else [] for key in self._keys]
        return msgspec.json.encode(values).decode()


def _at(meta: dict[str, Any], key: Sequence[str]) -> list[str | None]:
    if key[0] not in meta:
        return []
    value: Any = meta
    for part in key:
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, dict | list):
        return [None, "an object" if isinstance(value, dict) else "a list"]
    return [value if value is None or isinstance(value, str) else canonical(value).decode()]
