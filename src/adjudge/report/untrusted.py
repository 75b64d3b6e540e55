"""Text that came from outside: shown whole, but never able to move a cursor, hide itself or turn the reading direction."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")
_HIDING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def terminal(text: str) -> str:
    r"""The text with control and formatting characters written out (`\x1b`), so that a terminal prints and obeys nothing."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in _KEPT or not _hides(character)
        else f"\\x{ord(character):02x}"
        if ord(character) < 0x100
        else f"\\u{ord(character):04x}"
        for character in text.replace("\r\n", "\n")
    )


def _hides(character: str) -> bool:
    """Whether it shows as nothing, or is no character at all (U+FFFE), which XML does not take."""
    number = ord(character)
    nothing = number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF
    return nothing or unicodedata.category(character) in _HIDING


def line(text: str, limit: int | None = None) -> str:
    """The same on one line, cut with an ellipsis at `limit` characters."""
    flat = " ".join(terminal(text).split())
    return flat if limit is None or len(flat) <= limit else flat[: limit - 1] + "…"
