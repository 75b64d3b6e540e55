"""How a user's records become the records that a protocol reads: where they sit, and what their keys are called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from adjudge.errors import ConfigError, InputError
from adjudge.readers.wording import in_words

_ABSENT: Final = object()


@dataclass
class Shape:
    """`path` leads from a record to the records inside it; `columns` are (our key, the user's key), dots for nesting.

    `seen` counts the records in which a user's key was there.
    """

    path: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    seen: dict[str, int] = field(default_factory=dict)

    @property
    def as_it_is(self) -> bool:
        """Whether records are read as they are."""
        return not self.path and not self.columns

    def applied(self, record: bytes, file: str, line: int) -> Iterator[bytes]:
        """The records that one record of the file holds, with our keys."""
        try:
            value: Any = msgspec.json.decode(record)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise InputError(f"is not JSON: {in_words(error)}", file=file, line=line) from None
        for name in self.path:
            if not isinstance(value, dict) or name not in value:
                keys = ", ".join(list(value)[:8]) if isinstance(value, dict) else "no keys"
                what = f"has no {name!r} on the way $.{'.'.join(self.path)} (--json-path); it has {keys}"
                raise InputError(what, file=file, line=line)
            value = value[name]
        for item in value if isinstance(value, list) and self.path else [value]:
            yield msgspec.json.encode(self._renamed(item) if isinstance(item, dict) else item)

    def refuse_unseen(self, where: str) -> None:
        """A column that no record of a file has is a mistake of the command."""
        for ours, theirs in self.columns:
            if not self.seen.get(theirs):
                raise ConfigError(f"--column {ours}={theirs}: no record of {where} has a key {theirs!r}")

    def _renamed(self, record: dict[str, Any]) -> dict[str, Any]:
        values = [(ours, theirs, _at(record, theirs)) for ours, theirs in self.columns]
        renamed = record
        for _, theirs in self.columns:
            renamed = _without(renamed, [theirs] if theirs in renamed else theirs.split("."))
        for ours, theirs, value in values:
            if value is not _ABSENT:
                self.seen[theirs] = self.seen.get(theirs, 0) + 1
                _put(renamed, ours, value)
        return renamed


AS_IT_IS: Final = Shape()


def shape_of(role: str, json_path: str | None, columns: dict[str, str]) -> Shape:
    """The shape of one role's files; a column may be of one role alone (`reference:id=key`)."""
    path = tuple(part for part in (json_path or "").removeprefix("$").split(".") if part)
    chosen = []
    for ours, theirs in columns.items():
        its_role, colon, name = ours.partition(":")
        if not colon or its_role == role:
            chosen.append((name if colon else ours, theirs))
    return Shape(path, tuple(chosen))


def columns_of(words: list[str]) -> dict[str, str]:
    """The columns that `OURS=THEIRS` words name."""
    columns: dict[str, str] = {}
    for word in words:
        ours, equals, theirs = word.partition("=")
        if not equals or not ours or not theirs:
            raise ConfigError(f"--column {word!r} is not OURS=THEIRS, such as id=question_id")
        if ours in columns:
            raise ConfigError(f"--column {ours!r} is given twice")
        columns[ours] = theirs
    return columns


def _at(record: dict[str, Any], key: str) -> Any:
    """The value of a key, or of a path with dots where no key is called so."""
    if key in record:
        return record[key]
    value: Any = record
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return _ABSENT
        value = value[part]
    return value


def _without(record: dict[str, Any], way: list[str]) -> dict[str, Any]:
    """A copy without the value at the end of a way, nor an object that is empty then."""
    first, *rest = way
    inner = record.get(first)
    left = _without(inner, rest) if rest and isinstance(inner, dict) else {} if not rest else inner
    return {key: left if key == first else value for key, value in record.items() if key != first or left}


def _put(record: dict[str, Any], key: str, value: Any) -> None:
    *way, last = key.split(".")
    for part in way:
        inner = record.get(part)
        copied = dict(inner) if isinstance(inner, dict) else {}
        record[part] = copied
        record = copied
    record[last] = value
