"""Names that expressions may use, checked expressions, and words for what is wrong with one and for what may have been meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from adjudge.protocols.check import functions as f

KEYWORDS = frozenset({
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "both", "case", "cast", "check",
    "collate", "column", "constraint", "create", "default", "deferrable", "desc", "describe", "distinct", "do",
    "else", "end", "except", "false", "fetch", "for", "foreign", "from", "group", "having", "in", "initially",
    "intersect", "into", "lateral", "leading", "limit", "not", "null", "offset", "on", "only", "or", "order",
    "pivot", "placing", "primary", "qualify", "references", "returning", "select", "show", "some", "summarize",
    "symmetric", "table", "then", "to", "trailing", "true", "union", "unique", "unpivot", "using", "variadic",
    "when", "where", "window", "with", "lambda", "try",
})  # fmt: skip
"""Words of SQL that a field may be called only in double quotes."""


def quoted(name: str) -> str:
    """A name as it stands in an expression: in double quotes where it is no plain word."""
    plain = name.isascii() and (name[:1].isalpha() or name[:1] == "_") and name.replace("_", "a").isalnum()
    return name if plain and name.lower() not in KEYWORDS else '"' + name.replace('"', '""') + '"'


class Refused(Exception):
    """An expression that is not allowed or not right: what is wrong, the word, and the character where it stands."""

    def __init__(self, what: str, word: str = "", at: int | None = None) -> None:
        super().__init__(what)
        self.what, self.word, self.at = what, word, at

    def __str__(self) -> str:
        return self.what + ("" if self.at is None else f" (at character {self.at + 1})")


@dataclass(frozen=True)
class Name:
    """One name that an expression may use: how it is written, its internal column, and its type in DuckDB, ours and Arrow."""

    written: tuple[str, ...]
    column: str
    sql: str
    kind: str
    arrow: pa.DataType = pa.string()  # noqa: RUF009 -- a type is a value

    @property
    def text(self) -> str:
        """The name as the author writes it."""
        return ".".join(quoted(part) for part in self.written)

    @property
    def stored(self) -> str:
        """The column of samples.parquet that holds its values."""
        if self.column in {"id", "model"}:
            return {"id": "sample", "model": "model"}[self.column]
        return f"answer.{self.written[0]}" if len(self.written) == 1 else ".".join(self.written)


@dataclass(frozen=True)
class Expression:
    """A checked expression: its SQL over internal columns, and the names it uses, in the order of the file."""

    sql: str
    uses: tuple[tuple[str, ...], ...]


@dataclass
class Names:
    """Every name that expressions of a rule file may use.

    `open` are the blocks (`meta`, `input`) whose keys are not declared: any key of theirs is a text.
    """

    known: dict[tuple[str, ...], Name]
    open: set[str] = field(default_factory=set)

    def of_block(self, block: str, key: str) -> Name | None:
        """A key of `meta` or `input`; one that is not declared becomes known where keys need no declaration."""
        if (block, key) not in self.known and block in self.open:
            place = sum(written[0] == block for written in self.known)
            self.known[(block, key)] = Name((block, key), f"{block[0]}{place}", "VARCHAR", "text")
        return self.known.get((block, key))

    def columns(self) -> list[tuple[str, str]]:
        """(internal column, type) of all."""
        return [(name.column, name.sql) for name in self.known.values()]


RESERVED = ("gold", "meta", "input", "id", "model", "previous")
_CLOCK = frozenset({
    "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "now", "today",
})  # fmt: skip
_MACHINE = frozenset({
    "user", "current_user", "session_user", "current_role", "current_catalog", "current_schema",
    "current_database",
})  # fmt: skip
_SIGNS = {"=>": ">=", "=<": "<=", "===": "=", "!==": "!=", "&&": "and", "≤": "<=", "≥": ">="}


def nearest(word: str, known: Sequence[str], cutoff: float = 0.7) -> str:
    """The known word that is most like another, or none."""
    folded = {name.lower(): name for name in known}
    if word.lower() in folded:
        return folded[word.lower()]
    close = difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    return close[0] if close else ""


def unknown_function(name: str) -> str:
    """Why a function is refused, and what to write in its place."""
    folded = name.lower()
    if folded in f.INSTEAD:
        return f"the function {name!r} is not allowed in a rule; write {f.INSTEAD[folded]}"
    close = nearest(name, list(f.ALLOWED))
    hint = f". Did you mean {close!r}?" if close else ""
    return f"the function {name!r} is not allowed in a rule{hint} (docs/check-functions.md lists those that are)"


def method_hint(path: Sequence[str], arguments: Sequence[Any]) -> str:
    """What to write for a call such as x.startswith(y)."""
    *before, last = (str(part) for part in path)
    known = nearest(f.INSTEAD.get(last.lower(), last).partition("(")[0], list(f.ALLOWED))
    more = ", …" if arguments else ""
    hint = f"; write {known}({'.'.join(before)}{more})" if known else ""
    return f"{'.'.join(map(str, path))}() is a call through a schema or a method, which a rule has none of{hint}"


def arrow_hint(name: str) -> str:
    """What to write for an arrow where no lambda belongs."""
    return (
        f"-> makes a lambda, which {name} does not take; of JSON write json_extract(x, '$.key') "
        "or json_extract_string(x, '$.key')"
    )


def unknown_name(parts: Sequence[str], known_names: Collection[tuple[str, ...]], text: str) -> str:
    """Why a name is none, with what may have been meant."""
    first = parts[0]
    if first in {"gold", "meta", "input", "previous"}:
        known = [name[1] for name in known_names if name[0] == first and len(name) == 2]
        if len(parts) == 1:
            return f"{first} alone is no value; write {first}.NAME"
        close = nearest(parts[1], known)
        hint = f" Did you mean {first}.{quoted(close)}?" if close else ""
        if first == "previous" and not known:
            return "previous needs `sequence:` and `order:` in the file"
        return f"there is no {first}.{parts[1]}: {parts[1]!r} is no declared field.{hint}"
    if first.lower() in _CLOCK:
        return f"{first} reads the clock, and a rule gives the same result tomorrow; use a date from the answer, meta or input"
    if first.lower() in _MACHINE:
        return f"{first} is about this machine, not about the answer; a field of that name stands in `fields`"
    fields = [name[0] for name in known_names if len(name) == 1]
    close = nearest(first, fields)
    if close:
        return f"there is no field {first!r}. Did you mean {quoted(close)}?"
    in_quotes = f'"{first}"' in text
    why = " (double quotes are for names)" if in_quotes else ""
    return f"there is no field {first!r}{why}; a text stands in single quotes: '{first}'. Fields: {', '.join(fields[:12]) or 'none'}"


def syntax_hint(text: str, fields: Sequence[str]) -> str:
    """The likely cause of a syntax error."""
    if text.count("'") % 2:
        return "; a single quote is not closed"
    if text.count('"') % 2:
        return "; a double quote is not closed"
    if text.count("(") != text.count(")"):
        return f"; {text.count('(')} brackets open and {text.count(')')} close"
    for wrong, right in _SIGNS.items():
        if wrong in text:
            return f"; write {right} for {wrong}"
    if "!" in text.replace("!=", "").replace("!~~", ""):
        return "; write not for !"
    words = re.findall(r"\w+", re.sub(r"'[^']*'|\"[^\"]*\"", " ", text))
    keyword = next((word for word in words if word in fields and word.lower() in KEYWORDS), None)
    if keyword is not None:
        return f'; {keyword} is a word of SQL: write the field as "{keyword}", in double quotes'
    if text.lower().lstrip().startswith("if "):
        return "; write if(condition, a, b), or a rule with `when:`"
    return ""
