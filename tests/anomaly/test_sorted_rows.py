"""Rows sorted once give every slice as sorting the slice itself would."""

from __future__ import annotations

import numpy as np
import pytest

from adjudge.protocols.anomaly.batch import ScoreTable, Sequence, SortedRows
from adjudge.stats import ranking
from adjudge.stats.ranking_bootstrap import PairCounts, RankedRows


def table_of(levels):
    """A validation flight, and three test flights clean and under two attacks, one of which lacks flight c."""
    random = np.random.default_rng(3)
    items = [Sequence("v", "val", None, None, None)]
    items += [Sequence(flight, "test", None, None, None) for flight in "abc"]
    items += [Sequence(flight, "test", "bias", 1.0, 1) for flight in "abc"]
    items += [Sequence(flight, "test", "bias", 2.0, 1) for flight in "abc"]
    items += [Sequence(flight, "test", "drift", 1.0, 1) for flight in "ab"]
    n = 40 * len(items)
    label = np.repeat([item.attack is not None for item in items], 40) & (np.arange(n) % 40 > 25)
    return ScoreTable(
        items, np.arange(0, n + 1, 40), np.arange(n) % 40.0, np.round(random.random(n) * levels), label, []
    )


@pytest.mark.parametrize("levels", [12, 1e12])
@pytest.mark.parametrize("chosen", [range(1, 12), (1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 10, 11), (10, 11)])
def test_slice_equals_its_own_sort(levels, chosen):
    table = table_of(levels)
    rows = SortedRows.of(table, np.arange(1, 12)).slice(np.array(chosen))
    own = np.concatenate([np.arange(table.edges[i], table.edges[i + 1]) for i in chosen])
    score, label = table.score[own], table.label[own]
    _, flight = np.unique(np.repeat([table.sequences[i].flight for i in chosen], 40), return_inverse=True)
    expected = PairCounts(RankedRows.of(score, label, flight.astype(np.int64), int(flight.max()) + 1))
    found = PairCounts(rows)
    assert (found.matrix == expected.matrix).all()
    assert (found.rows.sizes == expected.rows.sizes).all()
    assert (rows.score == np.sort(score)).all()
    assert rows.starts.sum() == np.unique(score).size
    asked = {"clusters": flight, "seed": 1, "stream": "s", "resamples": 50}
    if label.any() and not label.all():
        assert ranking.auroc_by_cluster(score, label, **asked).value == expected.value


def test_other_classes_follow_the_rows():
    table = table_of(1e12)
    test = np.arange(1, 12)
    rows = SortedRows.of(table, test)
    turned = ~table.label[40:][rows.order]
    assert ((rows.slice(test, turned).code & 1) == turned).all()
    assert (rows.slice(test, turned).code >> 1 == rows.slice(test).code >> 1).all()
