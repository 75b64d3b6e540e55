"""The functions that a rule may call, each with an example: pure ones alone, and none that makes much out of little.

What is not listed here is refused by name. `docs/check-functions.md` is made from these tables.
"""

from __future__ import annotations

MOST_SIZE = 10_000
"""The largest constant size where a function makes a value of a given size."""


# fmt: off
NUMBERS = {
    "abs": "abs(-2.5)", "acos": "acos(1)", "asin": "asin(0)", "atan": "atan(0)", "atan2": "atan2(0, 1)",
    "cbrt": "cbrt(27)", "ceil": "ceil(1.2)", "ceiling": "ceiling(1.2)", "cos": "cos(0)", "degrees": "degrees(pi())",
    "even": "even(2.9)", "exp": "exp(0)", "fdiv": "fdiv(7, 2)", "floor": "floor(1.8)", "fmod": "fmod(7, 2)",
    "gcd": "gcd(12, 18)", "greatest": "greatest(1, 3, 2)", "isfinite": "isfinite(1.0)", "isinf": "isinf(1.0)",
    "isnan": "isnan(1.0)", "lcm": "lcm(4, 6)", "least": "least(1, 3, 2)", "ln": "ln(1)", "log": "log(100)",
    "log10": "log10(100)", "log2": "log2(8)", "mod": "mod(7, 2)", "pi": "round(pi(), 4)", "pow": "pow(2, 3)",
    "power": "power(2, 3)", "radians": "round(radians(180), 4)", "round": "round(2.345, 1)", "sign": "sign(-3)",
    "sin": "sin(0)", "sqrt": "sqrt(16)", "tan": "tan(0)", "trunc": "trunc(2.9)",
}
OPERATORS = {
    "+": "1 + 2", "-": "3 - 1", "*": "2 * 3", "/": "7 / 2", "//": "7 // 2", "%": "7 % 2", "^": "2 ^ 3", "**": "2 ** 3",
    "||": "'a' || 'b'", "~~": "'abc' like 'a%'", "!~~": "'abc' not like 'b%'", "~~*": "'ABC' ilike 'a%'",
    "!~~*": "'ABC' not ilike 'b%'", "~~~": "'abc' glob 'a*'", "&": "6 & 3", "|": "6 | 3", "<<": "1 << 3", ">>": "8 >> 3",
    "->>": "'{\"a\": 1}' ->> '$.a'",
}
TEXT = {
    "ascii": "ascii('A')", "chr": "chr(65)", "concat": "concat('a', 'b')", "concat_ws": "concat_ws('-', 'a', 'b')",
    "contains": "contains('abc', 'b')", "damerau_levenshtein": "damerau_levenshtein('ab', 'ba')",
    "ends_with": "ends_with('abc', 'c')", "hamming": "hamming('abc', 'abd')", "instr": "instr('abc', 'c')",
    "jaccard": "jaccard('abc', 'abd')", "jaro_similarity": "round(jaro_similarity('abc', 'abd'), 3)",
    "jaro_winkler_similarity": "round(jaro_winkler_similarity('abc', 'abd'), 3)", "lcase": "lcase('ABC')",
    "left": "left('abc', 2)", "length": "length('abc')", "levenshtein": "levenshtein('kitten', 'sitting')",
    "lower": "lower('ABC')", "ltrim": "ltrim('  a')", "md5": "md5('a')", "nfc_normalize": "nfc_normalize('é')",
    "ord": "ord('A')", "position": "position('c' in 'abc')", "prefix": "prefix('abc', 'a')",
    "regexp_extract": "regexp_extract('INV-12', '[0-9]+')",
    "regexp_extract_all": "regexp_extract_all('1 and 2', '[0-9]')",
    "regexp_full_match": "regexp_full_match('INV-12', 'INV-[0-9]+')",
    "regexp_matches": "regexp_matches('INV-12', '[0-9]')", "regexp_replace": "regexp_replace('a1', '[0-9]', '')",
    "replace": "replace('a b', ' ', '_')", "reverse": "reverse('abc')", "right": "right('abc', 2)",
    "rtrim": "rtrim('a  ')", "sha256": "left(sha256('a'), 8)", "split": "split('a-b', '-')",
    "split_part": "split_part('a-b', '-', 2)", "starts_with": "starts_with('abc', 'a')", "str_split": "str_split('a-b', '-')",
    "string_split": "string_split('a-b', '-')", "strip_accents": "strip_accents('é')", "strlen": "strlen('abc')",
    "strpos": "strpos('abc', 'c')", "substr": "substr('abc', 2, 1)", "substring": "substring('abc', 2, 1)",
    "suffix": "suffix('abc', 'c')", "translate": "translate('abc', 'a', 'x')", "trim": "trim(' a ')",
    "ucase": "ucase('abc')", "unicode": "unicode('A')", "upper": "upper('abc')",
    "lpad": "lpad('7', 3, '0')", "rpad": "rpad('7', 3, '0')", "repeat": "repeat('ab', 2)",
}
DATES = {
    "age": "age(date '2026-03-01', date '2026-01-01')", "date_add": "date_add(date '2026-01-01', interval 1 day)",
    "date_diff": "date_diff('day', date '2026-01-01', date '2026-01-31')", "date_part": "date_part('year', date '2026-01-02')",
    "date_sub": "date_sub('month', date '2026-01-01', date '2026-03-01')",
    "date_trunc": "date_trunc('month', date '2026-01-31')",
    "datediff": "datediff('day', date '2026-01-01', date '2026-01-31')", "datepart": "datepart('year', date '2026-01-02')",
    "datetrunc": "datetrunc('month', date '2026-01-31')", "day": "day(date '2026-01-02')",
    "dayname": "dayname(date '2026-01-02')", "dayofmonth": "dayofmonth(date '2026-01-02')",
    "dayofweek": "dayofweek(date '2026-01-02')", "dayofyear": "dayofyear(date '2026-02-01')",
    "epoch": "epoch(date '1970-01-02')", "hour": "hour(timestamp '2026-01-02 03:04:05')",
    "isodow": "isodow(date '2026-01-02')", "last_day": "last_day(date '2026-02-01')", "make_date": "make_date(2026, 1, 2)",
    "minute": "minute(timestamp '2026-01-02 03:04:05')", "month": "month(date '2026-01-02')",
    "monthname": "monthname(date '2026-01-02')", "quarter": "quarter(date '2026-05-01')",
    "second": "second(timestamp '2026-01-02 03:04:05')", "strftime": "strftime(date '2026-01-02', '%d.%m.%Y')",
    "strptime": "strptime('02.01.2026', '%d.%m.%Y')", "to_days": "date '2026-01-01' + to_days(1)",
    "to_hours": "to_hours(2)", "to_minutes": "to_minutes(2)", "to_months": "date '2026-01-01' + to_months(1)",
    "to_seconds": "to_seconds(2)", "to_weeks": "date '2026-01-01' + to_weeks(1)",
    "to_years": "date '2026-01-01' + to_years(1)", "try_strptime": "try_strptime('x', '%Y') is null",
    "week": "week(date '2026-01-02')", "weekday": "weekday(date '2026-01-02')",
    "weekofyear": "weekofyear(date '2026-01-02')", "year": "year(date '2026-01-02')",
}
LISTS = {
    "array_length": "array_length([1, 2])", "array_to_string": "array_to_string(['a', 'b'], '-')",
    "flatten": "flatten([[1], [2]])", "len": "len([1, 2])", "list_any_value": "list_any_value([1, 2])",
    "list_append": "list_append([1], 2)", "list_apply": "list_apply([1, 2], lambda x: x + 1)", "list_avg": "list_avg([1, 2])",
    "list_bool_and": "list_bool_and([true, false])", "list_bool_or": "list_bool_or([true, false])",
    "list_cat": "list_cat([1], [2])", "list_concat": "list_concat([1], [2])", "list_contains": "list_contains([1, 2], 2)",
    "list_count": "list_count([1, null])", "list_distinct": "list_sort(list_distinct([2, 1, 2]))",
    "list_element": "list_element([5, 6], 1)", "list_extract": "list_extract([5, 6], 1)",
    "list_filter": "list_filter([1, 2], lambda x: x > 1)", "list_first": "list_first([5, 6])",
    "list_has": "list_has([1, 2], 2)", "list_has_all": "list_has_all([1, 2], [2])",
    "list_has_any": "list_has_any([1, 2], [2, 3])", "list_indexof": "list_indexof([5, 6], 6)",
    "list_intersect": "list_intersect([1, 2], [2, 3])", "list_last": "list_last([5, 6])", "list_max": "list_max([1, 2])",
    "list_median": "list_median([1, 2, 9])", "list_min": "list_min([1, 2])", "list_position": "list_position([5, 6], 6)",
    "list_prepend": "list_prepend(1, [2])", "list_product": "list_product([2, 3])",
    "list_reduce": "list_reduce([1, 2], lambda a, b: a + b)", "list_reverse": "list_reverse([1, 2])",
    "list_reverse_sort": "list_reverse_sort([1, 2])", "list_slice": "list_slice([5, 6, 7], 2, 3)",
    "list_sort": "list_sort([2, 1])", "list_sum": "list_sum([1, 2])",
    "list_transform": "list_transform([1, 2], lambda x: x * 2)", "list_unique": "list_unique([1, 1, 2])",
    "list_value": "list_value(1, 2)", "list_zip": "list_zip([1], [2])", "row": "row(1, 2)",
    "struct_extract": "struct_extract({'a': 1}, 'a')", "struct_pack": "{'a': 1}",
    "range": "range(3)", "generate_series": "generate_series(1, 3)",
}
JSON = {
    "json_array_length": "json_array_length('[1, 2]')", "json_contains": "json_contains('[1, 2]', '1')",
    "json_exists": "json_exists('{\"a\": 1}', '$.a')", "json_extract": "json_extract('{\"a\": 1}', '$.a')",
    "json_extract_string": "json_extract_string('{\"a\": \"x\"}', '$.a')", "json_keys": "json_keys('{\"a\": 1}')",
    "json_type": "json_type('{\"a\": 1}')", "json_valid": "json_valid('{')", "json_value": "json_value('{\"a\": 1}', '$.a')",
}
CHOICES = {"if": "if(true, 1, 2)", "nullif": "nullif(1, 1) is null"}
# fmt: on

