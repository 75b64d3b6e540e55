"""Expressions of a rule file: DuckDB's syntax tree of each is held to an allow-list, its names resolved, its type known."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

from adjudge.protocols.check import functions as f
from adjudge.protocols.check.names import (
    RESERVED,
    Expression,
    Names,
    Refused,
    arrow_hint,
    method_hint,
    syntax_hint,
    unknown_function,
    unknown_name,
)
from adjudge.protocols.check.sandbox import Sandbox

MOST_CHARACTERS = 4000
_NUMBERS = (
    "DOUBLE", "FLOAT", "DECIMAL", "INTEGER", "BIGINT", "HUGEINT", "SMALLINT", "TINYINT", "UBIGINT", "UINTEGER",
    "UHUGEINT",
)  # fmt: skip
_FINITE = "list_filter([1], lambda v: isfinite(v))[1]"
"""What stands around arithmetic that may give NaN or infinity, its value in place of the 1."""
MOST_NODES = 2000
MOST_DEPTH = 100
MOST_LIST = 1000
_BEFORE = len("SELECT ")
_STRINGS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_OUTSIDE = re.compile(r";|--|/\*|\$|\bwindow\b", re.IGNORECASE)
"""What the tree does not show: the end of a statement, comments, other quotes, a clause that names windows."""
_NOWHERE = 18446744073709551615
_PLAIN = ("class", "type", "alias", "query_location", "query_location_length")
_KEYS: dict[str, tuple[str, ...]] = {
    "COMPARISON": ("left", "right"),
    "CONJUNCTION": ("children",),
    "BETWEEN": ("input", "lower", "upper"),
    "CASE": ("case_checks", "else_expr"),
    "CAST": ("child", "type_expr", "try_cast"),
    "CONSTANT": ("literal",),
    "COLUMN_REF": ("column_names",),
    "FUNCTION": ("function_name", "arguments", "is_operator", "qualified_name"),
    "LAMBDA": ("lhs", "expr", "syntax_type"),
    "OPERATOR": ("children",),
}
"""The kinds of nodes that a rule may have, and what each may hold beside `_PLAIN`."""
_STATEMENT = {
    "where_clause": "WHERE", "group_expressions": "GROUP BY", "group_sets": "GROUP BY", "having": "HAVING",
    "sample": "USING SAMPLE", "qualify": "QUALIFY", "modifiers": "DISTINCT, ORDER BY or LIMIT",
}  # fmt: skip
_NOT_EXPRESSIONS = {
    "SUBQUERY": "a subquery (SELECT, EXISTS or ANY)",
    "WINDOW": "a window function (OVER)",
    "STAR": "a star",
    "PARAMETER": "a parameter",
    "POSITIONAL_REFERENCE": "a reference by position",
    "DEFAULT": "DEFAULT",
    "COLLATE": "a collation",
}


class Walk:
    """One pass over the tree of one expression: what is not allowed is refused, names become internal columns."""

    def __init__(self, text: str, names: Names, finite: dict[str, Any]) -> None:
        self.text, self.names = text, names
        self.bytes = text.encode()
        self.uses: set[tuple[str, ...]] = set()
        self.nodes = self.depth = 0
        self.finite = finite

    def statement(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The tree with our column names; a Refused says what is wrong."""
        if not self.text.strip():
            raise Refused("is empty; write an expression such as total >= 0")
        if answer.get("error"):
            raise self._syntax(answer)
        bare = _STRINGS.sub(lambda match: "_" * len(match[0]), self.text)
        if outside := _OUTSIDE.search(bare):
            raise Refused(f"holds {outside[0]}, which is more than an expression", outside[0], outside.start())
        statements = answer["statements"]
        if len(statements) != 1:
            raise Refused("is more than one statement", ";", None)
        node = statements[0]["node"]
        if statements[0].get("named_param_map"):
            raise Refused("holds a parameter ($), which an expression has none of", "$", self._find("$"))
        if node.get("type") != "SELECT_NODE":
            raise self._clause(str(node.get("setop_type", "UNION")))
        if node["from_table"].get("type") != "EMPTY":
            raise self._clause("FROM")
        for key, word in _STATEMENT.items():
            if node.get(key):
                raise self._clause(word)
        if node["cte_map"].get("map") or node.get("aggregate_handling") != "STANDARD_HANDLING":
            raise Refused("is more than an expression: WITH and GROUP BY are not allowed", "WITH", None)
        if len(node["select_list"]) != 1:
            raise Refused("is more than one value: a comma stands outside of brackets", ",", self._find(","))
        root = node["select_list"][0]
        if root.get("alias"):
            raise Refused(f"names its value ({root['alias']!r}), or a word is too much", root["alias"], None)
        self._node(root, ())
        return answer

    def _syntax(self, answer: dict[str, Any]) -> Refused:
        message = str(answer.get("error_message", "cannot be parsed")).replace("SELECT clause", "an expression")
        position = answer.get("position")
        at = None if position is None else self._characters(int(position))
        fields = [name[0] for name in self.names.known if len(name) == 1]
        return Refused(f"is no expression: {message}{syntax_hint(self.text, fields)}", "", at)

    def _node(self, node: dict[str, Any], scope: tuple[str, ...], *, alias: str = "", argument: bool = False) -> None:
        """Hold one node to the list; `scope` are the variables of the lambdas around it."""
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise Refused(f"has more than {MOST_NODES} parts")
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise Refused(f"is nested more than {MOST_DEPTH} levels deep")
        kind = str(node.get("class"))
        if kind == "LAMBDA" and not argument:
            raise self._refused(arrow_hint("an expression"), node)
        if kind not in _KEYS:
            what = _NOT_EXPRESSIONS.get(kind, kind)
            raise self._refused(f"{what} is not allowed in a rule", node)
        if node.get("alias") not in {"", None, alias}:
            raise self._refused(f"names a value ({node['alias']!r}), which an expression does not", node)
        if kind == "FUNCTION" and (node.get("schema") or node.get("catalog")):
            path = [str(part) for part in (node.get("catalog"), node.get("schema"), node["function_name"]) if part]
            raise self._refused(method_hint(path, node.get("arguments") or []), node, ".".join(path))
        for key, value in node.items():
            if key not in _KEYS[kind] and key not in _PLAIN and _says_something(key, value):
                raise self._refused(f"{_words(key)} is not allowed in a rule", node)
        if kind == "FUNCTION":
            self._function(node, scope)
        elif kind == "LAMBDA":
            self._lambda(node, scope)
        elif kind == "COLUMN_REF":
            self._column_ref(node, scope)
        else:
            children = _children(node)
            self._plain_node(kind, node, children)
            for child in children:
                self._node(child, scope)
        self.depth -= 1

    def _plain_node(self, kind: str, node: dict[str, Any], children: Sequence[dict[str, Any]]) -> None:
        """What is asked of a node beside that its children are held to the list."""
        if kind == "CAST":
            self._type(node["type_expr"])
        literal = (node.get("literal") or {}).get("kind")
        if kind == "CONSTANT" and literal not in {"INTEGER", "NUMERIC", "STRING", "BOOLEAN", "NULL_LITERAL"}:
            raise self._refused(f"a constant of kind {literal} is not allowed in a rule", node)
        if kind == "OPERATOR" and node["type"] not in f.OPERATOR_TYPES:
            raise self._refused(f"{_words(node['type'])} is not allowed in a rule", node)
        if kind == "OPERATOR" and len(children) > MOST_LIST:
            raise self._refused(f"a list of more than {MOST_LIST} values is not for a rule", node)
        if kind in {"COMPARISON", "BETWEEN"} or node["type"] in {"COMPARE_IN", "COMPARE_NOT_IN"}:
            self._compared(node, children)

    def _type(self, node: dict[str, Any]) -> None:
        word = str(node.get("type_name", ""))
        path = (node.get("qualified_name") or {}).get("path", [word])
        if node.get("class") != "TYPE" or len(path) != 1 or not word.isascii() or word.lower() not in f.CAST_TYPES:
            raise self._refused(f"a cast to {'.'.join(map(str, path))} is not allowed in a rule", node)
        for child in node.get("children") or ():
            if child.get("class") == "TYPE":
                self._type(child)
            elif child.get("class") != "CONSTANT":
                raise self._refused(f"a cast to {word} with such a size is not allowed", node)

    def _function(self, node: dict[str, Any], scope: tuple[str, ...]) -> None:
        name, arguments = str(node["function_name"]), node.get("arguments") or []
        if (node.get("qualified_name") or {}).get("path", [name]) != [name]:
            raise self._refused(f"{name} is called through a schema, which a rule has none of", node, name)
        folded = name.lower() if name.isascii() else name
        if folded not in f.ALLOWED:
            raise self._refused(unknown_function(name), node, name)
        if len(arguments) > MOST_LIST:
            raise self._refused(f"{name} with more than {MOST_LIST} arguments is not for a rule", node, name)
        count, why = f.ARGUMENTS.get(folded, (len(arguments), ""))
        if len(arguments) != count:
            raise self._refused(f"{name} with {len(arguments)} argument is not allowed in a rule: {why}", node, name)
        self._sizes(folded, name, node, arguments)
        kinds = {self._plain_kind(argument["expression"]) for argument in arguments}
        sums_numbers = folded in {"+", "-"} and "number" in kinds  # as far as its parts tell
        self._arguments(folded, name, node, scope)
        if sums_numbers or (folded in f.NOT_FINITE and not _of_time(arguments)):
            self._guard(node)

    def _guard(self, node: dict[str, Any]) -> None:
        """Put a guard around a node in its place: NULL where its value is NaN or infinite, which SQL would compare."""
        guard = copy.deepcopy(self.finite)
        (values, _) = guard["children"][0]["arguments"]
        values["expression"]["arguments"][0]["expression"] = dict(node)
        node.clear()
        node.update(guard)

    def _arguments(self, folded: str, name: str, node: dict[str, Any], scope: tuple[str, ...]) -> None:
        for argument in node.get("arguments") or ():
            label, child = argument.get("name", ""), argument["expression"]
            if label and folded != "struct_pack":
                raise self._refused(f"{name} takes no argument by name ({label})", node, name)
            if child.get("class") == "LAMBDA" and folded not in f.LAMBDAS:
                raise self._refused(arrow_hint(name), child, "->")
            self._node(child, scope, alias=label, argument=True)

    def _sizes(self, folded: str, name: str, node: dict[str, Any], arguments: Sequence[dict[str, Any]]) -> None:
        """A function that makes a value of a given size gets a constant one, within the bound."""
        for place in f.SIZED.get(folded, ()):
            if place >= len(arguments):
                continue
            size = _whole(arguments[place]["expression"])
            if size is None or abs(size) > f.MOST_SIZE:
                shown = "not a constant" if size is None else f"{size:,}"
                bound = f"the size must be a constant of at most {f.MOST_SIZE:,}, found {shown}"
                raise self._refused(f"{name} makes a value as large as it is told: {bound}", node, name)

    def _lambda(self, node: dict[str, Any], scope: tuple[str, ...]) -> None:
        variables = _variables(node["lhs"])
        if variables is None:
            raise self._refused(arrow_hint("the expression"), node, "->")
        for name in variables:
            if (name,) in self.names.known or name in RESERVED:
                raise self._refused(f"the variable {name!r} has the name of a field; call it otherwise", node, name)
        self._node(node["expr"], (*scope, *variables))

    def _column_ref(self, node: dict[str, Any], scope: tuple[str, ...]) -> None:
        names = [str(name) for name in node["column_names"]]
        if names[0] in scope:
            return
        if len(names) > 1:
            self.names.of_block(names[0], names[1])
        for size in (2, 1):
            name = self.names.known.get(tuple(names[:size]))
            if name is not None and (size == 1 or len(names) >= size):
                self.uses.add(name.written)
                node["column_names"] = [name.column, *names[size:]]
                return
        raise self._refused(unknown_name(names, self.names.known, self.text), node, ".".join(names))

    def _compared(self, node: dict[str, Any], sides: Sequence[dict[str, Any]]) -> None:
        """Refuse a comparison with NULL, and one of a text with a number, which would be converted in silence."""
        for side in sides:
            if side.get("class") == "CONSTANT" and (side.get("literal") or {}).get("kind") == "NULL_LITERAL":
                if "DISTINCT" in str(node["type"]):
                    continue
                raise self._refused(
                    "a comparison with null is never true; write `is null` or `is not null`", side, "null"
                )
        kinds = [(side, self._plain_kind(side)) for side in sides]
        texts = [side for side, kind in kinds if kind == "text"]
        numbers = [side for side, kind in kinds if kind == "number"]
        columns = [side for side, kind in kinds if kind in {"text", "number"} and side.get("class") == "COLUMN_REF"]
        if texts and numbers and columns:
            raise self._refused(self._mixed(texts[0], numbers[0]), columns[0])

    def _mixed(self, text: dict[str, Any], number: dict[str, Any]) -> str:
        hint = ""
        if text.get("class") == "CONSTANT":
            hint = "; a number stands without quotes"
        elif number.get("class") == "CONSTANT":
            hint = "; a text stands in single quotes, and x::double turns a text into a number"
        return f"compares a text ({self._word(text)[0]}) with a number ({self._word(number)[0]}){hint}"

    def _plain_kind(self, side: dict[str, Any]) -> str | None:
        if side.get("class") == "CONSTANT":
            kind = (side.get("literal") or {}).get("kind")
            return {"INTEGER": "number", "NUMERIC": "number", "STRING": "text"}.get(str(kind))
        if side.get("class") == "COLUMN_REF":
            name = self.names.known.get(tuple(str(part) for part in side["column_names"]))
            return None if name is None else name.kind
        return None

    def _refused(self, what: str, node: dict[str, Any], word: str = "") -> Refused:
        return Refused(what, *self._word(node, word))

    def _clause(self, clause: str) -> Refused:
        """Why a statement of more than one expression is none."""
        word = clause.partition(",")[0]
        return Refused(f"is more than an expression: {clause} is not allowed", clause, self._find(word))

    def _word(self, node: dict[str, Any], word: str = "") -> tuple[str, int | None]:
        """The words of a node as the author wrote them, and the character where they begin."""
        start, length = node.get("query_location", _NOWHERE), node.get("query_location_length", 0)
        if start == _NOWHERE:
            return word, self._find(word) if word else None
        begin = max(0, int(start) - _BEFORE)
        text = word or self.bytes[begin : begin + int(length)].decode(errors="replace")
        return text, self._characters(int(start))

    def _characters(self, position: int) -> int:
        return len(self.bytes[: max(0, position - _BEFORE)].decode(errors="replace"))

    def _find(self, word: str) -> int | None:
        place = self.text.lower().find(word.lower())
        return None if place < 0 else place


