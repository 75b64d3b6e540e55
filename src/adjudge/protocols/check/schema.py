"""`schema:` of a rule file: a JSON Schema about the answer, taken apart into one assertion a keyword and path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.errors import ConfigError
from adjudge.protocols.check.document import Document, Way
from adjudge.protocols.check.parts import near, shown
from adjudge.protocols.check.paths import MOST_STEPS, Path

Step = str | int | None
MOST_ASSERTIONS, MOST_PARTS = 500, 5_000
DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema",
)
NOTES = (
    *("title", "description", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("$schema", "$id", "$defs", "definitions"),
)
"""Keywords that ask nothing of an answer."""
ABOUT = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), "text"),
    **dict.fromkeys(("minItems", "maxItems", "uniqueItems", "contains", "items"), "list"),
    **dict.fromkeys(
        ("required", "minProperties", "maxProperties", "additionalProperties", "patternProperties"), "object"
    ),
    **dict.fromkeys(("propertyNames", "dependentRequired"), "object"),
}
"""The kind of value that a keyword is about; values of another kind are not its concern."""
WORDS = {
    "type": "is of type {}",
    "enum": "is one of {}",
    "const": "is {}",
    "minimum": "is at least {}",
    "maximum": "is at most {}",
    "exclusiveMinimum": "is above {}",
    "exclusiveMaximum": "is below {}",
    "multipleOf": "is a multiple of {}",
    "minLength": "has at least {} characters",
    "maxLength": "has at most {} characters",
    "pattern": "matches {}",
    "minItems": "has at least {} items",
    "maxItems": "has at most {} items",
    "uniqueItems": "has no item twice",
    "contains": "has as many items as asked that fit `contains`",
    "items": "has items after the first ones as `items` asks",
    "required": "has {}",
    "minProperties": "has at least {} keys",
    "maxProperties": "has at most {} keys",
    "additionalProperties": "has no keys but those declared, or others as asked",
    "patternProperties": "has under keys of a pattern what is asked",
    "propertyNames": "has keys as `propertyNames` asks",
    "dependentRequired": "has the keys that others need",
    "anyOf": "fits at least one schema of `anyOf`",
    "oneOf": "fits exactly one schema of `oneOf`",
    "not": "does not fit the schema of `not`",
    "if": "fits `then` where it fits `if`, else `else`",
}
"""What every keyword asks, in words; {} is its value."""
_WITH = {
    "if": ("then", "else"),
    "contains": ("minContains", "maxContains"),
    "additionalProperties": ("properties", "patternProperties"),
    "items": ("prefixItems",),
}
"""Keywords that are read together with another."""
_ONE = ("not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "items")
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_TABLE = ("properties", "patternProperties")
_PARTS = ("$ref", "allOf", "properties", "prefixItems", "then", "else", "minContains", "maxContains")
_INSTEAD = {
    "format": "it asks nothing by itself; write `pattern`, or a field of type date",
    "dependentSchemas": "write `if` and `then`",
    "dependencies": "write `dependentRequired`, or `if` and `then`",
    "unevaluatedProperties": "write `additionalProperties`",
    "unevaluatedItems": "write `items: false` beside `prefixItems`",
    "additionalItems": "write `prefixItems` and `items`",
    "$dynamicRef": "write `$ref: '#/$defs/NAME'`",
    "$recursiveRef": "write `$ref: '#/$defs/NAME'`",
    "$anchor": "write `$ref: '#/$defs/NAME'`",
}


@dataclass(frozen=True)
class Assertion:
    """One keyword at one path: the schema with that keyword alone, and what it asks in words."""

    keyword: str
    steps: tuple[Step, ...]
    schema: Mapping[str, Any]
    words: str
    way: Way
    names: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """The code of its rule."""
        return "schema." + re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", self.keyword)

    @property
    def path(self) -> str:
        """Where it looks."""
        return str(Path(self.steps))

    def request(self) -> dict[str, Any]:
        """What the process that validates needs of it."""
        return {
            "keyword": self.keyword,
            "steps": list(self.steps),
            "about": ABOUT.get(self.keyword, ""),
            "schema": self.schema,
            "names": list(self.names),
        }


def assertions(document: Document) -> tuple[Assertion, ...]:
    """The assertions of the `schema:` of a rule file; what cannot be taken is a ConfigError with its line."""
    if document.content.get("schema") is None:
        return ()
    reader = _Reader(document)
    reader.walk(document.content["schema"], (), ("schema",), ())
    if not reader.asked:
        raise document.error(("schema",), "asks nothing of an answer; it has no keyword such as type or required")
    return tuple(reader.asked.values())


@dataclass
class _Reader:
    """Walks a schema along its paths. `asked` are its assertions by (keyword, steps)."""

    document: Document
    asked: dict[tuple[str, tuple[Step, ...]], Assertion] = field(default_factory=dict)
    parts: int = 0

    def walk(self, schema: Any, steps: tuple[Step, ...], way: Way, references: tuple[str, ...]) -> None:
        """Add what a schema asks of the value at some steps. `references` are the `$ref`s that led here."""
        table = self._table(schema, way)
        if len(steps) > MOST_STEPS:
            raise self.document.error(way, f"is more than {MOST_STEPS} steps deep")
        for keyword, value in table.items():
            at = (*way, keyword)
            if keyword == "$ref":
                target, its_way = self._target(value, at, references)
                self.walk(target, steps, its_way, (*references, value))
            elif keyword == "allOf":
                for place, each in enumerate(self._list(value, at)):
                    self.walk(each, steps, (*at, place), references)
            elif keyword == "properties":
                for key, each in self._named(value, at).items():
                    self.walk(each, (*steps, key), (*at, key), references)
            elif keyword == "prefixItems":
                for place, each in enumerate(self._list(value, at)):
                    self.walk(each, (*steps, place), (*at, place), references)
            elif keyword == "items" and "prefixItems" not in table:
                self.walk(value, (*steps, None), at, references)
            elif keyword not in NOTES and keyword not in _PARTS:
                self._ask(keyword, table, steps, way, references)

    def _ask(
        self, keyword: str, table: Mapping[str, Any], steps: tuple[Step, ...], way: Way, references: tuple[str, ...]
    ) -> None:
        at = (*way, keyword)
        value = table[keyword]
        schema = {keyword: self._plain_part(keyword, value, at, references)}
        for other in _WITH.get(keyword, ()):
            if other not in table:
                continue
            if other in {"then", "else", "minContains", "maxContains"}:
                schema[other] = self._plain_part(other, table[other], (*way, other), references)
            elif other == "prefixItems":
                schema[other] = [True] * len(self._list(table[other], (*way, other)))
            else:
                schema[other] = dict.fromkeys(self._named(table[other], (*way, other)), True)
        listed = value if isinstance(value, list) else [value]
        words = WORDS[keyword].format(", ".join(str(each) for each in listed[:8]) + (" …" if len(listed) > 8 else ""))
        names = tuple(str(each) for each in listed) if keyword == "required" else ()
        new = Assertion(keyword, steps, schema, words, at, names)
        before = self.asked.get((keyword, steps))
        if before is not None and before.schema != schema:
            both = {"allOf": [*before.schema.get("allOf", [before.schema]), schema]}
            new = replace(before, schema=both, words=f"{before.words}; {words}", names=before.names + names)
        self.asked[keyword, steps] = new
        if len(self.asked) > MOST_ASSERTIONS:
            raise self.document.error(("schema",), f"has more than {MOST_ASSERTIONS} keywords and paths")

    def _plain(self, schema: Any, way: Way, references: tuple[str, ...]) -> Any:
        """A schema with its references put in their places, and without notes."""
        plain: dict[str, Any] = {}
        table = self._table(schema, way)
        for keyword, value in table.items():
            if keyword == "$ref":
                target, its_way = self._target(value, (*way, keyword), references)
                plain.setdefault("allOf", []).append(self._plain(target, its_way, (*references, value)))
            elif keyword == "allOf":
                plain.setdefault("allOf", []).extend(self._plain_part(keyword, value, (*way, keyword), references))
            elif keyword not in NOTES:
                plain[keyword] = self._plain_part(keyword, value, (*way, keyword), references)
        return plain

    def _plain_part(self, keyword: str, value: Any, at: Way, references: tuple[str, ...]) -> Any:
        if keyword in _ONE:
            return self._plain(value, at, references)
        if keyword in _MANY:
            return [self._plain(each, (*at, place), references) for place, each in enumerate(self._list(value, at))]
        if keyword in _TABLE:
            return {key: self._plain(each, (*at, key), references) for key, each in self._named(value, at).items()}
        if keyword == "type" and (value is None or (isinstance(value, list) and None in value)):
            raise self.document.error(at, 'has null without quotes, which is no name of a type; write "null"')
        return value

    def _table(self, schema: Any, way: Way) -> dict[str, Any]:
        """The keywords of a schema; one that is not known is refused by name."""
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise self.document.error(("schema",), f"has more than {MOST_PARTS} parts once every $ref is put in place")
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, dict):
            hint = "; a list of items is `prefixItems`" if way[-1] == "items" and isinstance(schema, list) else ""
            raise self.document.error(way, f"is {shown(schema)}, expected a schema: a table, true or false{hint}")
        for keyword in schema:
            if keyword not in WORDS and keyword not in _PARTS and keyword not in NOTES:
                raise self._unknown(keyword, way)
        for keyword, partners in _WITH.items():
            for other in partners[: 2 if keyword in {"if", "contains"} else 0]:
                if other in schema and keyword not in schema:
                    raise self.document.error((*way, other), f"goes with `{keyword}`, which is missing", key=True)
        if "$id" in schema and way != ("schema",):
            raise self.document.error((*way, "$id"), "stands inside the schema; leave it out", key=True)
        if schema.get("$schema", DRAFTS[0]) not in DRAFTS:
            raise self.document.error(
                (*way, "$schema"), f"is {shown(schema['$schema'])}; these are read: {', '.join(DRAFTS[:3])}"
            )
        if "$ref" in schema and "draft-07" in str(self.document.content["schema"].get("$schema")):
            asking = [keyword for keyword in schema if keyword not in NOTES and keyword != "$ref"]
            if asking:
                text = f"stands beside `{asking[0]}`, which draft 7 ignores; put both in `allOf`"
                raise self.document.error((*way, "$ref"), text, key=True)
        return schema

    def _unknown(self, keyword: str, way: Way) -> ConfigError:
        instead = _INSTEAD.get(keyword)
        known = [*WORDS, *_PARTS, *NOTES]
        text = f"{keyword!r} is not taken here: {instead}" if instead else f"{keyword!r} is no keyword that is known"
        hint = "" if instead else f"{near(keyword, known)}; a note goes into `$comment`"
        return self.document.error((*way, keyword), text + hint, key=True)

    def _target(self, value: Any, at: Way, references: Sequence[str]) -> tuple[Any, Way]:
        """What a reference leads to, and the way to it."""
        if not isinstance(value, str) or not (value == "#" or value.startswith("#/")):
            text = f"is {shown(value)}; only places of the same schema are read, such as '#/$defs/line'"
            raise self.document.error(at, text)
        if value in references or value == "#":
            raise self.document.error(at, f"{value!r} leads to itself; write out as many levels as answers have")
        target: Any = self.document.content["schema"]
        way: Way = ("schema",)
        for part in value[2:].split("/"):
            word = part.replace("~1", "/").replace("~0", "~")
            step: str | int = int(word) if isinstance(target, list) and word.isdecimal() else word
            try:
                target = target[step]
            except (KeyError, IndexError, TypeError):
                names = target if isinstance(target, dict) else ()
                raise self.document.error(
                    at, f"{value!r} leads nowhere: there is no {word!r}{near(word, names)}"
                ) from None
            way = (*way, step)
        return target, way

    def _list(self, value: Any, at: Way) -> list[Any]:
        if not isinstance(value, list) or not value:
            raise self.document.error(at, f"is {shown(value)}, expected a list of schemas")
        return value

    def _named(self, value: Any, at: Way) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.document.error(at, f"is {shown(value)}, expected a table of schemas by name")
        return value
