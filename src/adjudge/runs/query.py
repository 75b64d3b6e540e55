"""SQL over a run: DuckDB on its Parquet files, with views that join evidence to samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from adjudge.errors import ConfigError
from adjudge.runs.frame import rows_as_table
from adjudge.runs.run import Run

_Answer = TypeVar("_Answer")
_TEXTS = pa.list_(pa.string())
_BOUNDS = ("low", "high", "critical_low", "critical_high", "span")
_SLOT = [
    ("field", pa.string()),
    ("step", pa.int64()),
    ("unit", pa.string()),
    ("when", pa.string()),
    *((name, pa.float64()) for name in _BOUNDS),
]
_CASE = [
    *((name, pa.string()) for name in ("when", "passed", "failed", "unit")),
    *((name, pa.float64()) for name in _BOUNDS),
]
_RULES = pa.schema(
    [
        *((name, pa.string()) for name in ("code", "family", "title", "scope")),
        ("needs", _TEXTS),
        ("variants", pa.list_(pa.struct([(name, pa.string()) for name in ("code", "title", "failed")]))),
        *((name, pa.string()) for name in ("passed", "failed")),
        ("applies", _TEXTS),
        ("cases", pa.list_(pa.struct(_CASE))),
        ("slots", pa.list_(pa.struct(_SLOT))),
    ]
)


def query(run: Run, sql: str, *, threads: int = 2) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of one SELECT over the views of a run; `as_table` says which there are."""
    return _asked(run, sql, threads, lambda connection, select: _rows(connection.execute(select)))


def as_table(run: Run, sql: str, *, threads: int = 2) -> pa.Table:
    """What one SELECT gives, as a table, over the views `samples`, `evidence`, `outputs`, `rules` and `estimates`.

    Nothing else is run, and no file is reached but the run's tables. Names differ in more than case in SQL: of two
    columns that do not, the second has `_1` behind it. One thread takes less memory.
    """
    return _asked(run, sql, threads, lambda connection, select: connection.sql(select.query).to_arrow_table())


def _asked(run: Run, sql: str, threads: int, fetch: Callable[[Any, Any], _Answer]) -> _Answer:
    import duckdb

    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute("set enable_progress_bar = false")  # it goes to stdout, which is metrics.json's under --json
        connection.register("estimates", run.estimates.to_arrow())
        connection.register("rules", rows_as_table("rules", list(run.layout.rules), _RULES))
        try:
            for name, body in _views(run).items():
                connection.execute(f"create view {name} as {body}")
            connection.execute(f"set allowed_paths = [{', '.join(map(_quoted, _tables(run)))}]")
            connection.execute("set enable_external_access = false")
            connection.execute("set python_enable_replacements = false")  # no name means a variable of this program
            connection.execute("set lock_configuration = true")
            statements = connection.extract_statements(sql)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise ConfigError("the query failed: it is not one SELECT, and nothing else is run")
            return fetch(connection, statements[0])
        except duckdb.Error as error:
            raise ConfigError(f"the query failed: {error}") from None


def _rows(result: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
    return [column[0] for column in result.description or ()], result.fetchall()


def _tables(run: Run) -> list[str]:
    folder = run.path.resolve()
    return [
        str(path)
        for name in ("samples", "evidence/part-*", "outputs/part-*")
        for path in folder.glob(f"{name}.parquet")
    ]


def _views(run: Run) -> dict[str, str]:
    folder = run.path.resolve()
    samples = f"read_parquet({_quoted(f'{folder}/samples.parquet')})"

    def parts(name: str) -> str:
        files = ", ".join(_quoted(str(path)) for path in sorted((folder / name).glob("part-*.parquet")))
        part = "cast(regexp_extract(filename, 'part-([0-9]+)', 1) as usmallint)"
        return f"select * exclude filename, {part} as part from read_parquet([{files}], filename = true)"  # noqa: S608

    return {
        "samples": f"select * from {samples}",  # noqa: S608 -- our own paths, quoted, here and above and below
        "atoms": parts("evidence"),
        "outputs": parts("outputs"),
        # Every atom has one sample. Grouped by its place a sample is known to be unique, so a query that asks for neither
        # sample nor model needs no join, and DuckDB leaves it out.
        "evidence": (
            "select s.sample, s.model, e.rule, e.field, e.step, e.outcome, e.severity, e.observed, e.why, "  # noqa: S608
            f"e.part, e.sample as row from ({parts('evidence')}) e left join (select part, row, any_value(sample) as sample, "
            f"any_value(model) as model from {samples} group by part, row) s on s.part = e.part and s.row = e.sample"
        ),
    }


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
