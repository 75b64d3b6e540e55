"""A run whose tables were written again by another tool is read all the same."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.engine import split
from adjudge.protocols.base import protocol


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> adjudge.Run:
    monkeypatch.setattr(split, "ROWS_A_PARTITION", 64)
    example = protocol("consistency").example(tmp_path / "data", 0)
    return adjudge.evaluate("consistency", example, out=tmp_path / "run", report=False)


@pytest.mark.parametrize("bounds", [True, False])
def test_one_sample_is_found_with_bounds_and_without(run: adjudge.Run, tmp_path: Path, bounds: bool) -> None:
    """Also where a batch without rows, which has no bounds, stands before it."""
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    for path in copy.glob("**/*.parquet"):
        file = pq.ParquetFile(path)
        tables = [file.read_row_group(index) for index in range(file.num_row_groups)]
        with pq.ParquetWriter(path, file.schema_arrow, write_statistics=bounds) as writer:
            writer.write_table(tables[0].slice(0, 0))
            for table in tables:
                writer.write_table(table)
    again = adjudge.load_run(copy)
    for row in run.samples.to_pylist()[::40]:
        assert again.find(row["sample"], row["model"]) == [row]
        assert again.atoms(row) == run.atoms(row)


@pytest.mark.parametrize("name", ["samples.parquet", "rules.json", "more", "evidence/part-00000.parquet"])
def test_a_run_that_holds_a_pipe_or_a_device_is_refused_and_never_waited_for(run: adjudge.Run, name: str) -> None:
    (run.path / name).unlink(missing_ok=True)
    os.mkfifo(run.path / name)
    with pytest.raises(adjudge.RunError, match=f"{name} is a pipe or a device, expected a file"):
        adjudge.load_run(run.path)
    (run.path / name).unlink()
    (run.path / name).symlink_to("/dev/zero")
    with pytest.raises(adjudge.RunError, match=f"{name} is a pipe or a device, expected a file"):
        adjudge.load_run(run.path)
