"""One sample among many is found without a scan, and counting atoms needs no join."""

from __future__ import annotations

import duckdb
import pytest

import adjudge
from adjudge.engine import split
from adjudge.protocols.base import protocol
from adjudge.runs import run as module
from adjudge.runs.query import _views as views
from adjudge.runs.query import query


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A run of many partitions, of any protocol."""

    def make(name, rows):
        monkeypatch.setattr(split, "ROWS_A_PARTITION", rows)
        return adjudge.evaluate(name, protocol(name).example(tmp_path / "data", 0), out=tmp_path / "run", report=False)

    return make


class Counting:
    """A Parquet file that notes which row groups were read."""

    def __init__(self, file, log):
        self._file, self._log = file, log

    def read_row_group(self, index, **options):
        self._log.append(index)
        return self._file.read_row_group(index, **options)

    def __getattr__(self, name):
        return getattr(self._file, name)


def test_a_sample_is_found_in_the_partition_that_its_hash_names(made, monkeypatch):
    run = made("flight", 64)
    groups = len(list(run.parts()))
    assert groups >= 8
    log: list[int] = []
    real = module.open_parquet
    monkeypatch.setattr(module, "open_parquet", lambda path: Counting(real(path), log))
    monkeypatch.setattr(module.pq, "read_table", None)  # a scan
    table = run.columns(["sample", "model", "part"]).to_pylist()
    for row in table[:: len(table) // 7]:
        log.clear()
        found = run.find(row["sample"])
        assert [one["model"] for one in found] == [one["model"] for one in table if one["sample"] == row["sample"]]
        assert {one["part"] for one in found} == {row["part"]}
        assert len(set(log)) == 1


@pytest.mark.parametrize("name", ["consistency", "gui", "triage"])
def test_every_sample_is_found_whatever_the_run_is_cut_by(name, made):
    run = made(name, 16)
    assert len(list(run.parts())) > 1
    table = run.columns(["sample", "model"]).to_pylist()
    for row in table[:: max(1, len(table) // 20)]:
        expected = [one["model"] for one in table if one["sample"] == row["sample"]]
        assert [one["model"] for one in run.find(row["sample"])] == expected
    with pytest.raises(adjudge.RunError, match="has no sample 'nothing'"):
        run.find("nothing")


def test_counting_atoms_by_rule_needs_no_join(made):
    run = made("flight", 512)
    sql = "select rule, severity, count(*) from evidence group by all order by all"
    with duckdb.connect() as connection:  # `query` itself runs nothing but a SELECT
        for name, body in views(run).items():
            connection.execute(f"create view {name} as {body}")
        plans = [
            str(connection.execute(f"explain {text}").fetchall()).lower()
            for text in (sql, "select model, count(*) from evidence group by all")
        ]
    assert ["join" in plan for plan in plans] == [False, True]
    assert query(run, sql) == query(run, sql.replace("evidence", "atoms"))


def test_every_atom_has_its_sample_and_model(made):
    run = made("flight", 512)
    width = run.layout.width
    found = query(run, "select sample, model, count(*) from evidence group by all order by all")[1]
    table = run.columns(["sample", "model"]).to_pylist()
    assert found == sorted((row["sample"], row["model"], width) for row in table)
