import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.errors import StatsError
from adjudge.stats import bootstrap, error_measures, exact, ranking
from adjudge.stats.partials import Column, Counts, Scores, Sums

finite = st.floats(-1e12, 1e12)
rows = st.lists(st.tuples(finite, st.integers(0, 4), st.booleans()), min_size=1, max_size=50)
cuts = st.lists(st.integers(0, 50), max_size=5)


def cut(data, places, order):
    """The data in a random order, cut at random places; every part may be empty."""
    order = list(range(len(data)))[:: 1 if order else -1]
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [[data[k] for k in order[start:stop]] for start, stop in itertools.pairwise(edges)]


def columns(data):
    values = np.array([row[0] for row in data], dtype=float)
    return values, np.array([row[1] for row in data], dtype=int), np.array([row[2] for row in data], dtype=bool)


def joined(parts):
    return functools.reduce(lambda one, other: one.merge(other), parts)


@settings(max_examples=60)
@given(rows, cuts, st.booleans())
def test_sums_of_any_cut_have_the_same_bits(data, places, order):
    values, clusters, _ = columns(data)
    parts = [columns(part) for part in cut(data, places, order)]
    whole = joined([Sums.partial(v, clusters=c) for v, c, _ in parts])
    names, sums, sizes = whole.finish()
    assert names == sorted(set(clusters.tolist()))
    assert sums.tolist() == [exact.sum_of(values[clusters == name]) for name in names]
    assert sizes.sum() == len(data)
    assert whole.mean_value() == exact.mean_of(values)
    asked = {"seed": 1, "stream": "p", "resamples": 20}
    assert whole.mean(**asked) == bootstrap.mean(values, clusters=clusters, **asked)


@settings(max_examples=60)
@given(rows, cuts, st.booleans())
def test_columns_of_any_cut_have_the_same_bits(data, places, order):
    values, clusters, positive = columns(data)
    parts = [columns(part) for part in cut(data, places, order)]
    column = joined([Column.partial(v) for v, _, _ in parts]).finish()
    assert column.tobytes() == np.sort(values + 0.0).tobytes()
    assert error_measures.quantile(column, 0.9, is_sorted=True) == error_measures.quantile(values, 0.9)
    scores = joined([Scores.partial(v, p, clusters=c) for v, c, p in parts])
    again = Scores.partial(values, positive, clusters=clusters)
    assert [part.tobytes() for part in scores.finish()] == [part.tobytes() for part in again.finish()]
    for clustered in (False, True):
        expected = ranking.auroc(values, positive, clusters=clusters if clustered else None, seed=1, stream="p")
        assert scores.auroc(clustered=clustered, seed=1, stream="p") == expected


@given(rows, cuts, st.booleans(), st.booleans())
def test_counts_of_any_cut_add_up(data, places, order, clustered):
    _, clusters, positive = columns(data)
    cells = clusters * 2 + positive
    parts = [columns(part) for part in cut(data, places, order)]
    whole = joined([Counts.partial(c * 2 + p, 10, clusters=c % 2 if clustered else None) for _, c, p in parts])
    names, table = whole.finish()
    if clustered:
        assert names == sorted(set((clusters % 2).tolist()))
        assert table.tolist() == [np.bincount(cells[clusters % 2 == name], minlength=10).tolist() for name in names]
    else:
        assert table.tolist() == [np.bincount(cells, minlength=10).tolist()]


def test_minus_zero_does_not_show():
    one = Column.partial([0.0]).merge(Column.partial([-0.0])).finish()
    other = Column.partial([-0.0]).merge(Column.partial([0.0])).finish()
    assert one.tobytes() == other.tobytes()


def test_nothing_is_null():
    assert Sums.partial([]).mean_value() is None
    assert Sums.partial([]).mean(seed=1, stream="p").why == "no values"
    assert Counts.partial([], 3).finish()[1].shape == (0, 3)


def test_what_does_not_fit_is_refused():
    with pytest.raises(StatsError, match="cannot be added"):
        Counts.partial([0], 2).merge(Counts.partial([0], 3))
    with pytest.raises(StatsError, match="outside"):
        Counts.partial([2], 2)
    with pytest.raises(StatsError, match="nan"):
        Sums.partial([np.nan])
