"""The order of keys is Arrow's own, whichever way it was found."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.protocols.consistency.order import key_order

KEYS = st.lists(st.text(st.sampled_from("ab\0é😀"), max_size=12), max_size=30)


@given(
    KEYS,
    st.sampled_from(["", "q", "a long beginning that all keys share, longer than the longest that is looked for …"]),
)
@settings(max_examples=200, deadline=None)
def test_as_arrow_sorts(names: list[str], beginning: str) -> None:
    keys = pa.array(["before", *(beginning + name for name in names), "behind"], pa.string())[1:-1]
    order, unique = key_order(keys)
    assert order.to_pylist() == pc.sort_indices(keys).to_pylist()
    assert not unique or len(set(names)) == len(names)


@pytest.mark.parametrize(
    "names", [[], ["q1"], ["q0000003", "q0000001", "q0000002"], ["question-0012", "question-0011"]]
)
def test_common_keys_are_told_apart_by_their_numbers(names: list[str]) -> None:
    order, unique = key_order(pa.array(names, pa.string()))
    assert [names[k] for k in order.to_pylist()] == sorted(names)
    assert unique
