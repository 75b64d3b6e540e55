"""SQL over a run: DuckDB on its Parquet files, with views that join evidence to samples."""

from __future__ import annotations

from typing import Any

from adjudge.errors import ConfigError
from adjudge.runs.run import Run


def query(run: Run, sql: str, *, threads: int = 2) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of one SELECT over the views `samples`, `evidence`, `outputs`, `rules` and `estimates`.

    One thread takes less memory.
    """
    import duckdb

    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute("set enable_progress_bar = false")  # it goes to stdout, which is metrics.json's under --json
        for name, body in _views(run).items():
            connection.execute(f"create view {name} as {body}")
        folder = _quoted(str(run.path.resolve()) + "/")
        connection.execute(f"set allowed_directories = [{folder}]")
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
        try:
            result = connection.execute(sql)
            names = [column[0] for column in result.description or ()]
            return names, result.fetchall()
        except duckdb.Error as error:
            raise ConfigError(f"the query failed: {error}") from None


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
        "rules": f"select unnest(rules, max_depth := 2) from read_json({_quoted(f'{folder}/rules.json')})",  # noqa: S608
        "estimates": f"select unnest(estimates, max_depth := 2) from read_json({_quoted(f'{folder}/metrics.json')})",  # noqa: S608
    }


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
