"""Parquet pages written by hand, against Arrow's reader."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.runs.encodings import (
    as_it_lies,
    bits_for,
    counted,
    differing,
    levels,
    repeated,
    repeated_levels,
    runs,
    texts,
)
from adjudge.runs.parquet import Chunk, Encoding, FileWriter, Page, Physical, group_of

WORD = pa.field("it", pa.string(), nullable=False)
WHOLE = pa.field("it", pa.uint32(), nullable=False)
NUMBER = pa.field("it", pa.float64(), nullable=False)


def read_back(field: pa.Field, rows: int, chunk: Chunk) -> pa.ChunkedArray:
    """What Arrow reads of a file with one chunk."""
    out = io.BytesIO()
    file = FileWriter(out, pa.schema([field], metadata={"about": "a test"}))
    file.add(group_of(rows, [chunk]))
    file.close()
    found = pq.ParquetFile(pa.BufferReader(out.getvalue()))
    assert found.schema_arrow.metadata == {b"about": b"a test"}
    return found.read().column(0)


STRETCHES = st.lists(st.tuples(st.integers(0, 40), st.sampled_from([None, *range(20)])), min_size=1, max_size=12)


@given(STRETCHES, st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_runs_of_words(stretches: list[tuple[int, int | None]], seed: int) -> None:
    """Stretches of one word, stretches of many, and empty ones come back word for word."""
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, 20, size) if one is None else np.full(size, one) for size, one in stretches]
    codes = np.concatenate(parts)
    edges = np.cumsum([0, *(len(part) for part in parts)])
    words = [f"word {code}" for code in range(20)]
    bits = bits_for(len(words))
    page = Page(codes.size, bytes([bits]) + runs(codes, edges, bits))
    chunk = Chunk(("it",), Physical.BYTE_ARRAY, Encoding.RLE_DICTIONARY, [page], Page(len(words), texts(words)))
    found = read_back(WORD, codes.size, chunk)
    assert found.to_pylist() == [words[code] for code in codes]


@given(st.lists(st.integers(0, 19), max_size=12), st.integers(0, 20))
def test_repeated_values_are_their_runs(values: list[int], times: int) -> None:
    codes, bits = np.array(values, dtype=np.int64), bits_for(20)
    every = np.repeat(codes, times)
    assert repeated(codes, times, bits) == runs(every, np.arange(len(codes) + 1) * times, bits)
    there = codes < 7
    assert repeated_levels(there, times) == levels(np.repeat(there, times).reshape(len(there), times))


@pytest.mark.parametrize("count", [2, 3, 5, 17, 257, 70_000])
def test_every_width_of_bits(count: int) -> None:
    codes = np.random.default_rng(count).integers(0, count, 1003)
    codes[0] = count - 1
    bits = bits_for(count)
    page = Page(codes.size, bytes([bits]) + runs(codes, np.array([0, codes.size]), bits))
    words = Page(count, np.arange(count, dtype="<i4").tobytes())
    chunk = Chunk(("it",), Physical.INT32, Encoding.RLE_DICTIONARY, [page], words)
    found = read_back(WHOLE, codes.size, chunk)
    assert found.to_pylist() == codes.tolist()


def test_a_long_constant_takes_a_few_bytes() -> None:
    """Positions that hold the same value are one run."""
    assert len(runs(np.ones(100_000, dtype=np.uint8), np.arange(0, 100_001, 1000), 1)) == 4


@given(st.integers(0, 2**31 - 701), st.integers(0, 700), st.integers(1, 9))
@settings(max_examples=150, deadline=None)
def test_numbers_that_start_anew(first: int, count: int, times: int) -> None:
    chunk = Chunk(
        ("it",), Physical.INT32, Encoding.DELTA_BINARY_PACKED, [Page(count * times, counted(first, count, times))]
    )
    found = read_back(WHOLE, count * times, chunk)
    assert found.to_pylist() == list(range(first, first + count)) * times


@given(st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 300), max_size=400))
@settings(max_examples=150, deadline=None)
def test_numbers_without_order(numbers: list[int]) -> None:
    page = Page(len(numbers), differing(np.array(numbers, dtype=np.int32)))
    chunk = Chunk(("it",), Physical.INT32, Encoding.DELTA_BINARY_PACKED, [page])
    assert read_back(WHOLE, len(numbers), chunk).to_pylist() == numbers


def test_doubles_in_several_pages() -> None:
    values = np.random.default_rng(0).normal(size=1000)
    pages = [Page(300, b"", as_it_lies(values[:300])), Page(700, b"", as_it_lies(values[300:]))]
    found = read_back(NUMBER, 1000, Chunk(("it",), Physical.DOUBLE, Encoding.PLAIN, pages))
    assert np.array_equal(found.to_numpy(), values)


def test_bounds_of_a_row_group() -> None:
    out = io.BytesIO()
    file = FileWriter(out, pa.schema([WHOLE]))
    for first in (0, 5_000_000, 2_000_000_000):
        bounds = (first.to_bytes(4, "little"), (first + 9).to_bytes(4, "little"))
        page = Page(10, counted(first, 10, 1))
        chunk = Chunk(("it",), Physical.INT32, Encoding.DELTA_BINARY_PACKED, [page], bounds=bounds)
        file.add(group_of(10, [chunk]))
    file.close()
    found = pq.ParquetFile(pa.BufferReader(out.getvalue())).metadata
    groups = [found.row_group(index).column(0).statistics for index in range(3)]
    assert [(group.min, group.max) for group in groups] == [
        (0, 9),
        (5_000_000, 5_000_009),
        (2_000_000_000, 2_000_000_009),
    ]
