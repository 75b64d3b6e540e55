"""The process in which the expressions of a rule file run: DuckDB without files, network or extensions, under limits.

It is started by path, imports nothing of adjudge, reads requests from standard input and answers on standard output:
a frame is the length of a JSON header, the header, the length of Arrow data, and the data. At the end of its input it ends.
"""

from __future__ import annotations

import json
import resource
import signal
import struct
import sys
from typing import Any, BinaryIO

if __name__ == "__main__":
    for unneeded in ("numpy", "pandas"):  # DuckDB and pyarrow do without them; they take most of the start
        sys.modules[unneeded] = None  # type: ignore[assignment]

import duckdb
import pyarrow as pa

LENGTHS = struct.Struct("<IQ")
SETTINGS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET python_scan_all_frames = false",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def main(memory_mb: int, seconds: int) -> None:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": f"{memory_mb}MB"})
    for setting in SETTINGS:
        connection.execute(setting)
    _limit(memory_mb)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    _write(target, {"ready": True}, None)
    while (request := _read(source)) is not None:
        header, data = request
        used = resource.getrusage(resource.RUSAGE_SELF)
        resource.setrlimit(
            resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + seconds, resource.RLIM_INFINITY)
        )
        try:
            reply, columns = _DO[header["do"]](connection, header, data)
        except (MemoryError, duckdb.OutOfMemoryException):
            raise  # over the limit: whoever asked sees this process end
        except Exception as error:  # noqa: BLE001 -- the parent says what failed
            reply, columns = {"failed": f"{type(error).__name__}: {error}"}, None
        _write(target, reply, columns)


def _limit(memory_mb: int) -> None:
    """No more address space than is taken now and so many megabytes; no file may grow, none be dumped."""
    pages = 0
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 -- nothing more is imported here
            pages = int(statm.read().split()[0])
    except OSError:  # not Linux: from nothing
        pass
    most = pages * resource.getpagesize() + memory_mb * 1_000_000
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read(source: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    sizes = source.read(LENGTHS.size)
    if len(sizes) < LENGTHS.size:
        return None
    header, data = LENGTHS.unpack(sizes)
    return json.loads(source.read(header)), source.read(data)


def _write(target: BinaryIO, reply: dict[str, Any], columns: pa.Table | None) -> None:
    header = json.dumps(reply).encode()
    data = b""
    if columns is not None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, columns.schema) as writer:
            writer.write_table(columns)
        data = sink.getvalue()
    target.write(LENGTHS.pack(len(header), len(data)))
    target.write(header)
    target.write(data)
    target.flush()


def _parse(connection: Any, header: dict[str, Any], _: bytes) -> tuple[dict[str, Any], None]:
    """DuckDB's syntax tree of `SELECT text`, for every text."""
    texts = [f"SELECT {text}" for text in header["texts"]]
    return {"trees": [_first(connection, "SELECT json_serialize_sql(?)", text) for text in texts]}, None


def _render(connection: Any, header: dict[str, Any], _: bytes) -> tuple[dict[str, Any], None]:
    """The SQL of syntax trees."""
    return {"sql": [_first(connection, "SELECT json_deserialize_sql(?)", tree) for tree in header["trees"]]}, None


def _first(connection: Any, query: str, value: str) -> str:
    [[result]] = connection.execute(query, [value]).fetchall()  # to its end, before which nothing else can be asked
    return str(result)


# The SQL of an expression below was written by DuckDB from a tree that was held to a list; nothing else is put into it.


def _bind(connection: Any, header: dict[str, Any], _: bytes) -> tuple[dict[str, Any], None]:
    """The type that each expression gives over columns of declared types, or why it has none."""
    columns = ", ".join(f"NULL::{kind} AS {name}" for name, kind in header["columns"]) or "NULL AS nothing"
    results = []
    for sql in header["expressions"]:
        try:
            described = connection.execute(
                f"DESCRIBE SELECT ({sql}) AS value FROM (SELECT {columns}) LIMIT 0"
            ).fetchall()
            results.append({"type": described[0][1]})
        except duckdb.Error as error:
            results.append({"error": str(error)})
    return {"results": results}, None


def _evaluate(connection: Any, header: dict[str, Any], data: bytes) -> tuple[dict[str, Any], pa.Table]:
    """Every expression over the rows of a batch; where one raises, again row by row, with the rows that raised marked."""
    batch = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    connection.register("batch", batch)
    try:
        columns = ", ".join(f"{name}::{kind} AS {name}" for name, kind in header["columns"])
        source = f"(SELECT {columns} FROM batch)"
        wanted = header["expressions"]
        try:
            parts = ", ".join(f"({sql})::{kind} AS e{place}" for place, (sql, kind) in enumerate(wanted))
            return {"raised": {}}, connection.execute(f"SELECT {parts} FROM {source}").to_arrow_table()
        except duckdb.Error:
            pass
        results, raised = {}, {}
        for place, (sql, kind) in enumerate(wanted):
            try:
                values = connection.sql(f"SELECT ({sql})::{kind} AS value FROM {source}").to_arrow_table()
                results[f"e{place}"] = values.column(0)
            except (duckdb.OutOfMemoryException, duckdb.InterruptException):
                raise
            except duckdb.Error as error:
                raised[str(place)] = str(error)
                tried = f"SELECT TRY(struct_pack(value := ({sql})::{kind})) AS tried FROM {source}"
                values = connection.sql(
                    f"SELECT tried IS NULL AS raised, tried.value AS value FROM ({tried})"
                ).to_arrow_table()
                results[f"e{place}"], results[f"r{place}"] = values.column(1), values.column(0)
        return {"raised": raised}, pa.table(results)
    finally:
        connection.unregister("batch")


