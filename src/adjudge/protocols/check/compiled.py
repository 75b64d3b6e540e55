"""A rule file with its expressions checked: the columns they read, their SQL, and which rule is made of which."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec

from adjudge.errors import ConfigError
from adjudge.protocols.check.declarations import FieldType
from adjudge.protocols.check.document import Way
from adjudge.protocols.check.expressions import check_expressions
from adjudge.protocols.check.names import Expression, Name, Names, Refused
from adjudge.protocols.check.rulefile import Field, RuleFile, RuleText
from adjudge.protocols.check.sandbox import Sandbox

SQL = {"truth": "BOOLEAN", "number": "DOUBLE"}
_GIVES = {"check": "truth", "observed": "number", "when": "truth"}
"""What each expression of a rule must give."""
WHOLE = "whole"
"""The internal column of the answer itself as JSON text."""
_TEXT = FieldType("text")
BLOCK_KINDS = ("number", "boolean", "date")
"""The types of keys of `meta` and `input` that are read as such; all others are text."""


@dataclass(frozen=True)
class CompiledRule:
    """One rule: its text, and the places of its expressions among those of the file; −1 for none."""

    text: RuleText
    uses: tuple[tuple[str, ...], ...]
    check: int = -1
    observed: int = -1
    when: int = -1

    @property
    def parts(self) -> tuple[int, ...]:
        """The expressions that it has."""
        return tuple(place for place in (self.check, self.observed, self.when) if place >= 0)


@dataclass
class Compiled:
    """All that judging needs of a rule file. `expressions` are (SQL, type) over internal columns."""

    file: RuleFile
    names: Names
    rules: list[CompiledRule] = field(default_factory=list)
    expressions: list[tuple[str, str]] = field(default_factory=list)
    patterns: dict[str, int] = field(default_factory=dict)
    read: list[Name] = field(default_factory=list)

    @property
    def block_keys(self) -> list[Name]:
        """The keys of `meta` and `input` that are read."""
        return [name for block in self.file.blocks for name in self.names.known.values() if name.written[0] == block]

    def label(self, source: str) -> Name:
        """The column behind a slice, cluster, sequence or order."""
        return self.names.known[self.file.written(source)]

    @property
    def fields(self) -> list[Field]:
        """The declared fields, in order."""
        return list(self.file.fields.values())

    def field_columns(self, letter: str) -> list[str]:
        """The internal columns of all fields."""
        return [f"{letter}{place}" for place in range(len(self.fields))]

    @property
    def answer_columns(self) -> list[str]:
        """The internal columns of an answer: all fields, and the answer itself where a schema reads it."""
        return [*self.field_columns("c"), *([WHOLE] if self.file.schema else [])]


def column_type(each: Field) -> FieldType:
    """The type of a field's column: a path into a list leads to a list."""
    return FieldType("list", item=each.type) if each.path.many else each.type


def names_of(file: RuleFile) -> Names:
    """Every name that expressions may use; keys of `meta` and `input` that are not declared are text."""
    known: dict[tuple[str, ...], Name] = {}

    def add(written: tuple[str, ...], column: str, kind: FieldType, stored: FieldType | None = None) -> None:
        known[written] = Name(written, column, kind.sql, kind.kind, (stored or kind).arrow)

    for place, each in enumerate(file.fields.values()):
        kind = column_type(each)
        add((each.name,), f"c{place}", kind)
        add(("gold", each.name), f"g{place}", kind)
        if file.sequence:
            add(("previous", each.name), f"p{place}", kind)
    add(("id",), "id", _TEXT)
    add(("model",), "model", _TEXT)
    for block, declared in file.blocks.items():
        for place, (key, kind) in enumerate(declared.items()):
            add((block, key), f"{block[0]}{place}", kind, kind if kind.kind in BLOCK_KINDS else _TEXT)
    names = Names(known, {block for block, declared in file.blocks.items() if not declared})
    for source in (*file.slices, file.cluster, file.sequence, file.order):
        if len(written := file.written(source)) == 2:
            names.of_block(*written)
    return names


