"""Settings of the user as text, YAML or JSON, turned into plain data; whatever is wrong with a text is a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import ConfigError

_DEPTH, _ALIASES = 50, 50


def text_of(path: str | Path) -> str:
    """The text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start:,})") from None


def yaml_of(text: str, where: str | Path) -> Any:
    """What a YAML text holds; one that is endless when its aliases are followed is refused."""
    import yaml

    try:
        _refuse_deep(where, yaml.parse(text, Loader=yaml.SafeLoader))
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        _refuse_twice(where, root)
        return None if root is None else loader.construct_document(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark else where
        raise ConfigError(f"{place}: is not YAML: {getattr(error, 'problem', None) or error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # of values with a tag
        raise ConfigError(f"{where}: is not YAML: {error}") from None


def json_of(path: str | Path) -> Any:
    """What a JSON file holds."""
    try:
        return msgspec.json.decode(text_of(path))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise ConfigError(f"{path}: is not JSON: {error}") from None


def _refuse_deep(where: str | Path, events: Iterable[Any]) -> None:
    from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

    depth = aliases = 0
    for event in events:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        aliases += isinstance(event, AliasEvent)
        if depth > _DEPTH or aliases > _ALIASES:
            what = f"nested deeper than {_DEPTH} levels" if depth > _DEPTH else f"over {_ALIASES} aliases"
            raise ConfigError(f"{where}: is refused: {what}")


def _refuse_twice(where: str | Path, root: Any) -> None:
    """A key that stands twice in one table, of which YAML would take the last without a word."""
    from yaml.nodes import CollectionNode, MappingNode, ScalarNode

    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if not isinstance(node, CollectionNode) or id(node) in seen:
            continue
        seen.add(id(node))
        if not isinstance(node, MappingNode):
            waiting += node.value
            continue
        keys = [(key.tag, key.value, key) for key, _ in node.value if isinstance(key, ScalarNode)]
        first = {(tag, value): key for tag, value, key in reversed(keys)}
        again = next((key for tag, value, key in keys if first[tag, value] is not key), None)
        if again is not None:
            line = first[again.tag, again.value].start_mark.line + 1
            raise ConfigError(
                f"{where}:{again.start_mark.line + 1}: the key {again.value!r} stands already on line {line}"
            )
        waiting += [part for pair in node.value for part in pair]


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
