"""SQL over a run: DuckDB on its Parquet files, with views that join evidence to samples; and rows picked by their key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import ConfigError, RunError
from adjudge.evidence.table import Evidence
from adjudge.runs.run import Run, open_parquet, rows_as_table
from adjudge.runs.writer import SAMPLES

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


Rows = Mapping[int, NDArray[np.integer[Any]]]
_ATOMS = ["rule", "outcome", "severity", "observed", "why"]  # the layout knows the rest


class Picked(NamedTuple):
    """Rows of one batch: its partition, samples.parquet, the raw outputs where the run keeps them, and the evidence."""

    part: int
    samples: pa.Table
    outputs: pa.Table | None
    evidence: Evidence


def hold(run: Run, places: Iterable[tuple[int, int]], batches: Iterable[Picked] | None = None) -> None:
    """Keep some rows, by partition and number, with the run, so that asking for one reads no file.

    They are taken from `batches` where those are at hand.
    """
    asked = set(places) - run.held.keys()
    if batches is None:
        parts = {part for part, _ in asked}
        batches = picked(run, {part: np.array(sorted(row for of, row in asked if of == part)) for part in parts})
    for batch in batches:
        numbers = zip(batch.samples.column("part").to_pylist(), batch.samples.column("row").to_pylist(), strict=True)
        for index, place in enumerate(numbers):
            if place in asked:
                output = None if batch.outputs is None else batch.outputs.slice(index, 1).to_pylist()[0]
                run.held[place] = batch.samples.slice(index, 1).to_pylist()[0], batch.evidence.only(index), output


def picked(run: Run, rows: Rows | None) -> Iterator[Picked]:
    """The rows with these numbers by partition (None: all), in the order of the run; batches without any are not read."""
    samples = open_parquet(run.path / SAMPLES)
    group = 0
    for part, path in run.parts():
        evidence = open_parquet(path)
        outputs = open_parquet(run.path / "outputs" / path.name)
        first = 0
        for index in range(evidence.num_row_groups):
            if group >= samples.num_row_groups:
                raise RunError(f"{run.path / SAMPLES} has fewer batches than the evidence")
            n = samples.metadata.row_group(group).num_rows
            inside = _inside(rows, part, first, n)
            if inside.size:
                texts = outputs.read_row_group(index) if index < outputs.num_row_groups else None
                yield Picked(
                    part,
                    _rows_at(samples.read_row_group(group), inside),
                    None if texts is None else _rows_at(texts, inside),
                    Evidence.picked(evidence.read_row_group(index, columns=_ATOMS), run.layout, inside),
                )
            first, group = first + n, group + 1


def _inside(rows: Rows | None, part: int, first: int, n: int) -> NDArray[np.integer[Any]]:
    """Places within a batch of the rows asked for."""
    if rows is None:
        return np.arange(n)
    asked = rows.get(part, np.empty(0, dtype=np.int64))
    return asked[(asked >= first) & (asked < first + n)] - first


def _rows_at(table: pa.Table, places: NDArray[np.integer[Any]]) -> pa.Table:
    return table if places.size == table.num_rows else table.take(pa.array(places))