GROUPS = {
    "Operators": OPERATORS,
    "Numbers": NUMBERS,
    "Text": TEXT,
    "Dates": DATES,
    "Lists and objects": LISTS,
    "JSON": JSON,
    "Choices": CHOICES,
}
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
KINDS = {
    "COMPARISON": "a comparison",
    "CONJUNCTION": "and, or",
    "BETWEEN": "between",
    "CASE": "case when",
    "CAST": "a cast",
    "CONSTANT": "a constant",
    "COLUMN_REF": "a name",
    "FUNCTION": "a function",
    "LAMBDA": "a lambda",
    "OPERATOR": "an operator",
}
OPERATOR_TYPES = frozenset({
    "OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE", "COMPARE_IN",
    "COMPARE_NOT_IN", "ARRAY_EXTRACT", "ARRAY_SLICE", "STRUCT_EXTRACT", "ARRAY_CONSTRUCTOR",
})  # fmt: skip
INSTEAD = {
    "sum": "list_sum over a list; a rule sees one answer at a time",
    **dict.fromkeys(("avg", "mean"), "list_avg over a list"),
    "min": "least(a, b), or list_min over a list",
    "max": "greatest(a, b), or list_max over a list",
    "count": "len or list_count over a list",
    "any": "list_bool_or, or list_has",
    "all": "list_bool_and, or list_has_all",
    **dict.fromkeys(
        ("list_aggregate", "list_aggr", "array_aggregate"), "list_sum, list_avg, list_min, list_max … by name"
    ),
    **dict.fromkeys(("now", "today"), "a date from the answer, meta or input: a rule gives the same result tomorrow"),
    "random": "nothing random: a rule gives the same result every time",
    **dict.fromkeys(("isnull", "isna", "is_null"), "x is null"),
    **dict.fromkeys(("matches", "match", "regex"), "regexp_matches(x, 'pattern')"),
    "startswith": "starts_with(x, 'a')",
    "endswith": "ends_with(x, 'a')",
    "strip": "trim(x)",
    "size": "len(x)",
    "int": "x::int",
    "float": "x::double",
    "str": "x::text",
    **dict.fromkeys(("json_transform", "from_json"), "json_extract"),
    **dict.fromkeys(("format", "printf"), "concat or ||"),
    "&&": "and",
    "=>": ">=",
    "=<": "<=",
    "===": "=",
    "!==": "!=",
    "unnest": "a list function, or [x for x in list]",
}
"""What to write in place of a function that is not there, where people often look for it."""
