"""Columns for a page: each kind of Arrow column, nulls, cuts, and numbers to nine digits."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.report.explore import CHARACTERS, plain, rounded


@pytest.mark.parametrize(
    "values, kind, expected",
    [
        (["b", None, "a", "b"], pa.string(), {"words": ["b", "a"], "codes": [0, -1, 1, 0]}),
        (["b", None, "b"], pa.dictionary(pa.int32(), pa.string()), {"words": ["b"], "codes": [0, -1, 0]}),
        ([None, None], pa.null(), {"words": [], "codes": [-1, -1]}),
        ([1, None], pa.int64(), {"values": [1, None]}),
        ([True, None], pa.bool_(), {"values": [True, None]}),
        ([b"x"], pa.binary(), {"values": [None]}),
        ([[1.0, 2.0], [3.0]], pa.list_(pa.float64()), {"values": [[1.0, 2.0], [3.0]]}),
        ([["a"], None], pa.list_(pa.string()), {"values": [["a"], None]}),
        ([[0.0] * 65], pa.list_(pa.float64()), {"values": ["65 values"]}),
        ([[1 / 3, 2.0], None], pa.list_(pa.float64(), 2), {"values": [[0.333333333, 2.0], None]}),
        (["x" * 4001], pa.string(), {"words": ["x" * CHARACTERS + " …"], "codes": [0]}),
        (["x" * 4000], pa.string(), {"words": ["x" * CHARACTERS], "codes": [0]}),
    ],
)
def test_every_kind_of_column(values, kind, expected):
    array = pa.array(values, kind) if not pa.types.is_dictionary(kind) else pa.array(values).dictionary_encode()
    assert plain(pa.chunked_array([array.slice(0, 1), array.slice(1)])) == expected


@given(st.lists(st.floats(), min_size=1))
def test_numbers_have_nine_digits(values):
    for before, after in zip(values, rounded(np.array(values)).tolist(), strict=True):
        if not np.isfinite(before):
            assert np.isnan(after)
        elif before == 0 or 1e-13 < abs(before) < 1e30:
            assert after == pytest.approx(float(f"{before:.9g}"), rel=1.1e-8, abs=0)
            assert len(repr(after).partition("e")[0].replace(".", "").replace("-", "").strip("0")) <= 9
        else:
            assert after == pytest.approx(before, rel=1e-8, abs=0)
