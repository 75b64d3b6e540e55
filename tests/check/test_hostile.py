"""A rule file may come from a stranger: nothing in it reads, writes, connects, waits or takes all memory."""

from __future__ import annotations

import time

import duckdb
import pyarrow as pa
import pytest

from adjudge.protocols.check.expressions import check_expressions
from adjudge.protocols.check.functions import ALLOWED
from adjudge.protocols.check.names import Expression, Name, Names, Refused
from adjudge.protocols.check.sandbox import Sandbox

NAMES = {
    "x": ("c0", "VARCHAR", "text"),
    "n": ("c1", "DOUBLE", "number"),
    "d": ("c2", "DATE", "date"),
    "l": ("c3", "DOUBLE[]", "list"),
    "j": ("c4", "JSON", "json"),
}
FILES = [
    *(f"{name}('/etc/passwd') is null" for name in (
        "read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_ndjson", "read_parquet", "parquet_scan",
        "read_text", "read_blob", "sniff_csv", "glob", "parquet_metadata", "parquet_schema", "read_json_objects",
        "json_execute_serialized_sql", "query", "query_table", "sql_auto_complete", "seq_scan", "arrow_scan",
        "pandas_scan", "sqlite_scan", "iceberg_scan", "delta_scan", "st_read", "read_xlsx", "load_aws_credentials",
        "which_secret", "duckdb_secrets", "pragma_database_size", "pragma_table_info", "duckdb_settings",
        "duckdb_functions", "duckdb_tables", "checkpoint", "force_checkpoint", "file_exists", "getvariable",
    )),
    "'/etc/passwd' in (select * from read_text('/etc/passwd'))",
    "1 = (select count(*) from '/etc/passwd')",
    "n > 0 from '/etc/passwd'",
    "n > 0 from read_csv('/etc/passwd')",
    "exists(from read_text('/etc/passwd'))",
    "x = (from read_text('/etc/passwd') select content)",
    "(table batch) is null",
    "(select c0 from batch limit 1) = x",
    "(values (1)) = n",
    "(with t as (select 1) select * from t) = n",
    "list(select 1) is null",
    "array(select 1) is null",
    "[y for y in (select x)] is null",
]  # fmt: skip
STATEMENTS = [
    "1; select 2", "1; drop table batch", "1; attach '/tmp/a.db'", "1; install httpfs", "1; load httpfs",
    "1; pragma version", "1; set threads = 8", "1; copy (select 1) to '/tmp/x'", "1; create macro f(a) as a",
    "1; call pragma_version()", "1; export database '/tmp/x'", "1; import database '/tmp/x'", "1; prepare p as select 1",
    "1; execute p", "1; vacuum", "1; checkpoint", "1; use memory", "1; begin", "1; create table t(a int)",
    "1; insert into batch values (1)", "1; update batch set c0 = 1", "1; delete from batch", "1; reset all",
    "copy batch to '/tmp/x'", "attach '/tmp/x'", "install httpfs", "pragma version", "create table t(a int)",
    "1 union select 2", "1 union all by name select 2", "1 intersect select 2", "1 except select 2", "n > 0 limit 1",
    "n > 0 order by 1", "n > 0 where true", "n > 0 group by all", "n > 0 having true", "n > 0 qualify true",
    "distinct n > 0", "n > 0 using sample 3", "n > 0 offset 1", "n > 0 window w as ()", "n > 0 as y", "n > 0 y",
    "n > 0, x", "*", "batch.*", "columns(*)", "* exclude (x)", "* replace (1 as x)", "columns('c.*') > 0", "unpack(columns(*))",
]  # fmt: skip
FUNCTIONS = [
    *(f"{name}() is null" for name in (
        "now", "random", "uuid", "gen_random_uuid", "uuidv7", "uuidv4", "version", "current_user", "current_schema",
        "current_database", "current_catalog", "today", "current_timestamp", "get_current_timestamp",
        "transaction_timestamp", "txid_current", "pg_backend_pid", "inet_client_addr", "current_role",
        "current_connection_id", "current_query", "current_query_id", "current_transaction_id", "connection_id",
    )),
    "getenv('HOME') = x", "current_setting('threads') = x", "set_config('a', 'b') = x", "nextval('s') = n",
    "currval('s') = n", "setseed(0.5) is null", "age(d) is null", "age(d::timestamp) is null", "write_log('a') is null",
    "error('x') is null", "list_aggregate(l, 'sum') > 0", "list_aggr(l, 'sum') > 0", "array_aggregate(l, 'sum') > 0",
    "array_aggr(l, 'sum') > 0", "aggregate(l, 'sum') > 0", "apply(l, x -> x) is null", "reduce(l, (a, b) -> a) > 0",
    "sum(n) > 0", "count(*) > 0", "n in (sum(n))", "max(n) over () > 0", "row_number() over () > 0", "lag(n) over () > 0",
    "sum(n) filter (where n > 0) > 0", "string_agg(x, ',' order by x) = x", "unnest(l) > 0", "unnest([1, 2]) > 0",
    "generate_subscripts(l, 1) > 0", "json_serialize_sql('select 1') is null", "json_deserialize_sql('{}') is null",
    "json_serialize_plan('select 1') is null", "from_json(j, '\"INT\"') > 0", "json_transform(j, '\"INT\"') > 0",
    "main.abs(n) > 0", "system.main.abs(n) > 0", "memory.abs(n) > 0", "pg_catalog.abs(n) > 0", "n.abs() > 0",
    "hash(x) > 0", "format('{:>1000000000}', x) = x", "printf('%1000000000d', 1) = x", "bar(n, 0, 1, 1000000000) = x",
    "list_resize(l, 1000000000) is null", "array_resize(l, 1000000000) is null", "map_from_entries(l) is null",
    "getvariable('a') = x", "alias(x) = x", "typeof(x) = 'a'", "stats(n) is null", "vector_type(n) is null",
    "create_sort_key(x, 'asc') is null", "rowid > 0", "batch.rowid > 0", "excluded.x = x", "lambda y: y", "x -> 1",
    "list_transform(l, 1) is null", "abs(lambda y: y) > 0", "try(1 // 0) is null", "grouping(x) > 0",
]  # fmt: skip
TRICKS = [
    "$1 = n", "$a = n", "? = n", "#1 = n", ":a = n", "@@version = x", "n > 0 -- ; drop\n; select 1", "/* */ 1; /* */ select 2",
    "'x'; select 'y' = 'y'", '"x"; select 1', "x = 'a' or 1 = 1; --", "ａｂｓ(n) > 0", "ᴀbs(n) > 0", "аbs(n) > 0", "n ＞ 0",
    "x = ‘a’", "getEnv('X') = x", "GETENV('X') = x", "\"getenv\"('X') = x", "\"read_csv\"('x') is null",
    "\"main\".\"getenv\"('x') = x", "x collate nocase = 'a'", "x::foo = x", "x::main.foo is null", "n::uuid is null",
    "x::blob is null", "x::bit is null", "cast(x as enum('a')) is null", "x::timestamptz is null", "x::map(text, text) is null",
    "x::union(a int) is null", "x::struct(a int) is null", "x'ff' is null", "default", "current_date > d", "user = x",
    "localtimestamp > d", "localtime is null", "current_time is null", "session_user = x", "current_catalog = x",
    "n > all (select 1)", "n = any (l)", "n = some (select 1)", "x similar to (select 'a')", "n in (select 1)",
    "not exists (select 1)", "case when (select true) then 1 end = 1", "[y for y in l if (select true)] is null",
    "list_transform(l, n -> n) is null", "list_transform(l, gold -> gold) is null", "{'a': (select 1)} is null",
    "struct_pack(a := (select 1)) is null", "coalesce((select 1), n) > 0", "n between (select 1) and 2", "c0 = 'a'", "c1 > 0",
    "batch.c0 = 'a'", "main.batch.c0 = 'a'", "id.x = 'a'", "meta = 'a'", "gold is null", "previous.n > 0",
    "list_sum(range(100000000)) > 0", "list_sum(range(1, 100000000, 1)) > 0", "len(generate_series(1, 1000000000)) > 0",
    "repeat('a', 3000000000) = x", "repeat('a', 3000000000 + length(x)) = x", "repeat(x, length(x)) = x",
    "lpad(x, 2000000000, 'a') = x", "rpad(x, 2000000000, 'a') = x", "lpad(x, length(x), 'a') = x",
    "len(range(10000 * 10000)) > 0", "repeat(repeat('a', 10001), 2) = x",
    f"n in ({', '.join(['1'] * 1500)})", " + ".join(["n"] * 1900) + " > 0", "(" * 1500 + "n" + ")" * 1500 + " > 0",
    "not " * 1200 + "n > 0", "a" * 5000, "abs(" * 900 + "n" + ")" * 900 + " > 0", "[" * 900 + "]" * 900 + " is null",
    "case when " * 300 + "true" + " then 1 end" * 300 + " > 0",
]  # fmt: skip
HOSTILE = list(dict.fromkeys([*FILES, *STATEMENTS, *FUNCTIONS, *TRICKS]))


