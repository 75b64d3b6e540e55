"""The small parts of a document, each of an expected kind; what is of another is a ConfigError with its line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.errors import ConfigError
from adjudge.protocols.check.document import Document, Way
from adjudge.protocols.check.hints import nearest


class Parts:
    """A document whose parts are asked for by the way to them."""

    def __init__(self, document: Document) -> None:
        self.document, self.content = document, document.content

    def table(self, way: Way) -> dict[str, Any]:
        """The table under a key of the file; none where it is absent."""
        value = self.content.get(str(way[0]))
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(way, f"is {shown(value)}, expected a table of names")
        return value

    def list_of(self, way: Way) -> list[Any]:
        """The list under a key of the file; none where it is absent."""
        value = self.content.get(str(way[0]))
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(way, f"is {shown(value)}, expected a list, each item behind a dash or in [ ]")
        return value

    def known(self, table: Mapping[str, Any], keys: Sequence[str], way: Way, what: str = "key") -> None:
        """Refuse a key that has no meaning there."""
        for key in table:
            if key not in keys:
                known = "" if what == "field" and not keys else f"; the {what}s here are {', '.join(map(str, keys))}"
                raise self.document.error((*way, key), f"{key!r} is no {what} here{near(key, keys)}{known}", key=True)

    def words(self, way: Way, value: Any) -> tuple[str, ...]:
        """A list of names."""
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(way, f"is {shown(value)}, expected a list of names in [ ]")
        return tuple(value)

    def text(self, way: Way, value: Any) -> str:
        """A text."""
        if not isinstance(value, str):
            raise self.wrong(way, f"is {shown(value)}, expected text{'' if value is None else '; put it in quotes'}")
        return value

    def truth(self, way: Way, value: Any) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            raise self.wrong(way, f"is {shown(value)}, expected true or false")
        return value

    def whole(self, way: Way, value: Any, low: int, high: int) -> int:
        """A whole number within bounds."""
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(way, f"is {shown(value)}, expected a whole number from {low} to {high}")
        return value

    def choice(self, way: Way, value: Any, words: Sequence[str]) -> str:
        """One of some words."""
        if value not in words or not isinstance(value, str):
            hint = near(str(value), words)
            raise self.wrong(way, f"is {shown(value)}, expected one of {', '.join(words)}{hint}")
        return value

    def wrong(self, way: Way, what: str) -> ConfigError:
        """An error at a part."""
        return self.document.error(way, what)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def shown(value: Any) -> str:
    """A value as a message shows it."""
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def near(word: object, known: Any) -> str:
    """A suggestion: the known name that is most like a word."""
    close = nearest(str(word), [str(name) for name in known], 0.6)
    return f". Did you mean {close!r}?" if close else ""
