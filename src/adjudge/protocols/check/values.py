"""The values of declared fields in an answer: decoded by msgspec into the declared types, whichever way the answer came."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from adjudge.protocols.check.compiled import column_type
from adjudge.protocols.check.paths import ABSENT
from adjudge.protocols.check.rulefile import Field
from adjudge.readers.settings import in_words

_TRUTHS = {"true": True, "false": False}


class Mistyped(NamedTuple):
    """A value that is not of its field's type: the field (with its place in a list), and why."""

    field: str
    why: str


class Converted(NamedTuple):
    """The values of one answer in the order of the fields, None for what is missing, and what is mistyped."""

    values: tuple[Any, ...]
    mistyped: tuple[Mistyped, ...]


class Answers:
    """Reads the declared fields out of answers.

    `decoder` decodes an answer at once where all its values have the declared types; `flat` makes a tuple of what it
    gives. `convert` takes any object, and says what is mistyped. For an answer that both can read they give the same.
    With `whole`, the last value is the answer itself as JSON text without the keys `left_out`, for a schema.
    """

    def __init__(self, fields: Sequence[Field], *, whole: bool = False, left_out: Collection[str] = ()) -> None:
        self.fields, self.whole, self.left_out = tuple(fields), whole, left_out
        self.keys = tuple(dict.fromkeys(each.path.steps[0] for each in fields if isinstance(each.path.steps[0], str)))
        self.plain = all(_plain(each) for each in fields) and len(self.keys) == len(self.fields)
        self.struct = self._struct() if self.plain and not whole else None
        self.decoder = None if self.struct is None else msgspec.json.Decoder(self.struct)
        self.nothing = (None,) * (len(self.fields) + whole)
        self._converters: list[Callable[[Any], Any]] = [_converter(each) for each in fields]

    def _struct(self) -> type[msgspec.Struct]:
        """A struct of fields that are keys of the answer; values of another type do not decode."""
        return msgspec.defstruct(
            "Answer",
            [(f"f{place}", each.type.decoded | None, None) for place, each in enumerate(self.fields)],
            rename={f"f{place}": str(each.path.first) for place, each in enumerate(self.fields)},
            gc=False,
        )

    def convert(self, answer: dict[str, Any]) -> Converted:
        """The values of any object."""
        values: list[Any] = []
        mistyped: list[Mistyped] = []
        for each, converter in zip(self.fields, self._converters, strict=True):
            at_path = each.path.values(answer) if each.path.many else each.path.value(answer)
            if at_path is ABSENT and each.path.many and each.path.holder(answer) not in (ABSENT, None, answer):
                mistyped.append(Mistyped(each.name, "what holds it is no list"))
            values.append(_typed(each, at_path, converter, mistyped))
        if self.whole:
            values.append(as_json({key: value for key, value in answer.items() if key not in self.left_out}))
        return Converted(tuple(values), tuple(mistyped))

    def columns(self, rows: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
        """Tuples of values as a column a field."""
        kinds = [column_type(each).arrow for each in self.fields] + [pa.string()] * self.whole
        if not rows:
            return [pa.array([], kind) for kind in kinds]
        return [column(values, kind) for kind, values in zip(kinds, zip(*rows, strict=True), strict=True)]


def _typed(each: Field, value: Any, converter: Callable[[Any], Any], mistyped: list[Mistyped]) -> Any:
    """The value of a field by its type, None where there is none; of a path into a list, all its places."""
    if not each.path.many:
        typed, why = _one(value, converter)
        if why:
            mistyped.append(Mistyped(each.name, why))
        return typed
    if value is ABSENT or value is None:
        return None
    if not isinstance(value, list):
        mistyped.append(Mistyped(each.name, "it is no list"))
        return None
    places = [_one(item, converter) for item in value]
    mistyped += [Mistyped(place_name(each, place), why) for place, (_, why) in enumerate(places) if why]
    return [typed for typed, _ in places]


def place_name(each: Field, place: int) -> str:
    """A place in a list, as atoms name it."""
    return f"{each.name}[{place}]"


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as a column; text that is no Unicode has its odd characters replaced."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_mended(value) for value in values], kind)


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
    key = each.path.first
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
    if kind == "number":
        try:
            number = float(text) if text.isascii() and "_" not in text else None
        except ValueError:
            number = None
        return text if number is None else number
    if kind == "boolean":
        return _TRUTHS.get(text.lower(), text)
    try:
        return dt.date.fromisoformat(text[:10]) if kind == "date" and text[10:11] in {"", "T", " "} else text
    except ValueError:
        return text


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(_finite(item) for item in value)
    return all(_finite(item) for item in value.values()) if isinstance(value, dict) else True
