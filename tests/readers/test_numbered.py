"""Rows share a number where, and only where, the same stands at the paths."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from adjudge.readers import numbered as module
from adjudge.readers.numbered import Numbered
from adjudge.readers.scan import Wanted, scan

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["", "x", "x" * 9, "é", 'q"'])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["x", "é"]), inner, max_size=2)
    ),
    max_leaves=4,
)
documents = st.dictionaries(st.sampled_from(["id", "o", "l", "other"]), values, max_size=4)


PATHS = [("id",), ("o", "x"), ("l",)]


def texts_at(found, row):
    return [
        (int(found.kinds(*path)[row]), bytes(found.data[slice(*(int(side[row]) for side in found.spans(*path)))]))
        for path in PATHS
    ]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(documents, min_size=1, max_size=6), min_size=1, max_size=3), st.sampled_from([1, 1 << 14]))
def test_rows_share_a_number_where_the_texts_at_the_paths_are_the_same(blocks, most):
    wanted = Wanted(PATHS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_NUMBERS", most)
        numbered = Numbered(wanted, PATHS)
        for rows in blocks:
            written = [json.dumps(row).encode() for row in rows]
            found = scan_with(wanted, written)
            codes, values = numbered.of(found, lambda row, found=found: texts_at(found, row))
            assert [None if code < 0 else values[code] for code in codes] == [
                None if found.odd[row] else texts_at(found, row) for row in range(len(rows))
            ]
            assert len({repr(value) for value in values}) == len(values)


def scan_with(wanted, rows):
    ends = np.cumsum([len(row) + 1 for row in rows]) - 1
    starts = ends - [len(row) for row in rows]
    return scan(wanted, b"\n".join(rows), starts.astype(np.int32), ends.astype(np.int32), fast=True)


def test_long_texts_that_differ_in_one_byte_have_their_own_numbers():
    wanted = Wanted([("id",)])
    rows = [b'{"id":"%s"}' % (b"a" * 40 + bytes([97 + k]) + b"z" * 23) for k in (0, 1, 0, 2)]
    codes, values = Numbered(wanted, [("id",)]).of(scan_with(wanted, rows), lambda row: row)
    assert codes.tolist() == [0, 1, 0, 2]
    assert values == [0, 1, 3]
