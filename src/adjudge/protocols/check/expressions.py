"""Expressions of a rule file: DuckDB's syntax tree of each is held to an allow-list, its names resolved, its type known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.protocols.check.names import Expression, Names, Refused
from adjudge.protocols.check.sandbox import Sandbox
from adjudge.protocols.check.tree import Walk

MOST_CHARACTERS = 4000
_NUMBERS = (
    "DOUBLE", "FLOAT", "DECIMAL", "INTEGER", "BIGINT", "HUGEINT", "SMALLINT", "TINYINT", "UBIGINT", "UINTEGER",
    "UHUGEINT",
)  # fmt: skip
_FINITE = "list_filter([1], lambda v: isfinite(v))[1]"
"""What stands around arithmetic that may give NaN or infinity, its value in place of the 1."""


def check_expressions(
    texts: Sequence[str], names: Names, sandbox: Sandbox, results: Sequence[str]
) -> list[Expression | Refused]:
    """Every text as a checked expression that gives one of the `results` (`truth` or `number`), or why it is refused."""
    finite, *parsed = _parsed([_FINITE, *texts], sandbox)
    checked: list[Any] = []
    for text, answer in zip(texts, parsed, strict=True):
        walk = Walk(text, names, finite["statements"][0]["node"]["select_list"][0])
        try:
            checked.append((walk.statement(answer), walk.uses))
        except Refused as refused:
            checked.append(refused)
    allowed = [place for place, each in enumerate(checked) if not isinstance(each, Refused)]
    sql = sandbox.render([checked[place][0] for place in allowed])
    for place, rendered, kind in zip(allowed, sql, sandbox.bind(names.columns(), sql), strict=True):
        uses = tuple(name for name in names.known if name in checked[place][1])
        checked[place] = _wrong_type(kind, results[place], names) or Expression(rendered, uses)
    return checked


def _parsed(texts: Sequence[str], sandbox: Sandbox) -> list[dict[str, Any]]:
    answers = sandbox.parse([text if len(text) <= MOST_CHARACTERS else "NULL" for text in texts])
    long = {"error": True, "error_message": f"it is longer than {MOST_CHARACTERS} characters"}
    return [answer if len(text) <= MOST_CHARACTERS else long for text, answer in zip(texts, answers, strict=True)]


def _wrong_type(result: dict[str, str], wanted: str, names: Names) -> Refused | None:
    if "error" in result:
        return Refused(f"does not fit its types: {_readable(result['error'], names)}")
    kind = result["type"]
    if wanted == "truth" and kind != "BOOLEAN":
        return Refused(f"gives a value of type {kind}, expected true or false; compare it with something, such as > 0")
    if wanted == "number" and not kind.startswith(_NUMBERS):
        return Refused(f"gives a value of type {kind}, expected a number to observe")
    return None


def _readable(error: str, names: Names) -> str:
    """DuckDB's own words, in one line, with the author's names."""
    first = error.partition("\n")[0].partition(": ")[2] or error
    for name in names.known.values():
        first = first.replace(f'"{name.column}"', name.text)
        first = " ".join(name.text if word.strip("(),.;") == name.column else word for word in first.split(" "))
    candidates = "No function matches" in error
    return first.strip() + (" (are text and number mixed up?)" if candidates else "")
