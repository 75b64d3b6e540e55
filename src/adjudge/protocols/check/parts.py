"""The parts of a rule file, each asked for the kind of value it should be; one that is another is a ConfigError with its line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from adjudge.errors import ConfigError
from adjudge.protocols.check.document import Document, Way
from adjudge.protocols.check.hints import nearest
from adjudge.protocols.check.paths import ABSENT

Parsed = TypeVar("Parsed")


class Part:
    """One part of a document: its value, ABSENT where it is not there, and the way to it."""

    def __init__(self, document: Document, way: Way, value: Any) -> None:
        self.document, self.way, self.value = document, way, value

    def __getitem__(self, key: str | int) -> Part:
        """A part of this table or list."""
        absent = isinstance(self.value, dict) and key not in self.value
        return Part(self.document, (*self.way, key), ABSENT if absent else self.value[key])

    def __contains__(self, key: str) -> bool:
        return key in self.value

    @property
    def empty(self) -> bool:
        """Whether it is not there, or null."""
        return self.value is ABSENT or self.value is None

    def table(self) -> dict[str, Part]:
        """The parts of a table by name; none where it is absent."""
        if not self.empty and not isinstance(self.value, dict):
            raise self.wrong(f"is {shown(self.value)}, expected a table of names")
        return {} if self.empty else {key: self[key] for key in self.value}

    def items(self) -> list[Part]:
        """The items of a list; none where it is absent."""
        if not self.empty and not isinstance(self.value, list):
            raise self.wrong(f"is {shown(self.value)}, expected a list, each item behind a dash or in [ ]")
        return [] if self.empty else [self[place] for place in range(len(self.value))]

    def known(self, keys: Sequence[str], what: str = "key") -> None:
        """Refuse a key that has no meaning there."""
        for key in self.value:
            if key not in keys:
                known = "" if what == "field" and not keys else f"; the {what}s here are {', '.join(map(str, keys))}"
                raise self[key].misnamed(f"{key!r} is no {what} here{near(key, keys)}{known}")

    def words(self) -> tuple[str, ...]:
        """A list of names."""
        names = [] if self.value is ABSENT else self.value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self.wrong(f"is {shown(names)}, expected a list of names in [ ]")
        return tuple(names)

    def text(self, default: str | None = None) -> str:
        """A text."""
        value = default if self.value is ABSENT else self.value
        if not isinstance(value, str):
            raise self.wrong(f"is {shown(value)}, expected text{'' if value is None else '; put it in quotes'}")
        return value

    def truth(self, default: bool) -> bool:
        """True or false."""
        value = default if self.value is ABSENT else self.value
        if not isinstance(value, bool):
            raise self.wrong(f"is {shown(value)}, expected true or false")
        return value

    def whole(self, default: int, low: int, high: int) -> int:
        """A whole number within bounds."""
        value = default if self.value is ABSENT else self.value
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(f"is {shown(value)}, expected a whole number from {low} to {high}")
        return value

    def choice(self, *words: str) -> str:
        """One of some words, the first where it is absent."""
        value = words[0] if self.value is ABSENT else self.value
        if value not in words or not isinstance(value, str):
            raise self.wrong(f"is {shown(value)}, expected one of {', '.join(words)}{near(str(value), words)}")
        return value

    def parsed(self, parse: Callable[[str], Parsed]) -> Parsed:
        """A text as something else; why it is none is a ValueError or ConfigError of `parse`."""
        text = self.text()
        try:
            return parse(text)
        except (ValueError, ConfigError) as error:
            raise self.wrong(str(error)) from None

    def wrong(self, what: str) -> ConfigError:
        """An error at this part."""
        return self.document.error(self.way, what)

    def misnamed(self, what: str) -> ConfigError:
        """An error at the key of this part."""
        return self.document.error(self.way, what, key=True)


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
