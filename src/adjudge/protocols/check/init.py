"""A first rule file from data: the fields that answers have, their types, what was seen of them; to be edited."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
import yaml

from adjudge.errors import InputError
from adjudge.protocols.check.declarations import Path, part_name
from adjudge.protocols.check.names import RESERVED, quoted
from adjudge.readers.blocks import blocks
from adjudge.readers.extract import Extractor
from adjudge.readers.records import Shape, shape_of
from adjudge.readers.sources import open_source

LOOKED = 2000
MOST_WORDS = 8
MOST_FIELDS = 60
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_KINDS: dict[type, str] = {
    type(None): "null", bool: "boolean", int: "number", float: "number", str: "text", list: "list", dict: "object"
}  # fmt: skip
_OURS = {"id", "model", "error", "meta", "input", "response"}


@dataclass
class _Seen:
    """What was seen of one key."""

    count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    words: Counter[Any] = field(default_factory=Counter)
    low: float = float("inf")
    high: float = float("-inf")
    numerals: int = 0
    inner: dict[str, _Seen] = field(default_factory=dict)

    def add(self, value: Any) -> None:
        """One more value."""
        self.count += 1
        kind = _KINDS[type(value)]
        self.kinds[kind] += 1
        if kind == "number":
            self.low, self.high = min(self.low, value), max(self.high, value)
        elif kind == "text":
            if _NUMBER.fullmatch(value):
                self.numerals += 1
                self.low, self.high = min(self.low, float(value)), max(self.high, float(value))
            if len(self.words) <= 200:
                self.words[value] += 1
        elif kind in {"object", "list"}:
            for each in value if kind == "list" else [value]:
                if isinstance(each, dict):
                    for key, item in each.items():
                        self.inner.setdefault(key, _Seen()).add(item)
                elif kind == "list":
                    self.words[_KINDS[type(each)]] += 1

    @property
    def kind(self) -> str:
        """The kind of most of its values that are there."""
        if self.in_quotes:
            return "number"
        kind = next((kind for kind, _ in self.kinds.most_common() if kind != "null"), "text")
        dates = sum(count for word, count in self.words.items() if _DATE.fullmatch(str(word)))
        return "date" if kind == "text" and dates > 0.9 * self.words.total() else kind

    @property
    def in_quotes(self) -> bool:
        """Whether its values are numbers in quotes, as all those of a CSV file are."""
        return 0 < self.numerals == self.count - self.kinds["null"]


def first_rules(path: str, json_path: str | None = None) -> str:
    """The text of a rule file for the answers in a file, or in a list inside it."""
    records = list(islice(_records(path, shape_of("outputs", json_path, {})), LOOKED))
    answers = [answer for record in records if (answer := _answer(record)) is not None]
    whole = not answers or any("response" not in record for record in records)
    if whole:
        answers = [{key: value for key, value in record.items() if key not in _OURS} for record in records]
    seen = _Seen()
    for answer in answers:
        seen.add(answer)
    if not seen.inner:
        raise InputError("no record holds an object to make rules for", file=path)
    return _written(path, seen.inner, len(answers), len(records), whole=whole)


def _records(path: str, shape: Shape) -> Iterator[dict[str, Any]]:
    """The records of a file that are objects."""
    with open_source(path) as source:
        for block in blocks(source, 0, shape):
            for record in block.records():
                try:
                    row = msgspec.json.decode(record)
                except (msgspec.DecodeError, UnicodeError, RecursionError):
                    continue
                if isinstance(row, dict):
                    yield row


def _answer(row: dict[str, Any]) -> dict[str, Any] | None:
    """The object in the `response` of a record."""
    text = row.get("response")
    if isinstance(text, dict):
        return text
    if not isinstance(text, str):
        return None
    try:
        value = msgspec.json.decode(text[text.find("{") : text.rfind("}") + 1])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        keys = re.findall(r'"([^"\\]{1,60})"\s*:', text[:10_000])
        value = Extractor(list(dict.fromkeys(keys))).extract(text).value if keys else None
    return value if isinstance(value, dict) else None


def _written(path: str, seen: dict[str, _Seen], answers: int, records: int, *, whole: bool) -> str:
    lists = [key for key, each in seen.items() if each.kind == "list" and each.inner and records == 1]
    alone = "# There is one record only: if the items of `{}` are meant, add --json-path {}"
    lines = [
        *(alone.format(key, Path((key,))) for key in lists),
        f"# Made from {answers:,} answers in {records:,} records of {path}; what was seen is a start, not a rule. Edit it,",
        "# then: adjudge check lint rules.yaml",
        "adjudge: 1",
        "name: my rules",
        *(["extract: none                     # every record is an answer itself"] if whole else []),
        "fields:",
    ]
    names: set[str] = set()
    for key, each in list(seen.items())[:MOST_FIELDS]:
        lines += _field_lines((key,), each, answers, names)
    numbers = [name for name in names if name in seen and seen[name].kind == "number"]
    numbers.sort(key=lambda name: (quoted(name) != name, name))  # one that needs no quotes first
    example = [f"  first.rule: {_scalar(quoted(numbers[0]) + ' >= 0')}"] if numbers else []
    lines += [
        "rules:" if example else "rules: {}",
        "  # family.name: an expression that is true where an answer is right (docs/protocols/check.md)",
        *example,
        "# tests:                          # rows that a rule must fail: adjudge check lint runs them",
        "#   - {row: {FIELD: VALUE}, fails: [first.rule]}",
    ]
    return "\n".join(lines) + "\n"


def _field_lines(way: tuple[str, ...], each: _Seen, answers: int, names: set[str]) -> list[str]:
    """The lines of one key; an object becomes a field for each of its members."""
    if each.kind == "object" and len(way) < 3 and each.inner:
        return [
            line
            for key, inner in list(each.inner.items())[:MOST_FIELDS]
            for line in _field_lines((*way, key), inner, answers, names)
        ]
    name = _name(way, names)
    names.add(name)
    parts = [f"path: {_scalar(Path(way))}", f"type: {_scalar(_type(each))}"]
    if each.in_quotes:
        parts.append("lenient: true")
    if each.count < answers or each.kinds["null"]:
        parts.append("required: false")
    words = [word for word, _ in sorted(each.words.items(), key=lambda item: str(item[0]))]
    if each.kind == "text" and each.count >= 20 and 1 < len(words) <= MOST_WORDS and each.count >= 3 * len(words):
        parts.append(f"one_of: [{', '.join(_scalar(word) for word in words)}]")
    notes = []
    if each.kind == "number":
        notes.append(f"seen {each.low:g} to {each.high:g}{', in quotes' if each.in_quotes else ''}")
    if each.count < answers:
        notes.append(f"in {100 * each.count / answers:.0f} % of the answers")
    usual = {each.kind, "null", *(["text"] if each.kind == "date" or each.in_quotes else [])}
    if others := sorted(each.kinds.keys() - usual):
        notes.append(f"also {', '.join(f'{kind} {each.kinds[kind]:,} times' for kind in others)}")
    comment = f"  # {'; '.join(notes)}" if notes else ""
    return [f"  {_scalar(name)}: {{{', '.join(parts)}}}{comment}"]


def _name(way: tuple[str, ...], names: set[str]) -> str:
    name = way[-1] if way[-1] not in RESERVED and way[-1] not in names else "_".join(way)
    while name in names or name in RESERVED:
        name += "_"
    return name


def _type(each: _Seen) -> str:
    if each.kind == "list":
        plain = {key: inner.kind for key, inner in each.inner.items() if inner.kind not in {"list", "object"}}
        if plain:
            return f"list({', '.join(f'{part_name(key)} {kind}' for key, kind in plain.items())})"
        item = each.words.most_common(1)[0][0] if each.words else "text"
        return f"list({item if item in {'number', 'text', 'boolean'} else 'text'})" if item != "list" else "json"
    return "json" if each.kind == "object" else each.kind


def _scalar(value: Any) -> str:
    """A text as YAML, in quotes where it needs them."""
    text = str(value)
    other = {"true", "false", "null", "yes", "no", "on", "off"}
    plain = re.fullmatch(r"[A-Za-z$_][A-Za-z0-9_.$ ]*", text) and text.lower() not in other
    return text if plain and text == text.strip() else str(yaml.dump(text, default_style='"', width=10_000)).strip()
