"""What goes into a spool comes back by slot, in the order of the input, from memory and from files alike."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from adjudge.engine import split as module
from adjudge.engine.split import Spool
from adjudge.provenance.canonical import SLOTS


@pytest.mark.parametrize("memory, files", [(1 << 30, 0), (4000, 3), (0, 5)])
def test_rows_come_back_by_slot_in_their_order(tmp_path, monkeypatch, memory, files):
    monkeypatch.setattr(module, "PIECE", 900)
    random = np.random.default_rng(3)
    spool = Spool(tmp_path, "rows", memory)
    numbers, slots = np.arange(1000), random.integers(0, SLOTS, 1000).astype(np.int16)
    for start in range(0, 1000, 200):
        part = slice(start, start + 200)
        spool.add(pa.table({"n": numbers[part], "line": numbers[part]}), slots[part])
    spool.close()
    assert len(list(tmp_path.iterdir())) == files
    assert spool.rows == 1000
    for low, high in ((0, 1), (3, 40), (128, 256)):
        found = pa.concat_tables([piece.rows(low, high) for piece in spool.pieces])
        expected = [n for n in numbers.tolist() if low <= slots[n] < high]
        assert sorted(found.column("n").to_pylist()) == expected
        for slot in range(low, high):
            mine = [n for n in found.column("n").to_pylist() if slots[n] == slot]
            assert mine == sorted(mine)


def test_a_column_of_nulls_meets_one_of_texts(tmp_path):
    """In a piece, and between pieces, of memory and of files."""
    kinds = (pa.nulls(3), pa.array(["a", None, "b"]), pa.nulls(3))
    for memory in (1 << 20, 0):
        spool = Spool(tmp_path, f"rows-{memory}", memory)
        for texts in kinds:
            spool.add(pa.table({"text": texts}), np.zeros(3, dtype=np.int16))
            spool.close()
        found = module.together([piece.rows(0, SLOTS) for piece in spool.pieces])
        assert found.column("text").to_pylist() == [None, None, None, "a", None, "b", None, None, None]
        assert found.schema.field("text").type == pa.string()
