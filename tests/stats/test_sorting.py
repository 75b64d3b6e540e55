"""Long columns sorted by their bits, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.stats import sorting


@pytest.mark.parametrize("fast", [True, False])
@given(st.lists(st.floats(allow_nan=False), max_size=60), st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_any_doubles(fast, some, seed):
    """Of any size and sign, infinite ones too, each of them several times."""
    values = np.random.default_rng(seed).permutation(np.repeat(np.array(some, dtype=float), 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MANY", 1)
        found = sorting.rising(values, fast=fast)
    assert (found + 0.0).tobytes() == (np.sort(values) + 0.0).tobytes()


@pytest.mark.parametrize("scale", [1e-320, 1.0, 1e300])
def test_many_doubles_are_sorted_and_the_column_is_left_as_it_was(scale):
    values = np.random.default_rng(0).normal(size=3 * sorting.MANY) * scale
    kept = values.copy()
    assert np.array_equal(sorting.rising(values), np.sort(values))
    assert np.array_equal(values, kept)


def test_columns_of_one_value():
    assert np.array_equal(sorting.rising(np.full(sorting.MANY, -2.5)), np.full(sorting.MANY, -2.5))
