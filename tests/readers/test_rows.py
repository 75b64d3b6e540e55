"""Rows in another order are those that Arrow takes, however the table is cut."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.readers import rows as module
from adjudge.readers.rows import in_order

KINDS = {"string": (pa.string(), st.text(max_size=12)), "binary": (pa.binary(), st.binary(max_size=12))}
KINDS["fixed"] = (pa.binary(3), st.binary(min_size=3, max_size=3))


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_in_order_is_what_arrow_takes(name, data):
    """Also where there are more bytes than offsets reach, which a small bound stands for."""
    kind, values = KINDS[name]
    chunks = data.draw(st.lists(st.lists(st.none() | values, max_size=8), min_size=1, max_size=4))
    arrays = [pa.array(chunk, kind) for chunk in chunks]
    arrays[0] = arrays[0][data.draw(st.integers(0, len(arrays[0]))) :]
    count = sum(map(len, arrays))
    table = pa.table({"value": pa.chunked_array(arrays, kind), "number": pa.chunked_array([np.arange(count)])})
    chosen = data.draw(st.lists(st.integers(0, count - 1), max_size=20)) if count else []
    order = np.array(chosen, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:  # whatever it is, it is long
        patch.setattr(module, "LONG", -1)
        patch.setattr(module, "WORTH_IT", -1)
        patch.setattr(module, "MOST", data.draw(st.sampled_from([module.MOST, 3])))
        found = in_order(table, order)
    found.validate(full=True)
    assert found.equals(table.take(pa.array(order)))
    assert found.column("value").num_chunks == 1


def test_long_columns_in_many_chunks(monkeypatch):
    """At their real size, so that compiled loops and Arrow each take some of the columns."""
    copied = []
    ordinary = module._copied
    monkeypatch.setattr(module, "_copied", lambda column, rows: copied.append(column.type) or ordinary(column, rows))
    random = np.random.default_rng(5)
    long = ["x" * int(size) + "é" for size in random.integers(0, 4000, 9000)]
    columns = {"long": long, "short": [text[:3] for text in long], "number": list(range(9000))}
    columns["fixed"] = [bytes([k % 256]) * 152 for k in range(9000)]
    kinds = pa.schema({"long": pa.string(), "short": pa.string(), "number": pa.int64(), "fixed": pa.binary(152)})
    cuts = range(0, 9000, 1300)
    table = pa.concat_tables(
        [pa.table({name: values[k : k + 1300] for name, values in columns.items()}, schema=kinds) for k in cuts]
    )
    order = random.permutation(9000)
    assert in_order(table, order).to_pydict() == {name: [values[k] for k in order] for name, values in columns.items()}
    assert copied == [pa.string(), pa.binary(152)]
