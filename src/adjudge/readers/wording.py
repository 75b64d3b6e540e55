"""What the JSON decoder found wrong, in the words of our messages."""

from __future__ import annotations

import json
import re

import msgspec

_MISSING = re.compile(r"Object missing required field `([^`]*)`(?: - at `\$([^`]*)`)?")
_KIND = re.compile(r"Expected `(.+?)`, got `([^`]*)`(?: - at `\$([^`]*)`)?")
_BOUND = re.compile(r"Expected `(\w+)` ([<>=].+?)(?: - at `\$([^`]*)`)?")
_VALUE = re.compile(r"Invalid (?:enum )?value (.+?)(?: - at `\$([^`]*)`)?")
_AT = re.compile(r"(.+?) - at `\$([^`]*)`")
_BYTE = re.compile(r"\(byte (\d+)\)")
_KINDS = {
    "object": "an object",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}


def in_words(error: Exception) -> str:
    """A decoder's error as a reader of the file understands it."""
    text = str(error)
    if isinstance(error, RecursionError):
        return "it is nested too deep to be read"
    if isinstance(error, UnicodeError):
        return "it holds bytes that are not UTF-8"
    if not isinstance(error, msgspec.ValidationError):
        if "truncated" in text or "end of" in text:
            return "it ends in the middle of a value"
        place = _BYTE.search(text)
        return f"it cannot be read on from byte {int(place[1]) + 1}" if place else "it is no JSON value"
    if match := _MISSING.fullmatch(text):
        return f"{_place(match[2], 'the record')} has no `{match[1]}`"
    if match := _KIND.fullmatch(text):
        return f"{_place(match[3], 'the record')} is {_kinds(match[2])}, expected {_kinds(match[1])}"
    if match := _BOUND.fullmatch(text):
        return f"{_place(match[3], 'the record')} is out of range, expected {_kinds(match[1])} {match[2]}"
    if match := _VALUE.fullmatch(text):
        return f"{_place(match[2], 'the record')} is {match[1]}, which is not one of the allowed values"
    if "out of range" in text:
        return "it holds a number too large to be one"
    if match := _AT.fullmatch(text):
        return f"{_place(match[2], 'the record')}: {match[1]}"
    return text


def shown(value: object, limit: int = 60) -> str:
    """A JSON value as a reader may see it in a message."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _place(path: str | None, whole: str) -> str:
    return f"`{path.lstrip('.')}`" if path else whole


def _kinds(names: str) -> str:
    """Kinds as msgspec lists them: `int | null`."""
    words = [_KINDS.get(name.strip(), name.strip()) for name in names.split("|")]
    return " or ".join(word for word in words if word != "null" or len(words) == 1)
