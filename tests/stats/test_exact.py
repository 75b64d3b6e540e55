import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.stats import exact

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(st.lists(finite, max_size=60))
def test_sum_is_correctly_rounded(values):
    assert exact.sum_of(values) == math.fsum(values)


@given(st.lists(st.sampled_from([5e-324, -5e-324, 2.2250738585072014e-308, -1.1e-310, 1e-300, 1.0, -1.0]), max_size=30))
def test_subnormal_numbers_are_not_lost(values):
    assert exact.sum_of(values) == math.fsum(values)


@given(st.lists(st.tuples(finite, st.integers(0, 6)), min_size=1, max_size=60))
def test_group_sums_are_correctly_rounded(rows):
    values = np.array([value for value, _ in rows])
    groups = np.array([group for _, group in rows])
    expected = [math.fsum(values[groups == group]) for group in range(7)]
    assert exact.group_sums(values, groups, 7).tolist() == expected


def test_many_groups_with_few_rows_take_the_sparse_way():
    random = np.random.default_rng(0)
    values, groups = random.lognormal(0, 30, 500), random.integers(0, 5000, 500)
    sums = exact.group_sums(values, groups, 5000)
    for group in np.unique(groups):
        assert sums[group] == math.fsum(values[groups == group])
    assert np.count_nonzero(sums) == np.unique(groups).size


def test_mean_of_what_cancels():
    assert exact.mean_of([1e16, 1.0, -1e16, 1.0]) == 0.5
    assert exact.sum_of(np.full(10, 0.1)) == 1.0
    assert exact.mean_of([0.1] * 3) == pytest.approx(0.1, abs=0)


@given(st.lists(st.tuples(finite, st.integers(0, 6)), min_size=1, max_size=60))
def test_columns_worked_through_in_parts_add_up_to_the_same(rows):
    values = np.array([value for value, _ in rows])
    groups = np.array([group for _, group in rows])
    expected = exact.total(values), exact.group_totals(values, groups, 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "_ROWS", 7)
        assert (exact.total(values), exact.group_totals(values, groups, 7)) == expected


def test_a_long_column_of_numbers_of_any_size():
    random = np.random.default_rng(0)
    values = random.normal(size=80_000) * 10.0 ** random.integers(-320, 3, 80_000)
    assert exact.sum_of(values) == math.fsum(values.tolist())


@pytest.mark.parametrize("exponent", [*range(-1074, 1024, 97), -1, 0, 1, 26, 27, 52, 53])
def test_a_power_of_two_is_its_own_sum_in_every_group(exponent):
    value = math.ldexp(1.0, exponent)
    totals = exact.group_totals(np.array([value, -value, value]), np.array([0, 1, 2]), 3)
    assert totals == [1 << (exponent + 1074), -(1 << (exponent + 1074)), 1 << (exponent + 1074)]