def names() -> Names:
    known = {(name,): Name((name,), column, sql, kind) for name, (column, sql, kind) in NAMES.items()}
    return Names({**known, ("id",): Name(("id",), "id", "VARCHAR", "text")})


@pytest.fixture(scope="module")
def sandbox():
    with_limits = Sandbox(memory_mb=400, seconds=5)
    yield with_limits
    with_limits.close()


def test_the_suite_is_large_enough():
    assert len(HOSTILE) >= 150


def test_every_hostile_expression_is_refused_at_load(sandbox):
    checked = check_expressions(HOSTILE, names(), sandbox, ["truth"] * len(HOSTILE))
    passed = [text[:80] for text, found in zip(HOSTILE, checked, strict=True) if not isinstance(found, Refused)]
    assert passed == []
    nameless = [text[:80] for text, found in zip(HOSTILE, checked, strict=True) if not str(found).strip()]
    assert nameless == []


@pytest.mark.parametrize(
    "text, word, at",
    [
        ("read_csv('/etc/passwd') = 'x'", "read_csv", 0),
        ("n > 0 and getenv('X') = 'a'", "getenv", 10),
        ("n > 0 and now() is null", "now", 10),
        ("d > current_date", "current_date", 4),
        ("x = user", "user", 4),
        ("age(d) is null", "age", 0),
        ("random() > 0.5", "random", 0),
        ("1; select 2", ";", 1),
        ("n > 0 from t", "FROM", 6),
        ("x = 'é' and getenv('X') = 'a'", "getenv", 12),
    ],
)
def test_the_word_and_its_place_are_named(sandbox, text, word, at):
    (found,) = check_expressions([text], names(), sandbox, ["truth"])
    assert isinstance(found, Refused)
    assert (found.word, found.at) == (word, at)


