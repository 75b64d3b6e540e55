"""The values of declared fields in an answer: decoded by msgspec into the declared types, whichever way the answer came."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from adjudge.protocols.check.compiled import column_type
from adjudge.protocols.check.declarations import ABSENT
from adjudge.protocols.check.rulefile import Field
from adjudge.readers.settings import in_words

_any = msgspec.json.Decoder()
_TRUTHS = {"true": True, "false": False}


class Converted(NamedTuple):
    """The values of one answer in the order of the fields, None for what is missing, and what is mistyped."""

    values: tuple[Any, ...]
    mistyped: tuple[tuple[str, str], ...]
    """The field (with its place in a list), and why its value is not of its type."""


Decode = Callable[[str], tuple[Converted, Sequence[Any]]]
"""From the text of an answer to its values, and to a value for every key, None where the answer lacks it."""


class Answers:
    """Reads the declared fields out of answers.

    `convert` takes any object, and says what is mistyped. `decoders` read the text of one where every field is a key of
    the answer, the fastest first: all that can read a text give the same.
    With `whole`, the last value is the answer itself as JSON text without the keys `left_out`, for a schema.
    """

    def __init__(self, fields: Sequence[Field], *, whole: bool = False, left_out: Collection[str] = ()) -> None:
        self.fields, self.whole, self.left_out = tuple(fields), whole, left_out
        self.keys = tuple(dict.fromkeys(each.path.steps[0] for each in fields if isinstance(each.path.steps[0], str)))
        plain = all(_plain(each) for each in fields) and len(self.keys) == len(self.fields)
        self.struct: Any = None
        if plain and not whole:
            members = [(f"f{place}", each.type.decoded | None, None) for place, each in enumerate(fields)]
            keys = {f"f{place}": str(each.path.steps[0]) for place, each in enumerate(fields)}
            self.struct = msgspec.defstruct("Answer", members, rename=keys, gc=False)
        self._decoder = None if self.struct is None else msgspec.json.Decoder(self.struct)
        self.decoders: list[Decode] = [] if self._decoder is None else [self._decoded]
        self.decoders += [self._decoded_loosely] if plain else []
        self.nothing = (None,) * (len(self.fields) + whole)
        self._converters: list[Callable[[Any], Any]] = [_converter(each) for each in fields]

    def _decoded(self, text: str) -> tuple[Converted, Sequence[Any]]:
        """The values of an answer where all have the declared types."""
        assert self._decoder is not None  # noqa: S101 -- otherwise it is none of the decoders
        values = msgspec.structs.astuple(self._decoder.decode(text))
        return Converted(values, ()), values

    def _decoded_loosely(self, text: str) -> tuple[Converted, Sequence[Any]]:
        """The values of any answer."""
        answer = _any.decode(text)
        return self.convert(answer), [True if key in answer else None for key in self.keys]

    def convert(self, answer: dict[str, Any]) -> Converted:
        """The values of any object."""
        values: list[Any] = []
        mistyped: list[tuple[str, str]] = []
        for each, converter in zip(self.fields, self._converters, strict=True):
            if each.path.many:
                values.append(_places(each, answer, converter, mistyped))
                continue
            typed, why = _one(each.path.value(answer), converter)
            values.append(typed)
            if why:
                mistyped.append((each.name, why))
        if self.whole:
            values.append(as_json({key: value for key, value in answer.items() if key not in self.left_out}))
        return Converted(tuple(values), tuple(mistyped))

    def columns(self, rows: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
        """Tuples of values as a column a field."""
        kinds = [column_type(each).arrow for each in self.fields] + [pa.string()] * self.whole
        by_kind = zip(*rows, strict=True) if rows else [()] * len(kinds)
        return [column(values, kind) for kind, values in zip(kinds, by_kind, strict=True)]


def _places(
    each: Field, answer: Any, converter: Callable[[Any], Any], mistyped: list[tuple[str, str]]
) -> list[Any] | None:
    """The values at all places of a path into a list, None where there is no list; what is mistyped is added."""
    values = each.path.values(answer)
    if values is ABSENT:
        if each.path.holder(answer) not in (ABSENT, None, answer):
            mistyped.append((each.name, "what holds it is no list"))
        return None
    places = [_one(item, converter) for item in values]
    mistyped += [(place_name(each, place), why) for place, (_, why) in enumerate(places) if why]
    return [typed for typed, _ in places]


def place_name(each: Field, place: int) -> str:
    """A place in a list, as atoms name it."""
    return f"{each.name}[{place}]"


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as a column; text that is no Unicode has its odd characters replaced."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array(_mended(list(values)), kind)


def as_json(answer: dict[str, Any]) -> str:
    """An answer as JSON text; text that is no Unicode has its odd characters replaced."""
    try:
        return msgspec.json.encode(answer).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_mended(answer)).decode()


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_mended(item) for item in value]
    return {_mended(key): _mended(item) for key, item in value.items()} if isinstance(value, dict) else value


def _plain(each: Field) -> bool:
    """Whether a field is a key of the answer, one that a struct can have, whose values msgspec alone can judge."""
    key = each.path.steps[0]
    if len(each.path.steps) != 1 or not isinstance(key, str) or each.lenient or each.type.kind == "json":
        return False
    return key.isprintable() and not {'"', "\\"} & set(key)


def _one(value: Any, converter: Callable[[Any], Any]) -> tuple[Any, str]:
    """A value of the right type, None where there is none, and why it is mistyped."""
    if value is ABSENT or value is None:
        return None, ""
    try:
        return converter(value), ""
    except (msgspec.ValidationError, ValueError) as error:
        words = in_words(error) if isinstance(error, msgspec.ValidationError) else str(error)
        return None, words.replace("the record", "it")


def _converter(each: Field) -> Callable[[Any], Any]:
    """From a JSON value to the field's type; raises where it is of another."""
    kind, lenient, finite = each.type.decoded, each.lenient, each.type.numbers()
    if each.type.kind == "json":
        return lambda value: msgspec.json.encode(value).decode()

    def convert(value: Any) -> Any:
        if lenient and isinstance(value, str):
            value = _unquoted(value.strip(), each.type.kind)
        converted = msgspec.convert(value, kind)
        if finite and not _finite(converted):
            raise ValueError("it is not a finite number")
        return converted

    return convert


def _unquoted(text: str, kind: str) -> Any:
    """A value that stands in quotes, where the field is lenient."""
    if kind == "boolean":
        return _TRUTHS.get(text.lower(), text)
    try:
        if kind == "number" and text.isascii() and "_" not in text:
            return float(text)
        return dt.date.fromisoformat(text[:10]) if kind == "date" and text[10:11] in {"", "T", " "} else text
    except ValueError:
        return text


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(_finite(item) for item in value)
    return all(_finite(item) for item in value.values()) if isinstance(value, dict) else True
