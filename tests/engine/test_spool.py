"""What goes into a spool comes back by bucket, in the order of the input, from memory and from files alike."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from adjudge.engine import spool as module
from adjudge.engine.spool import BUCKETS, Spool


@pytest.mark.parametrize(
    "shared, held, files", [(False, 1 << 30, 0), (False, 4000, 3), (False, -1, 5), (True, 1 << 30, 5)]
)
def test_rows_come_back_by_bucket_in_their_order(tmp_path, monkeypatch, shared, held, files):
    monkeypatch.setattr(module, "HELD_PIECE", 900)
    monkeypatch.setattr(module, "FILE_PIECE", 900)
    monkeypatch.setattr(module, "HELD_BYTES", held)
    random = np.random.default_rng(3)
    spool = Spool(tmp_path, "rows", shared=shared)
    numbers, buckets = np.arange(1000), random.integers(0, BUCKETS, 1000).astype(np.uint8)
    for start in range(0, 1000, 200):
        part = slice(start, start + 200)
        spool.add(pa.table({"n": numbers[part], "line": numbers[part]}), buckets[part])
    spool.hold()
    assert len(list(tmp_path.iterdir())) == files
    assert spool.rows == 1000
    for low, high in ((0, 1), (3, 40), (128, 256)):
        found = pa.concat_tables([piece.rows(low, high) for piece in spool.pieces])
        expected = [n for n in numbers.tolist() if low <= buckets[n] < high]
        assert sorted(found.column("n").to_pylist()) == expected
        for bucket in range(low, high):
            mine = [n for n in found.column("n").to_pylist() if buckets[n] == bucket]
            assert mine == sorted(mine)
