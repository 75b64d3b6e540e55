"""Text that came from outside: shown whole, but never able to move a cursor, hide itself or turn the reading direction."""

from __future__ import annotations

import json
import unicodedata

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_KEPT = frozenset("\n\t")
_HIDING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def terminal(text: str) -> str:
    r"""The text with control and formatting characters written out (`\x1b`), so that a terminal prints and obeys nothing."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character in _KEPT or not _hides(character)
        else f"\\x{ord(character):02x}"
        if ord(character) < 0x100
        else f"\\u{ord(character):04x}"
        for character in text.replace("\r\n", "\n")
    )


def json_line(text: str) -> str:
    """JSON that means the same, with every such character as an escape."""
    if text.isprintable():
        return text
    return "".join(json.dumps(character)[1:-1] if _hides(character) else character for character in text)


def spreadsheet(value: object) -> str:
    """A cell of a CSV file that no spreadsheet takes for a formula; numbers stand as they are, None is empty."""
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value)
    return f"'{text}" if not isinstance(value, int | float) and text.startswith(_FORMULA) else text


def _hides(character: str) -> bool:
    """Whether it shows as nothing, or is no character at all (U+FFFE), which XML does not take."""
    number = ord(character)
    nothing = number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF
    return nothing or unicodedata.category(character) in _HIDING


def line(text: str, limit: int | None = None) -> str:
    """The same on one line, cut with an ellipsis at `limit` characters."""
    flat = " ".join(terminal(text).split())
    return flat if limit is None or len(flat) <= limit else flat[: limit - 1] + "…"