# Schemas: jsonschema-rs decides one keyword at one place; what is absent or of another kind is told apart here.

ABSENT, OTHER, PASSED, FAILED, BROKEN = range(5)
KINDS = {"": object, "number": (int, float), "text": str, "list": list, "object": dict}
SHOWN = 80
_validators: dict[str, Any] = {}


def _validator(schema: dict[str, Any]) -> Any:
    """A compiled schema, whose patterns run in linear time."""
    import jsonschema_rs  # only where a rule file has a schema

    text = json.dumps(schema)
    if text not in _validators:
        options = jsonschema_rs.RegexOptions()
        _validators[text] = jsonschema_rs.Draft202012Validator(schema, pattern_options=options).is_valid
    return _validators[text]


def _build(_: Any, header: dict[str, Any], __: bytes) -> tuple[dict[str, Any], None]:
    """Why each schema cannot be used; empty where it can."""
    why = []
    for schema in header["schemas"]:
        try:
            _validator(schema)
            why.append("")
        except (ValueError, OverflowError) as error:
            why.append(str(error).partition("\n")[0] or "it is no schema")
    return {"why": why}, None


def _validate(_: Any, header: dict[str, Any], data: bytes) -> tuple[dict[str, Any], pa.Table]:
    """The state of every assertion on every answer, and why it fails."""
    texts = pa.ipc.open_stream(pa.py_buffer(data)).read_all().column(0).to_pylist()
    asked = [(KINDS[each["about"]], _validator(each["schema"]), each) for each in header["assertions"]]
    by_steps: dict[tuple[Any, ...], list[int]] = {}
    for slot, (*_, each) in enumerate(asked):
        by_steps.setdefault(tuple(each["steps"]), []).append(slot)
    states = [bytearray(len(texts)) for _ in asked]
    words: list[list[str | None]] = [[None] * len(texts) for _ in asked]
    for row, text in enumerate(texts):
        if text is None:
            continue
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = BROKEN
        for steps, slots in by_steps.items():
            places = [] if answer is BROKEN else _places(answer, steps)
            for slot in slots:
                broken = (BROKEN, "the answer is nested too deep, or holds a number that is too long")
                states[slot][row], words[slot][row] = (
                    broken if answer is BROKEN else _state(places, *asked[slot]) if places else (ABSENT, None)
                )
    columns: dict[str, Any] = {f"s{slot}": pa.array(memoryview(each), pa.uint8()) for slot, each in enumerate(states)}
    columns |= {f"w{slot}": pa.array(each, pa.string()) for slot, each in enumerate(words)}
    return {}, pa.table(columns)


def _places(answer: Any, steps: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Every place that steps lead to, with its value: a key, the number of an item, or None for every item."""
    places = [("$", answer)]
    for step in steps:
        further = []
        for place, value in places:
            if isinstance(step, str) and isinstance(value, dict) and step in value:
                further.append((f"{place}.{step}", value[step]))
            elif isinstance(step, int) and isinstance(value, list) and step < len(value):
                further.append((f"{place}[{step}]", value[step]))
            elif step is None and isinstance(value, list):
                further += [(f"{place}[{index}]", item) for index, item in enumerate(value)]
        places = further
    return places


def _state(places: list[tuple[str, Any]], kind: Any, is_valid: Any, asked: dict[str, Any]) -> tuple[int, str | None]:
    """What an assertion says of all its places, and of the first that fails, how it is."""
    state, failing = OTHER, []
    for place, value in places:
        if kind is not object and (not isinstance(value, kind) or isinstance(value, bool)):
            continue
        state = PASSED
        try:
            if not is_valid(value):
                failing.append((place, value))
        except (ValueError, OverflowError, RecursionError) as error:
            return BROKEN, f"{place} cannot be validated: {type(error).__name__}"
    if not failing:
        return state, None
    place, value = failing[0]
    more = f" (and {len(failing) - 1} places more)" if len(failing) > 1 else ""
    return FAILED, f"{place} {_how(value, asked)}{more}"


def _how(value: Any, asked: dict[str, Any]) -> str:
    keyword = asked["keyword"]
    if keyword == "required":
        return f"lacks {', '.join(name for name in asked['names'] if name not in value)}"
    if keyword in {"minLength", "maxLength"}:
        return f"has {len(value)} characters"
    if keyword in {"minItems", "maxItems"}:
        return f"has {len(value)} items"
    text = ", ".join(value) if isinstance(value, dict) else json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
    return f"has the keys {text or '(none)'}" if isinstance(value, dict) else f"is {text}"


_DO = {"build": _build, "validate": _validate, "parse": _parse, "render": _render, "bind": _bind, "evaluate": _evaluate}

if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
