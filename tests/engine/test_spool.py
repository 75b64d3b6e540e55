"""What goes into a spool comes back by bucket, in the order of the input, from memory and from files alike."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from adjudge.engine import spool as module
from adjudge.engine.spool import BUCKETS, NONE, Room, Spool


@pytest.mark.parametrize(
    "shared, held, files", [(False, 1 << 30, 0), (False, 4000, 3), (False, -1, 5), (True, 1 << 30, 5)]
)
def test_rows_come_back_by_bucket_in_their_order(tmp_path, monkeypatch, shared, held, files):
    monkeypatch.setattr(module, "HELD_PIECE", 900)
    monkeypatch.setattr(module, "FILE_PIECE", 900)
    monkeypatch.setattr(module, "HELD_BYTES", held)
    random = np.random.default_rng(3)
    spool = Spool(tmp_path, "rows", None if shared else Room())
    numbers, buckets = np.arange(1000), random.integers(0, BUCKETS, 1000).astype(np.int16)
    for start in range(0, 1000, 200):
        part = slice(start, start + 200)
        spool.add(pa.table({"n": numbers[part], "line": numbers[part]}), buckets[part])
    spool.close()
    assert len(list(tmp_path.iterdir())) == files
    assert spool.rows == 1000
    for low, high in ((0, 1), (3, 40), (128, 256)):
        found = pa.concat_tables([piece.rows(low, high) for piece in spool.pieces])
        expected = [n for n in numbers.tolist() if low <= buckets[n] < high]
        assert sorted(found.column("n").to_pylist()) == expected
        for bucket in range(low, high):
            mine = [n for n in found.column("n").to_pylist() if buckets[n] == bucket]
            assert mine == sorted(mine)


@pytest.mark.parametrize("room", [Room(), None], ids=["memory", "file"])
def test_a_row_without_a_bucket_is_none(tmp_path, room):
    spool = Spool(tmp_path, "rows", room)
    spool.add(pa.table({"n": [0, 1, 2, 3, 4]}), np.array([7, NONE, 0, NONE, 255], dtype=np.int16))
    spool.add(pa.table({"n": [5, 6]}), np.array([NONE, NONE], dtype=np.int16))
    spool.close()
    assert spool.rows == 3
    (piece,) = spool.pieces
    assert [piece.rows(low, high).column("n").to_pylist() for low, high in ((0, 1), (1, 8), (8, 256), (0, 256))] == [
        [2],
        [0],
        [4],
        [2, 0, 4],
    ]


def test_roles_share_the_room_in_memory(tmp_path, monkeypatch):
    """The second role finds less room, and goes to files earlier."""
    monkeypatch.setattr(module, "HELD_PIECE", 900)
    monkeypatch.setattr(module, "FILE_PIECE", 900)
    monkeypatch.setattr(module, "HELD_BYTES", 4000)
    room, held = Room(), []
    for name in ("first", "second"):
        spool = Spool(tmp_path, name, room)
        for _ in range(3):
            spool.add(pa.table({"n": np.arange(200)}), np.zeros(200, dtype=np.int16))
        held.append(sum(piece.table is not None for piece in spool.pieces))
    assert held == [3, 0]


def test_a_column_of_nulls_meets_one_of_texts(tmp_path):
    """In a piece, and between pieces, of memory and of files."""
    kinds = (pa.nulls(3), pa.array(["a", None, "b"]), pa.nulls(3))
    for room in (Room(), None):
        spool = Spool(tmp_path, f"rows-{room is None}", room)
        for texts in kinds:
            spool.add(pa.table({"text": texts}), np.zeros(3, dtype=np.int16))
            spool.close()
        found = module.together([piece.rows(0, BUCKETS) for piece in spool.pieces])
        assert found.column("text").to_pylist() == [None, None, None, "a", None, "b", None, None, None]
        assert found.schema.field("text").type == pa.string()
