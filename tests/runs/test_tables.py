"""Tables of a run in Parquet: what is written is read back, and the bytes follow from the values alone."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.errors import RunError
from adjudge.provenance.canonical import file_digest
from adjudge.runs.tables import NewFile, StoredBatches, TableFile, one_batch


def written(path: Path, *batches: pa.RecordBatch | pa.Table) -> pq.ParquetFile:
    file = TableFile(path)
    for batch in batches:
        file.add(batch)
    file.close()
    return pq.ParquetFile(path)


def bytes_of(path: Path, *batches: pa.RecordBatch) -> bytes:
    written(path, *batches)
    return path.read_bytes()


WORDS = st.sampled_from(["", "a", "real", "ein längeres Wort, mit Umlaut", "検証"])
KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint8(), st.integers(0, 255)),
    (pa.uint16(), st.sampled_from([7, 65535])),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float64(), st.sampled_from([0.0, 1.5, -1e300, 5e-324, float("inf")])),
    (pa.bool_(), st.booleans()),
    (pa.string(), WORDS),
    (pa.binary(), st.binary(max_size=3)),
    (pa.dictionary(pa.int32(), pa.string()), WORDS),
    (pa.dictionary(pa.int8(), pa.string()), WORDS),
    (pa.list_(pa.float64()), st.lists(st.floats(0, 1), max_size=3)),
    (pa.list_(pa.float64(), 2), st.lists(st.floats(0, 1), min_size=2, max_size=2)),
    (pa.list_(pa.string()), st.lists(WORDS, max_size=2)),
    (pa.struct([("a", pa.int64()), ("b", pa.string())]), st.fixed_dictionaries({"a": st.integers(0, 9), "b": WORDS})),
    (pa.date32(), st.dates()),
]


@pytest.mark.parametrize("name", ["meta.it", "row"])
@pytest.mark.parametrize("kind, values", KINDS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else "")
@pytest.mark.parametrize("nullable", [False, True])
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_every_kind_of_column_comes_back(
    name: str,
    kind: pa.DataType,
    values: st.SearchStrategy[Any],
    nullable: bool,
    data: st.DataObject,
    tmp_path_factory: Any,
) -> None:
    """Any values, from arrays that begin in the middle of their buffers, in two row groups, and with an empty one."""
    path = tmp_path_factory.mktemp("table") / "table.parquet"
    some = data.draw(st.lists(values | st.none() if nullable else values, max_size=40))
    table = pa.table([pa.array([*some, *some[:3]], kind)], schema=pa.schema([pa.field(name, kind, nullable)]))
    cut = data.draw(st.integers(0, len(some)))
    batches = [one_batch(part) for part in (table.slice(cut), table.slice(0, cut), table.slice(0, 0))]
    found = written(path, *batches)
    expected = pa.concat_tables([table.slice(cut), table.slice(0, cut)])
    assert found.num_row_groups == 3
    assert [found.metadata.row_group(index).num_rows for index in range(3)] == [batch.num_rows for batch in batches]
    assert found.schema_arrow.equals(table.schema)
    assert found.read().to_pylist() == expected.to_pylist()
    rows = duckdb.sql(f"select * from read_parquet('{path}')").fetchall()  # noqa: S608 -- a path of our own
    lists = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
    assert [list(row[0]) if lists and row[0] is not None else row[0] for row in rows] == expected.column(0).to_pylist()


def test_null_is_null_nan_is_nan_and_neither_zero_is_the_other(tmp_path: Path) -> None:
    column = pa.array([None, float("nan"), -0.0, 0.0, None], pa.float64())
    found = written(tmp_path / "x.parquet", one_batch(pa.table({"x": column}))).read().column(0)
    assert found.null_count == 2
    assert np.isnan(found[1].as_py())
    assert np.signbit([found[2].as_py(), found[3].as_py()]).tolist() == [True, False]


def test_what_counts_has_bounds_and_takes_no_room_and_words_stand_once(tmp_path: Path) -> None:
    n = 50_000
    table = pa.table(
        {
            "part": pa.array(np.full(n, 3, dtype=np.uint16)),
            "row": pa.array(np.arange(70_000, 70_000 + n, dtype=np.uint32)),
            "sample": [f"id-{number}" for number in range(n)],
            "word": pa.array(["real"] * n).dictionary_encode(),
            "code": pa.array(["yes", "no"] * (n // 2)).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
            "number": pa.array(np.arange(n)),
            "measured": np.round(np.random.default_rng(3).normal(size=n), 2),
        }
    )
    group = written(tmp_path / "x.parquet", one_batch(table)).metadata.row_group(0)
    columns = {group.column(index).path_in_schema: group.column(index) for index in range(group.num_columns)}
    assert {name for name, column in columns.items() if column.compression != "ZSTD"} == {"code"}
    bounds = {name: column.statistics for name, column in columns.items() if column.statistics is not None}
    assert {name: (own.min, own.max) for name, own in bounds.items()} == {"part": (3, 3), "row": (70_000, 119_999)}
    encodings = {name: set(column.encodings) - {"RLE"} for name, column in columns.items()}
    assert encodings["part"] == encodings["row"] == {"DELTA_BINARY_PACKED"}
    assert encodings["word"] == encodings["code"] == {"PLAIN", "RLE_DICTIONARY"}
    assert encodings["sample"] == encodings["number"] == {"PLAIN"}
    assert encodings["measured"] == {"BYTE_STREAM_SPLIT"}
    assert columns["measured"].total_compressed_size < 0.8 * n * 8
    assert sum(columns[name].total_compressed_size for name in ("part", "row", "word")) < 2500


def test_a_batch_of_more_than_a_million_rows_is_one_row_group(tmp_path: Path) -> None:
    table = pa.table({"row": pa.array(np.arange(1_200_000, dtype=np.uint32))})
    found = written(tmp_path / "x.parquet", table, table)
    assert [found.metadata.row_group(index).num_rows for index in range(found.num_row_groups)] == [1_200_000] * 2


@given(st.lists(st.none() | WORDS, max_size=30), st.permutations(["", "a", "b", "real", "検証", "never used"]))
@settings(max_examples=100, deadline=None)
def test_words_are_written_alike_however_they_were_numbered(
    tmp_path_factory: pytest.TempPathFactory, words: list[str | None], order: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("words")
    known = [*order, "ein längeres Wort, mit Umlaut"]
    codes = pa.array([None if word is None else known.index(word) for word in words], pa.int32())
    numbered = pa.DictionaryArray.from_arrays(codes, pa.array(known))
    plain = pa.array(words, pa.string()).dictionary_encode()
    batches = [one_batch(pa.table({"word": column})) for column in (numbered, plain)]
    assert batches[0].to_pylist() == [{"word": word} for word in words]
    assert bytes_of(folder / "a", batches[0]) == bytes_of(folder / "b", batches[1])


@given(st.lists(st.lists(st.none() | WORDS, max_size=9), min_size=1, max_size=4), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_batches_of_another_process_give_the_same_file(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[str | None]], seed: int
) -> None:
    """Every batch with words of its own, in pieces, from the middle of its buffers; some batches empty."""
    folder = tmp_path_factory.mktemp("stored")
    random = np.random.default_rng(seed)
    batches = []
    for words in groups:
        whole = pa.table(
            {
                "word": pa.array(["before", *words], pa.string()).dictionary_encode(),
                "x": pa.array(random.random(len(words) + 1), mask=random.random(len(words) + 1) < 0.3),
                "cells": pa.array([[1.0, float("nan")]] * (len(words) + 1), pa.list_(pa.float64(), 2)),
            }
        ).slice(1)
        half = len(words) // 2
        batches.append(one_batch(pa.concat_tables([whole.slice(0, half), whole.slice(half)])))
    elsewhere = StoredBatches.of(batches, folder / "held")
    again = list(elsewhere)
    assert [batch.num_rows for batch in again] == [batch.num_rows for batch in batches]
    assert bytes_of(folder / "a", *batches) == bytes_of(folder / "b", *elsewhere)


def test_batches_with_other_columns_are_refused(tmp_path: Path) -> None:
    one, other = pa.record_batch({"x": [1]}), pa.record_batch({"y": [1]})
    file = TableFile(tmp_path / "samples.parquet")
    file.add(one)
    with pytest.raises(RunError, match=r"two batches of samples\.parquet differ in their columns"):
        file.add(other)
    file.abandon()
    with pytest.raises(RunError, match="differ in their columns"):
        StoredBatches.of([one, other], tmp_path / "held")


def test_no_batch_leaves_no_file_unless_the_columns_are_known(tmp_path: Path) -> None:
    file = TableFile(tmp_path / "x.parquet")
    assert file.close() is None
    file.abandon()
    assert not list(tmp_path.iterdir())
    TableFile(tmp_path / "y.parquet", pa.schema([("x", pa.int64())])).close()
    assert pq.ParquetFile(tmp_path / "y.parquet").num_row_groups == 0


def test_size_and_digest_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"what stood here before" * 10_000)
    file = TableFile(path)
    file.add(pa.record_batch({"x": np.random.default_rng(0).random(100_000)}))
    new = file.close()
    assert new is not None
    listed = new.listed("evidence/x")
    assert (listed.path, listed.bytes, listed.sha256) == ("evidence/x", path.stat().st_size, file_digest(path))
    assert pq.read_table(path).num_rows == 100_000


@pytest.mark.parametrize("closing", [False, True])
def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closing: bool) -> None:
    file = TableFile(tmp_path / "x.parquet")
    file.add(pa.record_batch({"x": [1]}))

    def full(self: NewFile, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(NewFile, "write", full)
    with pytest.raises(OSError, match="No space left") as raised:
        file.close() if closing else file.add(pa.record_batch({"x": [2]}))
    assert raised.value.errno == errno.ENOSPC
    file.abandon()
