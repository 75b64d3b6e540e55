"""Partials of calibration: any cut of the rows gives the same bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.errors import StatsError
from adjudge.stats.bin_sums import BinSums
from adjudge.stats.calibration import brier_parts, brier_value, ece_value

ROWS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60).map(
    lambda rows: (np.array([c for c, _ in rows]), np.array([y for _, y in rows]))
)


@given(ROWS, st.integers(1, 12), st.sampled_from(["left", "right"]), st.data())
@settings(max_examples=60, deadline=None)
def test_any_cut_gives_the_same_bits(rows, bins, closed, data):
    confidence, correct = rows
    cuts = sorted(data.draw(st.lists(st.integers(0, correct.size), max_size=3)))
    parts = [
        BinSums.partial(confidence[part], correct[part], bins=bins, closed=closed)
        for part in np.split(np.arange(correct.size), cuts)
    ]
    data.draw(st.randoms(use_true_random=False)).shuffle(parts)
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    assert merged == BinSums.partial(confidence, correct, bins=bins, closed=closed)
    assert merged.ece() == ece_value(confidence, correct, bins=bins, closed=closed)
    assert merged.brier() == brier_value(confidence, correct)
    assert merged.brier_parts() == brier_parts(confidence, correct, bins=bins, closed=closed)


def test_no_rows_is_null():
    empty = BinSums.partial([], [])
    assert empty.merge(empty).ece() is None
    assert empty.brier() is None
    assert empty.brier_parts() is None


def test_other_bins_cannot_be_added():
    with pytest.raises(StatsError, match="10 and over 5"):
        BinSums.partial([0.5], [1]).merge(BinSums.partial([0.5], [1], bins=5))