def _children(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a node that are expressions themselves; all keys of `_KEYS` that hold some are here."""
    children = [node[key] for key in ("left", "right", "input", "lower", "upper", "child") if key in node]
    children += node.get("children") or ()
    for check in node.get("case_checks", ()):
        children += [check["when_expr"], check["then_expr"]]
    return [*children, *([node["else_expr"]] if "else_expr" in node else [])]


def _variables(node: dict[str, Any]) -> list[str] | None:
    """The names of a lambda's variables: one, or several in brackets."""
    if node.get("class") == "COLUMN_REF" and len(node["column_names"]) == 1:
        return [str(node["column_names"][0])]
    if node.get("class") == "FUNCTION" and node.get("function_name") == "row":
        inner = [_variables(argument["expression"]) for argument in node["arguments"]]
        return None if any(each is None for each in inner) else [name for each in inner for name in each or ()]
    return None


def _whole(node: dict[str, Any]) -> int | None:
    """A whole constant, with its sign."""
    if node.get("class") == "CONSTANT" and (node.get("literal") or {}).get("kind") == "INTEGER":
        try:
            return int(node["literal"]["text"])
        except ValueError:
            return None
    if node.get("class") == "FUNCTION" and node.get("function_name") == "-" and len(node["arguments"]) == 1:
        inner = _whole(node["arguments"][0]["expression"])
        return None if inner is None else -inner
    return None


def _of_time(arguments: Sequence[dict[str, Any]]) -> bool:
    """Whether an argument is a span of time, which is always finite."""
    return any(str(argument["expression"].get("function_name", "")).startswith("to_") for argument in arguments)


def _says_something(key: str, value: Any) -> bool:
    if key == "order_bys":
        return bool((value or {}).get("orders"))
    return value not in ("", [], None, False, _NOWHERE)


def _words(key: str) -> str:
    return key.removeprefix("OPERATOR_").replace("_", " ").upper()


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