def compiled(file: RuleFile, sandbox: Sandbox) -> Compiled:
    """The rule file, its expressions checked; the first mistake is a ConfigError with its line."""
    ready, wrong = compiled_or_wrong(file, sandbox)
    if wrong:
        raise wrong[0]
    return ready


def compiled_or_wrong(file: RuleFile, sandbox: Sandbox) -> tuple[Compiled, list[ConfigError]]:
    """The rule file without the rules that are wrong, and what is wrong with each of those."""
    ready = Compiled(file, names_of(file))
    texts = {
        (code, part): text for code, rule in file.rules.items() for part in _GIVES if (text := getattr(rule, part))
    }
    gives = [_GIVES[part] for _, part in texts]
    checked = dict(zip(texts, check_expressions(list(texts.values()), ready.names, sandbox, gives), strict=True))
    wrong = []
    for (code, part), each in checked.items():
        if isinstance(each, Refused):
            short = isinstance(file.document.content["rules"][code], str)
            way: Way = ("rules", code) if short else ("rules", code, part)
            wrong.append(file.document.error(way, f"{each} in: {_excerpt(texts[code, part])}"))
    for code, rule in file.rules.items():
        parts = {part: checked[code, part] for part in _GIVES if (code, part) in checked}
        expressions = {part: each for part, each in parts.items() if isinstance(each, Expression)}
        if len(expressions) < len(parts):
            continue
        uses = {name for each in expressions.values() for name in each.uses}
        if not any(len(name) == 1 or name[0] != "gold" for name in uses):
            wrong.append(file.document.error(("rules", code), "names no field, so that no answer can fail it"))
        places = {part: len(ready.expressions) + place for place, part in enumerate(expressions)}
        ready.expressions += [(each.sql, SQL[_GIVES[part]]) for part, each in expressions.items()]
        ready.rules.append(CompiledRule(rule, tuple(name for name in ready.names.known if name in uses), **places))
    for declared in file.fields.values():
        if declared.pattern:
            ready.patterns[declared.name] = len(ready.expressions)
            ready.expressions.append((_pattern_sql(declared, ready.names), SQL["truth"]))
    wrong += _unusable_patterns(ready, sandbox) + _unusable_schemas(file, sandbox)
    used = {name for rule in ready.rules for name in rule.uses} | {(name,) for name in ready.patterns}
    ready.read = [name for name in ready.names.known.values() if name.written in used]
    return ready, wrong


def _pattern_sql(each: Field, names: Names) -> str:
    """A regular expression over a field; of a path into a list, over every place."""
    column, pattern = names.known[(each.name,)].column, "'" + each.pattern.replace("'", "''") + "'"
    if each.path.many:
        return f"list_bool_and(list_transform({column}, lambda place: regexp_full_match(place, {pattern})))"
    return f"regexp_full_match({column}, {pattern})"


def _unusable_patterns(ready: Compiled, sandbox: Sandbox) -> list[ConfigError]:
    names = list(ready.patterns)
    kinds = sandbox.bind(ready.names.columns(), [ready.expressions[ready.patterns[name]][0] for name in names])
    return [
        ready.file.document.error(
            ("fields", name, "pattern"), f"is no regular expression: {kind['error'].partition(': ')[2].splitlines()[0]}"
        )
        for name, kind in zip(names, kinds, strict=True)
        if "error" in kind
    ]


def _unusable_schemas(file: RuleFile, sandbox: Sandbox) -> list[ConfigError]:
    """What jsonschema-rs does not take: a value that its keyword cannot have, or a pattern that needs backtracking."""
    if not file.schema:
        return []
    if find_spec("jsonschema_rs") is None:
        return [file.document.error(("schema",), "needs jsonschema-rs: pip install 'adjudge[check]'", key=True)]
    why = sandbox.build([dict(each.schema) for each in file.schema])
    hint = "; look-arounds and back-references are not taken"
    return [
        file.document.error(each.way, f"cannot be used: {text}{hint if 'regex' in text else ''}")
        for each, text in zip(file.schema, why, strict=True)
        if text
    ]


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 120 else flat[:119] + "…"
