"""The JSON of a run: the same bytes whether a document is formatted whole or in pieces."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.errors import ConfigError
from adjudge.provenance import canonical
from adjudge.provenance.canonical import pretty

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6), max_leaves=30
)


@settings(max_examples=200, deadline=None)
@given(value=documents, piece=st.integers(1, 4))
def test_pieces_are_the_bytes_of_the_standard_library(value, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, "_PIECE", piece)
        assert pretty(value) == (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_cannot_carry_is_named_with_its_place(number):
    with pytest.raises(ConfigError, match=r"\$\.a\[1\]\.b is (nan|-?inf), which JSON cannot carry"):
        pretty({"x": [0.5], "a": [1, {"b": number}]})
