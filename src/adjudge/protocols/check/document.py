"""A rule file as plain data with the line of every part: YAML 1.2 scalars, no repeated keys, no aliases."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from adjudge.errors import ConfigError

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

    def place(self, way: Way, *, key: bool = False) -> str:
        """The file and line of a part (of its key, if asked), followed by the way to it."""
        words = ".".join(str(part) for part in way)
        lines = self.keys if key else self.lines
        line = next((lines[way[:size]] for size in range(len(way), -1, -1) if way[:size] in lines), None)
        place = self.where if line is None else f"{self.where}:{line}"
        return f"{place}: {words}" if words else place

    def error(self, way: Way, what: str, *, key: bool = False) -> ConfigError:
        """An error at one part."""
        return ConfigError(f"{self.place(way, key=key)}: {what}")


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
