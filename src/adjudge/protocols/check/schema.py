"""`schema:` of a rule file: a JSON Schema about the answer, taken apart into one assertion a keyword and path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.protocols.check.declarations import MOST_STEPS, Path
from adjudge.protocols.check.document import Document, Part, Way, near, shown

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
        looked_at = {"steps": list(self.steps), "about": ABOUT.get(self.keyword, "")}
        return {"keyword": self.keyword, "schema": self.schema, "names": list(self.names), **looked_at}


def assertions(document: Document) -> tuple[Assertion, ...]:
    """The assertions of the `schema:` of a rule file; what cannot be taken is a ConfigError with its line."""
    if document.content.get("schema") is None:
        return ()
    reader = _Reader()
    reader.walk(Part(document, ("schema",), document.content["schema"]), (), ())
    if not reader.asked:
        raise document.error(("schema",), "asks nothing of an answer; it has no keyword such as type or required")
    return tuple(reader.asked.values())


@dataclass
class _Reader:
    """Walks a schema along its paths. `asked` are its assertions by (keyword, steps)."""

    asked: dict[tuple[str, tuple[Step, ...]], Assertion] = field(default_factory=dict)
    parts: int = 0

    def walk(self, part: Part, steps: tuple[Step, ...], references: tuple[str, ...]) -> None:
        """Add what a schema asks of the value at some steps. `references` are the `$ref`s that led here."""
        schema = self._schema(part)
        if len(steps) > MOST_STEPS:
            raise part.wrong(f"is more than {MOST_STEPS} steps deep")
        for keyword in schema.value:
            at = schema[keyword]
            if keyword == "$ref":
                self.walk(_target(at, references), steps, (*references, at.value))
            elif keyword == "allOf":
                for each in _schemas(at):
                    self.walk(each, steps, references)
            elif keyword == "properties":
                for key, each in _named(at).items():
                    self.walk(each, (*steps, key), references)
            elif keyword == "prefixItems":
                for place, each in enumerate(_schemas(at)):
                    self.walk(each, (*steps, place), references)
            elif keyword == "items" and "prefixItems" not in schema:
                self.walk(at, (*steps, None), references)
            elif keyword not in NOTES and keyword not in _PARTS:
                self._ask(keyword, schema, steps, references)

    def _ask(self, keyword: str, schema: Part, steps: tuple[Step, ...], references: tuple[str, ...]) -> None:
        value = schema[keyword].value
        alone = {keyword: self._plain_part(schema[keyword], references)}
        for other in _WITH.get(keyword, ()):
            if other not in schema:
                continue
            if other in {"then", "else", "minContains", "maxContains"}:
                alone[other] = self._plain_part(schema[other], references)
            elif other == "prefixItems":
                alone[other] = [True] * len(_schemas(schema[other]))
            else:
                alone[other] = dict.fromkeys(_named(schema[other]), True)
        listed = value if isinstance(value, list) else [value]
        words = WORDS[keyword].format(", ".join(str(each) for each in listed[:8]) + (" …" if len(listed) > 8 else ""))
        names = tuple(str(each) for each in listed) if keyword == "required" else ()
        new = Assertion(keyword, steps, alone, words, schema[keyword].way, names)
        before = self.asked.get((keyword, steps))
        if before is not None and before.schema != alone:
            both = {"allOf": [*before.schema.get("allOf", [before.schema]), alone]}
            new = replace(before, schema=both, words=f"{before.words}; {words}", names=before.names + names)
        self.asked[keyword, steps] = new
        if len(self.asked) > MOST_ASSERTIONS:
            raise schema.document.error(("schema",), f"has more than {MOST_ASSERTIONS} keywords and paths")

    def _plain(self, part: Part, references: tuple[str, ...]) -> Any:
        """A schema with its references put in their places, and without notes."""
        plain: dict[str, Any] = {}
        schema = self._schema(part)
        for keyword in schema.value:
            at = schema[keyword]
            if keyword == "$ref":
                target = self._plain(_target(at, references), (*references, at.value))
                plain.setdefault("allOf", []).append(target)
            elif keyword == "allOf":
                plain.setdefault("allOf", []).extend(self._plain_part(at, references))
            elif keyword not in NOTES:
                plain[keyword] = self._plain_part(at, references)
        return plain

    def _plain_part(self, part: Part, references: tuple[str, ...]) -> Any:
        """The value of a keyword, plain where it holds schemas."""
        keyword, value = part.way[-1], part.value
        if keyword in _ONE:
            return self._plain(part, references)
        if keyword in _MANY:
            return [self._plain(each, references) for each in _schemas(part)]
        if keyword in _TABLE:
            return {key: self._plain(each, references) for key, each in _named(part).items()}
        if keyword == "type" and (value is None or (isinstance(value, list) and None in value)):
            raise part.wrong('has null without quotes, which is no name of a type; write "null"')
        return value

    def _schema(self, part: Part) -> Part:
        """A schema as a table of keywords; one that is not known is refused by name."""
        self.parts += 1
        document, way, schema = part.document, part.way, part.value
        if self.parts > MOST_PARTS:
            raise document.error(("schema",), f"has more than {MOST_PARTS} parts once every $ref is put in place")
        if isinstance(schema, bool):
            return Part(document, way, {} if schema else {"not": {}})
        if not isinstance(schema, dict):
            hint = "; a list of items is `prefixItems`" if way[-1] == "items" and isinstance(schema, list) else ""
            raise part.wrong(f"is {shown(schema)}, expected a schema: a table, true or false{hint}")
        for keyword in schema:
            if keyword not in WORDS and keyword not in _PARTS and keyword not in NOTES:
                raise part[keyword].misnamed(_unknown(keyword))
        for keyword in ("if", "contains"):
            for other in _WITH[keyword]:
                if other in schema and keyword not in schema:
                    raise part[other].misnamed(f"goes with `{keyword}`, which is missing")
        if "$id" in schema and way != ("schema",):
            raise part["$id"].misnamed("stands inside the schema; leave it out")
        if schema.get("$schema", DRAFTS[0]) not in DRAFTS:
            raise part["$schema"].wrong(f"is {shown(schema['$schema'])}; these are read: {', '.join(DRAFTS[:3])}")
        if "$ref" in schema and "draft-07" in str(document.content["schema"].get("$schema")):
            asking = [keyword for keyword in schema if keyword not in NOTES and keyword != "$ref"]
            if asking:
                raise part["$ref"].misnamed(f"stands beside `{asking[0]}`, which draft 7 ignores; put both in `allOf`")
        return part


def _unknown(keyword: str) -> str:
    if keyword in _INSTEAD:
        return f"{keyword!r} is not taken here: {_INSTEAD[keyword]}"
    return f"{keyword!r} is no keyword that is known{near(keyword, [*WORDS, *_PARTS, *NOTES])}; a note goes into `$comment`"


def _target(at: Part, references: Sequence[str]) -> Part:
    """What a reference leads to."""
    reference = at.value
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise at.wrong(f"is {shown(reference)}; only places of the same schema are read, such as '#/$defs/line'")
    if reference in references or reference == "#":
        raise at.wrong(f"{reference!r} leads to itself; write out as many levels as answers have")
    target = Part(at.document, ("schema",), at.document.content["schema"])
    for part in reference[2:].split("/"):
        word = part.replace("~1", "/").replace("~0", "~")
        names = target.value if isinstance(target.value, dict) else ()
        place = int(word) if isinstance(target.value, list) and word.isdecimal() else None
        if word not in names and (place is None or place >= len(target.value)):
            raise at.wrong(f"{reference!r} leads nowhere: there is no {word!r}{near(word, names)}")
        target = target[word if place is None else place]
    return target


def _schemas(part: Part) -> list[Part]:
    if not isinstance(part.value, list) or not part.value:
        raise part.wrong(f"is {shown(part.value)}, expected a list of schemas")
    return part.items()


def _named(part: Part) -> dict[str, Part]:
    if not isinstance(part.value, dict):
        raise part.wrong(f"is {shown(part.value)}, expected a table of schemas by name")
    return part.table()
