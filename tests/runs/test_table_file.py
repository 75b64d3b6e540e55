"""Tables in Parquet, from Arrow's buffers to pages: what Arrow and DuckDB read back is what was there."""

from __future__ import annotations

import tempfile
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
from adjudge.runs.parquet import Span
from adjudge.runs.table_file import Batch, TableFile, stored
from adjudge.runs.thrift import Long, binary, fields_of, integer, long, sequence, struct


def written(path: Path, *tables: pa.Table, bounded: tuple[str, ...] = ()) -> pq.ParquetFile:
    file = TableFile(path)
    for table in tables:
        file.add(Batch.of(table, bounded))
    file.close()
    return pq.ParquetFile(path)


WORDS = st.sampled_from(["", "a", "real", "ein längeres Wort, mit Umlaut"])
KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint8(), st.integers(0, 255)),
    (pa.uint16(), st.sampled_from([7, 65535])),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float64(), st.sampled_from([0.0, 1.5, -1e300, 5e-324, float("inf")])),
    (pa.float32(), st.sampled_from([0.0, 1.5])),
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


@pytest.mark.parametrize("kind, values", KINDS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else "")
@pytest.mark.parametrize("nullable", [False, True])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_every_kind_of_column_comes_back(
    kind: pa.DataType, values: st.SearchStrategy[Any], nullable: bool, data: st.DataObject, tmp_path_factory: Any
) -> None:
    """Any values, from arrays that begin in the middle of their buffers, in two row groups, and with an empty one."""
    path = tmp_path_factory.mktemp("table") / "table.parquet"
    some = data.draw(st.lists(values | st.none() if nullable else values, max_size=40))
    table = pa.table([pa.array([*some, *some[:3]], kind)], schema=pa.schema([pa.field("meta.it", kind, nullable)]))
    cut = data.draw(st.integers(0, len(some)))
    found = written(path, table.slice(cut), table.slice(0, cut), table.slice(0, 0))
    expected = pa.concat_tables([table.slice(cut), table.slice(0, cut)])
    assert found.schema_arrow.equals(table.schema)
    assert found.read().to_pylist() == expected.to_pylist()
    if not pa.types.is_struct(kind):
        rows = duckdb.sql(f"select * from read_parquet('{path}')").fetchall()  # noqa: S608 -- a path of our own
        lists = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
        assert [list(row[0]) if lists and row[0] is not None else row[0] for row in rows] == expected.column(
            0
        ).to_pylist()


def test_numbers_that_are_not_there_and_those_that_are_none(tmp_path: Path) -> None:
    """Null is null and NaN is NaN, and neither zero is the other."""
    column = pa.array([None, float("nan"), -0.0, 0.0, None], pa.float64())
    found = written(tmp_path / "x.parquet", pa.table({"x": column})).read().column(0)
    assert found.null_count == 2
    assert np.isnan(found[1].as_py())
    assert np.signbit([found[2].as_py(), found[3].as_py()]).tolist() == [True, False]


@pytest.mark.parametrize("column", [pa.array([0.0, -0.0]), pa.array([-0.0, -0.0]), pa.array([float("nan")] * 9)])
def test_what_looks_constant(column: pa.Array, tmp_path: Path) -> None:
    found = written(tmp_path / "x.parquet", pa.table({"x": column})).read().column(0).to_numpy()
    assert found.tobytes() == column.to_numpy().tobytes()


def test_constants_counts_and_texts_of_one_length_take_little_room(tmp_path: Path) -> None:
    n = 50_000
    table = pa.table(
        {
            "part": pa.array(np.full(n, 3, dtype=np.uint16)),
            "row": pa.array(np.arange(70_000, 70_000 + n, dtype=np.uint32)),
            "temperature": pa.array(np.zeros(n)),
            "word": pa.array(["real"] * n).dictionary_encode(),
            "nothing": pa.array([None] * n, pa.string()),
            "flag": pa.array([True] * n),
        }
    )
    found = written(tmp_path / "x.parquet", table, bounded=("part", "row"))
    assert found.read().equals(table)
    group = found.metadata.row_group(0)
    assert sum(group.column(index).total_compressed_size for index in range(6)) < 2500
    bounds = [group.column(index).statistics for index in range(6)]
    assert [(b.min, b.max) if b is not None and b.has_min_max else None for b in bounds] == [
        (3, 3),
        (70_000, 119_999),
        *[None] * 4,
    ]


def test_numbers_near_the_end_of_32_bits(tmp_path: Path) -> None:
    for first in (2**30 - 2, 2**31 - 3, 2**32 - 5):
        table = pa.table({"x": pa.array(np.arange(first, first + 4), pa.uint32())})
        assert written(tmp_path / "x.parquet", table, bounded=("x",)).read().equals(table)


def test_long_texts_are_cut_into_pages(tmp_path: Path) -> None:
    texts = [None if index % 9 == 4 else chr(97 + index % 26) * 100_000 for index in range(60)]
    table = pa.table({"response": [*texts, "x" * 3_000_000, ""], "other": np.arange(62)})
    found = written(tmp_path / "x.parquet", table)
    assert found.read().equals(table)
    assert found.metadata.row_group(0).column(0).total_compressed_size < 1_000_000


@given(st.lists(st.none() | st.text(max_size=9), max_size=60), st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_texts_in_pages_of_any_size(texts: list[str | None], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr("adjudge.runs.columns._PAGE", size)
        table = pa.table({"it": pa.array(["before", *texts], pa.string()).slice(1)})
        path = Path(folder) / "x.parquet"
        assert written(path, table).read().equals(table)
        rows = duckdb.sql(f"select * from read_parquet('{path}')").fetchall()  # noqa: S608 -- a path of our own
        assert [row[0] for row in rows] == texts


def test_batches_stored_by_another_process_give_the_same_file(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    tables = [pa.table({"x": random.random(n), "id": [f"id-{k}" for k in range(n)]}) for n in (1000, 1, 3000)]
    batches = [Batch.of(table) for table in tables]
    elsewhere = stored(batches, tmp_path / "held")
    assert all(isinstance(piece, Span) for batch in elsewhere for piece in batch.group.pieces)
    again = stored(elsewhere, tmp_path / "held again")
    for name, some in (("a", batches), ("b", elsewhere), ("c", again)):
        file = TableFile(tmp_path / name)
        for batch in some:
            file.add(batch)
        file.close()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    assert pq.read_table(tmp_path / "b").equals(pa.concat_tables(tables).combine_chunks())


def test_batches_with_other_columns_are_refused(tmp_path: Path) -> None:
    file = TableFile(tmp_path / "samples.parquet")
    file.add(Batch.of(pa.table({"x": [1]})))
    with pytest.raises(RunError, match=r"two batches of samples\.parquet differ in their columns"):
        file.add(Batch.of(pa.table({"y": [1]})))
    file.abandon()


def test_no_batch_leaves_no_file(tmp_path: Path) -> None:
    file = TableFile(tmp_path / "x.parquet")
    file.close()
    file.abandon()
    assert not list(tmp_path.iterdir())


def test_a_structure_of_thrift_is_taken_apart() -> None:
    inner = struct([(1, integer(-7)), (2, True), (3, binary(b"x" * 200))])
    data = struct([(1, long(1 << 40)), (4, False), (5, sequence([inner] * 20)), (6, inner), (7, binary(b"end"))])
    found = fields_of(data)
    assert found == {1: long(1 << 40), 5: sequence([inner] * 20), 6: inner, 7: binary(b"end")}
    assert isinstance(found[1], Long)
    with pytest.raises(ValueError, match="code 11"):
        fields_of(bytes([0x1B, 0]))
