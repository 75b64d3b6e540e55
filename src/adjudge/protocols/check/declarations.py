"""What a field is declared as: where it stands in an answer (`$.customer.name`, `$["a key"]`, `$.lines[*].qty`), and its type.

The types are `number`, `text`, `boolean`, `date`, `json`, `list(…)` and `object(…)`; each says what it is elsewhere.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypedDict

import pyarrow as pa

EVERY: Final = None
"""The step of a path that goes into every item of a list."""
ABSENT: Final = object()
MOST_STEPS = 20
_STEP = re.compile(r"""\.([^.\[\]"'\s]+)|\[\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\d+)|(\*))\s*\]""")


@dataclass(frozen=True)
class Path:
    """Steps from the answer to a value: keys, numbers of items, and at most one EVERY."""

    steps: tuple[str | int | None, ...]

    @property
    def many(self) -> bool:
        """Whether it leads to many places."""
        return EVERY in self.steps

    def __str__(self) -> str:
        return "$" + "".join(_written(step) for step in self.steps)

    def value(self, answer: Any) -> Any:
        """The value at the end of a path to one place, or ABSENT."""
        return _walk(answer, self.steps)

    def holder(self, answer: Any) -> Any:
        """What should be the list that a path goes into, or ABSENT."""
        return _walk(answer, self.steps[: self.steps.index(EVERY)])

    def values(self, answer: Any) -> Any:
        """The values at every place of a path into a list, in order; ABSENT where there is no list."""
        items, after = self.holder(answer), self.steps[self.steps.index(EVERY) + 1 :]
        return [_walk(item, after) for item in items] if isinstance(items, list) else ABSENT


def parse_path(text: str) -> Path:
    """A path from its text; a ValueError says what is wrong."""
    if not text.startswith("$"):
        raise ValueError(f"is {text!r}; a path begins with $, such as $.{text.strip('./') or 'total'}")
    steps: list[str | int | None] = []
    position = 1
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(
                f'cannot be read from {text[position:]!r} on; write $.key, $["a key"], $.list[0] or $.list[*]'
            )
        name, double, single, number, _ = match.groups()
        quoted = double if double is not None else single
        if name is not None:
            steps.append(name)
        elif quoted is not None:
            steps.append(re.sub(r"\\(.)", r"\1", quoted))
        else:
            steps.append(int(number) if number is not None else EVERY)
        position = match.end()
    if not steps:
        raise ValueError("is the whole answer; a field is one part of it, such as $.total")
    if steps.count(EVERY) > 1:
        raise ValueError("goes into lists twice; a path has one [*], and a field of type list(…) holds the rest")
    if len(steps) > MOST_STEPS:
        raise ValueError(f"has more than {MOST_STEPS} steps")
    return Path(tuple(steps))


def _walk(value: Any, steps: tuple[str | int | None, ...]) -> Any:
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
        else:
            value = value[step] if isinstance(value, list) and step is not None and step < len(value) else ABSENT
    return value


def _written(step: str | int | None) -> str:
    if step is EVERY:
        return "[*]"
    if isinstance(step, int):
        return f"[{step}]"
    plain = re.fullmatch(r"[^.\[\]\"'\s]+", step)
    return f".{step}" if plain else '["' + re.sub(r'(["\\])', r"\\\1", step) + '"]'


MOST_PARTS = 200
_TOKEN = re.compile(r'\s*(?:([(),])|"((?:[^"]|"")+)"|([^\s(),"]+)|(?P<open>"))')
_OTHERS = {
    **dict.fromkeys(("int", "integer", "float", "double", "decimal", "numeric", "real", "bigint"), "number"),
    **dict.fromkeys(("str", "string", "varchar", "char", "enum"), "text"),
    "bool": "boolean",
    **dict.fromkeys(("datetime", "timestamp", "time"), "text"),
    **dict.fromkeys(("array", "sequence"), "list(…)"),
    **dict.fromkeys(("dict", "struct", "map", "table", "record"), "object(…)"),
    "any": "json",
}
"""What other tools call our types."""


@dataclass(frozen=True)
class FieldType:
    """A type: `kind` is one of the words; `parts` are the named members of an object, or of the objects in a list.

    `item` is the type of the items of a list of plain values.
    """

    kind: str
    parts: tuple[tuple[str, FieldType], ...] = ()
    item: FieldType | None = None

    def __str__(self) -> str:
        if self.item is not None:
            return f"list({self.item})"
        if self.parts:
            return f"{self.kind}({', '.join(f'{part_name(name)} {part}' for name, part in self.parts)})"
        return self.kind

    @property
    def inner(self) -> FieldType:
        """The type of the items of a list."""
        return self.item or FieldType("object", self.parts)

    @property
    def decoded(self) -> Any:
        """What msgspec decodes a value of this type into."""
        if self.kind == "list":
            inner = self.inner.decoded
            return list[inner | None]  # type: ignore[valid-type]
        if self.kind == "object":  # a missing member is null; unknown ones are passed over
            members = {name: part.decoded | None for name, part in self.parts}
            return TypedDict("Members", members, total=False)  # type: ignore[operator]
        return _SCALARS[self.kind][0]

    @property
    def arrow(self) -> pa.DataType:
        """The column type."""
        if self.kind == "list":
            return pa.list_(self.inner.arrow)
        if self.kind == "object":
            return pa.struct([(name, part.arrow) for name, part in self.parts])
        return _SCALARS[self.kind][1]

    @property
    def sql(self) -> str:
        """The type in DuckDB."""
        if self.kind == "list":
            return f"{self.inner.sql}[]"
        if self.kind == "object":
            return f"STRUCT({', '.join(f'{_always_quoted(name)} {part.sql}' for name, part in self.parts)})"
        return _SCALARS[self.kind][2]

    def numbers(self) -> bool:
        """Whether a value of the type holds numbers, which must be finite."""
        inner = [part for _, part in self.parts] + ([self.item] if self.item is not None else [])
        return self.kind == "number" or any(part.numbers() for part in inner)


_SCALARS: dict[str, tuple[Any, pa.DataType, str]] = {
    "number": (float, pa.float64(), "DOUBLE"),
    "text": (str, pa.string(), "VARCHAR"),
    "boolean": (bool, pa.bool_(), "BOOLEAN"),
    "date": (dt.date, pa.date32(), "DATE"),
    "json": (Any, pa.string(), "JSON"),
}


def parse_type(text: str) -> FieldType:
    """A type from its words; a ValueError says what is wrong and what to write instead."""
    tokens = _tokens(text)
    kind = _type(tokens, text, [0])
    if (rest := next(tokens, None)) is not None:
        raise ValueError(f"{rest[0]!r} stands after the end of the type {text!r}")
    return kind


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """(text, kind) of every word, quoted name or sign."""
    for match in _TOKEN.finditer(text.rstrip()):
        sign, name, word, _ = match.groups()
        if match.lastgroup == "open":
            raise ValueError(f"{text[match.start() :].strip()!r} is no type: a quote is not closed")
        yield (sign, "sign") if sign else (name.replace('""', '"'), "name") if name else (word, "word")


def _type(tokens: Iterator[tuple[str, str]], text: str, count: list[int]) -> FieldType:
    word, kind = next(tokens, ("", "end"))
    if kind == "sign":
        raise ValueError(f"{text!r}: {word!r} comes too early: a part is written `name type`, such as qty number")
    count[0] += 1
    if count[0] > MOST_PARTS:
        raise ValueError(f"has more than {MOST_PARTS} parts")
    if kind == "word" and word in _SCALARS:
        return FieldType(word)
    if kind != "word" or word not in {"list", "object"}:
        raise ValueError(_unknown(word or "nothing"))
    if next(tokens, ("", ""))[0] != "(":
        raise ValueError(f"{word} has its parts in brackets, such as {word}(sku text, qty number)")
    parts: list[tuple[str, FieldType]] = []
    while True:
        name, kind = next(tokens, ("", "end"))
        if kind == "end" or (name in {")", ","} and kind == "sign"):
            raise ValueError(f"{text!r} ends or continues too early: expected `name type` in {word}(…)")
        if kind == "word" and word == "list" and not parts and name in {*_SCALARS, "list", "object"}:
            # A list of plain values: list(number). A part that is called like a type is quoted.
            item = _inner(FieldType(name)) if name in _SCALARS else _type(chain([(name, kind)], tokens), text, count)
            sign = next(tokens, ("", ""))[0]
            if sign != ")":
                raise ValueError(f"expected `)` after list({item}; a part that is called {name!r} is quoted")
            return FieldType("list", item=item)
        parts.append((name, _inner(_type(tokens, text, count))))
        sign = next(tokens, ("", ""))[0]
        if sign == ")":
            break
        if sign != ",":
            raise ValueError(f"expected `,` or `)` after {name} {parts[-1][1]} in {text!r}")
    folded = [name.lower() for name, _ in parts]
    if len(set(folded)) < len(folded):
        raise ValueError(f"two parts of {word}(…) have the same name but for case, which SQL does not tell apart")
    return FieldType(word, parts=tuple(parts))


def _inner(kind: FieldType) -> FieldType:
    if kind.kind == "json":
        raise ValueError("json holds a whole field, not a part of a list or object")
    return kind


def _unknown(word: str) -> str:
    ours = word.lower() if word.lower() in _SCALARS else _OTHERS.get(word.lower())
    hint = f"; write {ours}" if ours else ""
    return f"{word!r} is no type{hint}. The types are {', '.join(_SCALARS)}, list(…), object(…)"


def _always_quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def part_name(name: str) -> str:
    """The name of a part as it is written in a type: in double quotes where it is no plain word, or a type."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name not in {*_SCALARS, "list", "object"}
    return name if plain else _always_quoted(name)