def test_only_listed_functions_pass_of_all_that_duckdb_has(sandbox):
    rows = duckdb.connect().execute("select distinct function_name from duckdb_functions()").fetchall()
    functions = sorted(name for (name,) in rows if name.replace("_", "a").isalnum() and not name[0].isdigit())
    assert len(functions) > 500
    texts = [
        call for name in functions for call in (f'"{name}"()', f'"{name}"(n)', f'"{name}"(x, n)', f'"{name}"(l, n, x)')
    ]
    checked = check_expressions(texts, names(), sandbox, ["any"] * len(texts))
    reached = {
        text.split('"')[1] for text, found in zip(texts, checked, strict=True)
        if isinstance(found, Expression) or "does not fit its types" in found.what
    }  # fmt: skip
    assert reached - set(ALLOWED) == set()
    assert len(reached) > 50


def batch(rows: int = 3, text: str = "a") -> pa.Table:
    return pa.table({"c0": pa.array([text] * rows), "c1": pa.array([float(row) for row in range(rows)])})


COLUMNS = [("c0", "VARCHAR"), ("c1", "DOUBLE")]


@pytest.mark.parametrize(
    "heavy",
    [
        "len(range((1e8 + c1)::bigint)) > 0",
        "length(repeat(c0, (3e9 + c1)::bigint)) > 0",
        "len(list_reduce([c0 for i in range(40)], lambda a, b: a || a || b)) > 0",
        "len([[b for b in range(10000)] for a in range(20000 + c1::int)]) > 0",
        "list_sum([list_sum([a * b for b in range(10000)]) for a in range(30000 + c1::int)]) > 0",
    ],
)
def test_what_passes_the_list_is_stopped_within_its_limits(heavy):
    """Past the list, as if a function on it were heavier than it looks: the others go on, and so does the process."""
    limited = Sandbox(memory_mb=400, seconds=2)
    began = time.monotonic()
    light, stopped, again = limited.evaluate(
        batch(), COLUMNS, [("c1 >= 0", "BOOLEAN"), (heavy, "BOOLEAN"), ("c1 + 1", "DOUBLE")]
    )
    assert light.values.to_pylist() == [True] * 3
    assert again.values.to_pylist() == [1.0, 2.0, 3.0]
    assert stopped.values.to_pylist() == [None] * 3
    assert [rows.tolist() for rows, _ in stopped.errors] == [[0, 1, 2]]
    assert "400 MB or 2 s" in stopped.errors[0][1]
    assert time.monotonic() - began < 120
    limited.close()


def test_an_expression_that_raises_after_others_were_only_parsed_is_an_error_of_its_rows(sandbox):
    sandbox.parse(["getenv('X')"])
    (result,) = sandbox.evaluate(batch(2), COLUMNS, [("c0::INTEGER > 0", "BOOLEAN")])
    assert [rows.tolist() for rows, _ in result.errors] == [[0, 1]]


def test_a_heavy_regular_expression_on_a_megabyte_ends(sandbox):
    (found,) = sandbox.evaluate(
        batch(2, "ab" * 500_000), COLUMNS, [("regexp_matches(c0, '(a|b|c){1000}x')", "BOOLEAN")]
    )
    assert found.values.to_pylist() == [False, False] or found.errors


def test_the_process_reaches_nothing_even_past_the_list():
    """The list is the first fence; the connection without files, network and settings is the second."""
    bare = Sandbox(memory_mb=400, seconds=5)
    for sql in (
        "(select count(*) from read_text('/etc/passwd')) > 0",
        "(select count(*) from '/etc/passwd') > 0",
        "(select count(*) from read_csv('https://example.org/x.csv')) > 0",
        "getenv('PATH') is not null",
    ):
        (result,) = bare.bind(COLUMNS, [sql])
        assert "error" in result, sql
    bare.close()
