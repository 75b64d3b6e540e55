"""Rows in another order are those that Arrow takes, however the table is cut."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.readers import rows as module
from adjudge.readers.rows import in_order

texts = st.lists(st.none() | st.text(max_size=12), max_size=8)


@pytest.fixture
def every_text_is_long(monkeypatch):
    monkeypatch.setattr(module, "LONG", -1)


@pytest.mark.usefixtures("every_text_is_long")
@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
@given(chunks=st.lists(texts, min_size=1, max_size=4), data=st.data())
def test_in_order_is_what_arrow_takes(kind, chunks, data):
    arrays = [pa.array(chunk, pa.string()).cast(kind) for chunk in chunks]
    cut = data.draw(st.integers(0, len(arrays[0])))
    arrays[0] = arrays[0][cut:]
    count = sum(map(len, arrays))
    table = pa.table({"text": pa.chunked_array(arrays, kind), "number": pa.chunked_array([np.arange(count)])})
    chosen = data.draw(st.lists(st.integers(0, count - 1), max_size=20)) if count else []
    order = np.array(chosen, dtype=np.int64)
    found = in_order(table, order)
    found.validate(full=True)
    assert found.equals(table.take(pa.array(order)))
    assert found.column("text").num_chunks == 1


def test_a_long_column_in_many_chunks():
    """At its real size, so that compiled loops and Arrow each take a column."""
    random = np.random.default_rng(5)
    long = ["x" * int(size) + "é" for size in random.integers(0, 4000, 2000)]
    chunks = [pa.array(long[low : low + 300]) for low in range(0, 2000, 300)]
    table = pa.table({"long": pa.chunked_array(chunks), "short": pa.chunked_array([np.arange(2000)])})
    assert table.column("long").nbytes > module.LONG
    order = random.permutation(2000)
    assert in_order(table, order).to_pydict() == {"long": [long[k] for k in order], "short": order.tolist()}
