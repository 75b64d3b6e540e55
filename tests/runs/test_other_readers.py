"""The tables of every protocol's run have the same content in PyArrow, DuckDB, Polars and hyparquet (JavaScript)."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.protocols.base import protocol

PROTOCOLS = ("anomaly", "consistency", "flight", "gui", "stability", "triage")
JS = Path(__file__).parent.parent / "js"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory):
    """samples.parquet and the first evidence and outputs of a protocol's run."""
    runs: dict[str, list[Path]] = {}

    def of(name: str) -> list[Path]:
        if name not in runs:
            folder = tmp_path_factory.mktemp(name)
            run = adjudge.evaluate(name, protocol(name).example(folder / "data", 0), out=folder / "run", report=False)
            first = "part-00000.parquet"
            runs[name] = [run.path / "samples.parquet", run.path / "evidence" / first, run.path / "outputs" / first]
        return runs[name]

    return of


@pytest.fixture(scope="module")
def hyparquet():
    """Reads files with hyparquet; its packages are installed once, beside their lock file."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    lock, installed = JS / "package-lock.json", JS / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        done = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            cwd=JS,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"npm cannot install hyparquet: {done.stderr.strip()[-300:]}")

    def read(paths: list[Path]) -> list[list[dict[str, Any]]]:
        done = subprocess.run(
            ["node", JS / "read.mjs", *paths], capture_output=True, text=True, encoding="utf-8", check=True
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return read


def plain(value: Any) -> Any:
    """A value as every reader can say it: bytes in hexadecimal digits, NaN and the infinities by their names."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def rows_of(table: Any) -> list[dict[str, Any]]:
    return [{name: plain(value) for name, value in row.items()} for row in table]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_duckdb(tables: Any, name: str) -> None:
    for path in tables(name):
        expected = rows_of(pq.ParquetFile(path).read().to_pylist())
        with duckdb.connect() as connection:
            result = connection.execute("select * from read_parquet($1)", [str(path)])
            names = [column[0] for column in result.description]
            found = rows_of(dict(zip(names, row, strict=True)) for row in result.fetchall())
        assert expected
        assert found == expected


@pytest.mark.parametrize("name", PROTOCOLS)
def test_polars(tables: Any, name: str) -> None:
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    for path in tables(name):
        assert rows_of(polars.read_parquet(path).to_dicts()) == rows_of(pq.ParquetFile(path).read().to_pylist())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_hyparquet(tables: Any, hyparquet: Any, name: str) -> None:
    paths = tables(name)
    for path, found in zip(paths, hyparquet(paths), strict=True):
        assert found == rows_of(pq.ParquetFile(path).read().to_pylist())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_path_of_a_column_is_the_one_in_the_schema(tables: Any, name: str) -> None:
    """A reader that goes by the path finds every column."""
    for path in tables(name):
        metadata = pq.read_metadata(path)
        leaves = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
        group = metadata.row_group(0)
        assert [group.column(index).path_in_schema for index in range(group.num_columns)] == leaves


def test_the_lock_file_names_no_address() -> None:
    packages = json.loads((JS / "package-lock.json").read_text())["packages"]
    del packages[""]
    assert all("resolved" not in package and package["integrity"] for package in packages.values())
    assert "://" not in (JS / "package-lock.json").read_text()
