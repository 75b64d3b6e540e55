"""A rule file as plain data with the line of every part: YAML 1.2 scalars, no repeated keys, no aliases.

Each part is asked for the kind of value it should be; one that is another is a ConfigError with its line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import yaml

from adjudge.errors import ConfigError
from adjudge.protocols.check.declarations import ABSENT
from adjudge.protocols.check.names import nearest

Parsed = TypeVar("Parsed")
Way: TypeAlias = "tuple[str | int, ...]"

MOST_BYTES = 1_000_000
MOST_DEPTH = 40
_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9]+(?:[eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None, "True": True, "False": False, "Null": None}
_QUOTE = "put the whole value in double quotes"


class _Loader(yaml.SafeLoader):
    """PyYAML's own events, without its resolver: every plain scalar is resolved here, as YAML 1.2 does."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 -- the base class declares it so


@dataclass
class Document:
    """The content of a rule file, and where in the file each part of it stands.

    `where` names the file, or the setting that holds the content; without lines a message names the way to the part.
    """

    content: dict[str, Any]
    where: str
    text: str = ""
    lines: dict[Way, int] = field(default_factory=dict)
    keys: dict[Way, int] = field(default_factory=dict)

    def error(self, way: Way, what: str, *, key: bool = False) -> ConfigError:
        """An error at one part: its file and line (that of its key, if asked), the way to it, and what is wrong."""
        words = ".".join(str(part) for part in way)
        lines = self.keys if key else self.lines
        line = next((lines[way[:size]] for size in range(len(way), -1, -1) if way[:size] in lines), None)
        place = self.where if line is None else f"{self.where}:{line}"
        return ConfigError(f"{place}: {words}: {what}" if words else f"{place}: {what}")


def load(path: str | Path) -> Document:
    """A rule file from disk."""
    name = str(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{name}: has {len(data):,} bytes; a rule file has at most {MOST_BYTES:,}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: is not UTF-8 text (byte {error.start:,})") from None
    return parse(text, name)


def parse(text: str, where: str) -> Document:
    """A rule file from its text."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        loader.dispose()
    except yaml.YAMLError as error:
        raise ConfigError(_unreadable(error, text, where)) from None
    except (ValueError, RecursionError):
        raise ConfigError(f"{where}: is not YAML that can be read") from None
    document = Document({}, where, text)
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{where}: is no rule file: expected a table with `adjudge: 1`, `fields` and `rules`")
    _refuse_aliases(text, where)
    document.content = _value(node, (), document, text.split("\n"))
    return document


def _refuse_aliases(text: str, where: str) -> None:
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            mark = "*" if isinstance(event, yaml.AliasEvent) else "&"
            name = getattr(event, "anchor", "")
            raise ConfigError(
                f"{where}:{event.start_mark.line + 1}: {mark}{name} is a YAML alias, which a rule file has none of; "
                "write the value out, or in quotes if the sign belongs to it"
            )


def _value(node: yaml.Node, way: Way, document: Document, lines: list[str]) -> Any:
    document.lines[way] = node.start_mark.line + 1
    if len(way) > MOST_DEPTH:
        raise document.error(way[:3], f"is nested more than {MOST_DEPTH} levels deep")
    if isinstance(node, yaml.ScalarNode):
        if node.tag not in {"!", "tag:yaml.org,2002:str"}:
            raise document.error(way, f"the tag {node.tag!r} is not for rule files; leave it out")
        return _scalar(node, way, document, lines)
    if node.tag not in {"!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}:
        raise document.error(way, f"the tag {node.tag!r} is not for rule files; leave it out")
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*way, index), document, lines) for index, item in enumerate(node.value)]
    content: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigError(f"{document.where}:{line}: a key must be one word, found a list or table")
        key = key_node.value
        if key in content:
            first = document.keys[(*way, key)]
            raise ConfigError(f"{document.where}:{line}: {key!r} stands twice in the same table; first on line {first}")
        document.keys[(*way, key)] = line
        content[key] = _value(value_node, (*way, key), document, lines)
    return content


def _scalar(node: yaml.ScalarNode, way: Way, document: Document, lines: list[str]) -> Any:
    if node.style is not None:
        return node.value
    line = lines[node.end_mark.line] if node.end_mark.line < len(lines) else ""  # YAML has further line breaks
    rest = line[node.end_mark.column :]
    if way[:1] == ("rules",) and re.match(r"\s+#", rest) and _unbalanced(node.value):
        raise document.error(way, f"YAML takes what follows # for a comment and cuts the expression there; {_QUOTE}")
    if node.value in _WORDS:
        return _WORDS[node.value]
    if _WHOLE.fullmatch(node.value) and len(node.value) <= 18:
        return int(node.value)
    if _NUMBER.fullmatch(node.value):
        return float(node.value)
    return node.value


def _unbalanced(text: str) -> bool:
    return text.count("'") % 2 == 1 or text.count('"') % 2 == 1 or text.count("(") != text.count(")")


def _unreadable(error: yaml.YAMLError, text: str, where: str) -> str:
    """Why a text is no YAML, at its line, with what to do where an expression is the likely cause."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or "cannot be read")
    if mark is None:
        return f"{where}: is not YAML: {problem}"
    lines = text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    hint = ""
    if "mapping values are not allowed" in problem:
        hint = f"; a value that holds `: ` must be quoted: {_QUOTE}"
    elif "found character '\\t'" in problem or "\t" in line[: len(line) - len(line.lstrip())]:
        hint = "; indent with spaces, not tabs"
    elif "found character" in problem or "while scanning" in str(getattr(error, "context", "")):
        hint = f"; a value that begins with one of @ ` % * & ! | > {{ [ must be quoted: {_QUOTE}"
    elif "expected <block end>" in problem or "did not find expected" in problem or "expected ','" in problem:
        hint = f"; a value with quotes or brackets inside must be quoted as a whole: {_QUOTE}"
    return f"{where}:{mark.line + 1}: is not YAML: {problem}{hint} (line {mark.line + 1}: {line.strip()[:80]})"


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
