"""SQL over runs whose names differ only in case, and over what somebody else wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import adjudge
from adjudge.protocols.flight.generate import generate
from adjudge.runs.query import query


@pytest.fixture
def two_models(tmp_path: Path) -> adjudge.Run:
    """A flight run of the models `Login` and `login`."""
    data = generate(tmp_path / "data", seed=1, task="S1", flights=2, seconds=5)
    outputs = []
    for name, path in zip(("Login", "login"), data.outputs.values(), strict=False):
        rows = [json.loads(line) | {"model": name} for line in path.read_text(encoding="utf-8").splitlines()]
        outputs.append(tmp_path / f"{len(outputs)}.jsonl")
        outputs[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = {"task": "S1", "outputs": list(map(str, outputs)), "reference": [str(data.reference)]}
    return adjudge.evaluate("flight", config, out=tmp_path / "run", report=False)


def test_models_that_differ_only_in_case(two_models: adjudge.Run) -> None:
    assert query(two_models, "select distinct model from samples order by 1")[1] == [("Login",), ("login",)]
    counted = query(two_models, "select model, count(*) from evidence group by 1 order by 1")[1]
    assert [model for model, _ in counted] == ["Login", "login"]
    names, rows = query(two_models, "select * from estimates")
    expected = two_models.metrics["estimates"]
    assert [dict(zip(names, row, strict=True)) for row in rows] == expected
    assert {row[names.index("slice")] for row in rows} >= {"model=Login", "model=login"}


def test_columns_that_differ_only_in_case(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "id": f"s{number}",
            "model": "m",
            "label": "real",
            "prediction": "real",
            "confidence": 0.8,
            "meta": {"Login": "upper", "login": f"lower {number}"},
        }
        for number in range(4)
    ]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = {"results": [[str(path)]], "slices": ["meta.Login", "meta.login"], "resamples": 200}
    run = adjudge.evaluate("triage", config, out=tmp_path / "run", report=False)
    adjudge.verify(run)
    assert {"meta.Login", "meta.login"} <= set(run.column_names)
    found = query(run, 'select "meta.Login", "meta.login_1" from samples order by all')[1]
    assert found == [("upper", f"lower {number}") for number in range(4)]


def test_rules_are_those_of_the_run(two_models: adjudge.Run) -> None:
    names, rows = query(two_models, "select * from rules")
    found = [dict(zip(names, row, strict=True)) for row in rows]
    for rule, expected in zip(found, two_models.layout.rules, strict=True):
        assert _without_null(rule) == _without_null(expected)


def _without_null(value):
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return [_without_null(item) for item in value] if isinstance(value, list) else value


def test_estimates_of_another_shape_are_an_error(two_models: adjudge.Run) -> None:
    two_models.metrics["estimates"][0]["value"] = "much"
    with pytest.raises(adjudge.RunError, match="the estimates of the run are not what adjudge writes"):
        query(two_models, "select 1")


def test_tables_that_are_not_readable_are_an_error(two_models: adjudge.Run) -> None:
    (two_models.path / "samples.parquet").write_bytes(b"no table")
    with pytest.raises(adjudge.ConfigError, match="the query failed"):
        query(two_models, "select 1")


@pytest.mark.parametrize(
    "sql",
    [
        "copy samples to '{run}/more.parquet'",
        "copy (select 1) to '{run}/samples.parquet'",
        "attach '{run}/more.db' as more",
        "attach ':memory:' as more",
        "export database '{run}/exported'",
        "import database '{run}'",
        "install httpfs",
        "load httpfs",
        "pragma version",
        "pragma database_list",
        "call pragma_version()",
        "set threads = 1",
        "reset threads",
        "create table more as select 1",
        "create view more as select 1",
        "drop view samples",
        "insert into samples values (1)",
        "explain analyze select 1",
        "prepare p as select 1",
        "select 1; select 2",
        "select 1; copy samples to '{run}/more.parquet'",
        "",
        ";",
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from read_text('/etc/passwd')",
        "select * from read_text('{run}/../secret.txt')",
        "select * from read_text('{run}/manifest.json')",
        "select * from glob('/etc/*')",
        "select * from query('copy samples to ''{run}/more.parquet''')",
        "select * from read_parquet('https://example.invalid/x.parquet')",
        "select * from numbers_of_this_program",
    ],
)
def test_nothing_is_run_but_one_select_and_nothing_reached_but_the_tables(one: adjudge.Run, sql: str) -> None:
    import pyarrow as pa

    numbers_of_this_program = pa.table({"secret": [1]})  # noqa: F841 -- DuckDB would find it by its name
    (one.path.parent / "secret.txt").write_text("secret")
    before = _bytes(one.path.parent)
    with pytest.raises(adjudge.ConfigError, match="the query failed"):
        query(one, sql.format(run=one.path))
    assert _bytes(one.path.parent) == before


@pytest.mark.parametrize(
    "sql", ["from samples", "with s as (from samples) select * from s", "describe samples", "select 1;", "show tables"]
)
def test_whatever_only_reads_is_a_select(one: adjudge.Run, sql: str) -> None:
    assert query(one, sql)[1]


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> adjudge.Run:
    folder = tmp_path_factory.mktemp("one")
    data = generate(folder / "data", seed=1, task="S1", flights=2, seconds=5)
    outputs = [str(path) for path in data.outputs.values()]
    config = {"task": "S1", "outputs": outputs, "reference": [str(data.reference)]}
    return adjudge.evaluate("flight", config, report=False, out=folder / "run", limit=3)


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
