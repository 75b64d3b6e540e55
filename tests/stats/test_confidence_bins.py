"""Bins: decimal edges are exact whatever the float looks like, ties stay together."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.errors import StatsError
from adjudge.stats.calibration import assign, columns, edges, equal_mass, equal_width


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("bins", [5, 10, 20])
def test_every_edge_opens_its_own_bin(bins, dtype):
    written = np.array([float(Fraction(k, bins)) for k in range(bins + 1)]).astype(dtype)
    assert equal_width(written, bins).tolist() == [*range(bins), bins - 1]
    assert equal_width(written, bins, "right").tolist() == [0, *range(bins)]


def test_the_float_of_three_tenths_is_in_the_fourth_bin():
    # 0.3 is stored as 0.299999…, 3·0.1 as 0.300000…04: multiplying by ten or stepping by 0.1 misplaces an edge.
    assert equal_width([0.3, 0.29999999999999993, 0.7, 0.6, 0.1]).tolist() == [3, 2, 7, 6, 1]


@given(st.integers(0, 10**4), st.integers(1, 25), st.sampled_from(["left", "right"]))
@settings(max_examples=200, deadline=None)
def test_decimals_fall_where_exact_arithmetic_puts_them(numerator, bins, closed):
    exact = Fraction(numerator, 10**4) * bins
    place = -(-exact.numerator // exact.denominator) - 1 if closed == "right" else exact.numerator // exact.denominator
    assert equal_width([numerator / 10**4], bins, closed).tolist() == [min(max(place, 0), bins - 1)]


def test_equal_mass_without_ties_is_equal():
    assert np.bincount(equal_mass(np.random.default_rng(0).permutation(200) / 200, 10)).tolist() == [20] * 10


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(1, 8), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_equal_mass_keeps_ties_together_and_order(values, bins, random):
    where = equal_mass(np.array(values) / 12, bins)
    by_value = {}
    for value, place in zip(values, where.tolist(), strict=True):
        assert by_value.setdefault(value, place) == place
    places = [by_value[value] for value in sorted(by_value)]
    assert places == sorted(places)
    assert set(places) <= set(range(bins))
    order = random.sample(range(len(values)), len(values))
    assert equal_mass(np.array(values)[order] / 12, bins).tolist() == where[order].tolist()


@pytest.mark.parametrize(
    "confidence, correct, says",
    [
        ([0.5, 1.2], [0, 1], r"confidence\[1\] is 1.2"),
        ([0.5, -0.1], [0, 1], "between 0 and 1"),
        ([0.5, float("nan")], [0, 1], "NaN"),
        ([0.5], [0, 1], "rows"),
        ([0.5, 0.5], [0, 2], "0 and 1"),
        ([0.5, 0.5], [0.5, 1.0], "0 and 1"),
        ([0.5], ["yes"], "0 and 1"),
        ([[0.5]], [[1]], "dimensions"),
    ],
)
def test_bad_columns_are_refused(confidence, correct, says):
    with pytest.raises(StatsError, match=says):
        columns(confidence, correct)


def test_unknown_schemes_are_refused():
    for bad in (
        lambda: edges(0),
        lambda: assign([0.5], 10, "quantile", "left"),
        lambda: equal_width([0.5], 10, "both"),
    ):
        with pytest.raises(StatsError):
            bad()
