"""The functions that a rule may call, each with an example: pure ones alone, and none that makes much out of little.

What is not listed in functions.json is refused by name; it also says what to write instead. `docs/check-functions.md` is
made from these tables.
"""

from __future__ import annotations

from importlib.resources import files

import msgspec

MOST_SIZE = 10_000
"""The largest constant size where a function makes a value of a given size."""


_TABLES = msgspec.json.decode((files(__package__) / "functions.json").read_bytes())
GROUPS: dict[str, dict[str, str]] = _TABLES["allowed"]
ALLOWED = {name: example for group in GROUPS.values() for name, example in group.items()}
SIZED = {**dict.fromkeys(("lpad", "rpad", "repeat"), (1,)), **dict.fromkeys(("range", "generate_series"), (0, 1, 2))}
"""Functions that make a value as large as some arguments say: these must be constants of at most MOST_SIZE."""
NOT_FINITE = frozenset({
    "/", "*", "^", "**", "acos", "asin", "cbrt", "exp", "fdiv", "fmod", "ln", "log", "log10", "log2", "pow",
    "power", "sqrt", "tan", "list_avg", "list_product", "list_sum",
})  # fmt: skip
"""Functions whose value may be NaN or infinite where their arguments are finite numbers."""
LAMBDAS = frozenset({"list_apply", "list_transform", "list_filter", "list_reduce"})
ARGUMENTS = {"age": (2, "it would read the clock; give it two dates")}
"""Functions that need so many arguments, and why."""

CAST_TYPES = frozenset({
    "boolean", "bool", "tinyint", "smallint", "integer", "int", "bigint", "hugeint", "float", "real", "double",
    "decimal", "numeric", "varchar", "text", "string", "char", "date", "time", "timestamp", "interval", "json",
    "list",
})  # fmt: skip
OPERATOR_TYPES = frozenset({
    "OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE", "COMPARE_IN",
    "COMPARE_NOT_IN", "ARRAY_EXTRACT", "ARRAY_SLICE", "STRUCT_EXTRACT", "ARRAY_CONSTRUCTOR",
})  # fmt: skip
INSTEAD: dict[str, str] = _TABLES["instead"]
"""What to write in place of a function that is not there, where people often look for it."""
