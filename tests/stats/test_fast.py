import numpy as np
import pytest

from adjudge.stats import _fast, ranked, ranking
from adjudge.stats import ranking_bootstrap as rb


def test_without_numba_there_is_no_kernel_and_the_numbers_are_the_same(monkeypatch):
    random = np.random.default_rng(1)
    positive, place = random.random(400) < 0.3, random.integers(0, 12, 400)
    scores = np.round(random.normal(size=400) + positive, 1)
    asked = {"clusters": place, "seed": 1, "stream": "f"}
    measures = [
        lambda: ranking.auroc(scores, positive, **asked),
        lambda: ranking.average_precision(scores, positive, **asked),
        lambda: ranking.auroc_value(scores, positive),
    ]
    compiled = [measure() for measure in measures]
    monkeypatch.setattr(_fast, "available", lambda: False)
    assert _fast.kernel(_fast.mann_whitney) is None
    assert [measure() for measure in measures] == compiled


def test_the_plain_loop_is_what_is_compiled():
    below, above = np.array([1.0, 2.0, 2.0, 5.0]), np.array([2.0, 2.0, 6.0])
    # 2 beats 1 and ties with two 2s: 2 + 2, twice; 6 beats all four: 8.
    assert _fast.mann_whitney(below, above) == 16
    compiled = _fast.kernel(_fast.mann_whitney)
    assert compiled is not None
    assert compiled(below, above) == 16
    assert _fast.kernel(_fast.mann_whitney, fast=False) is None


def test_average_precision_without_positives_is_undefined():
    code, ends = np.array([0, 2]), np.array([True, True])
    result = np.zeros(1)
    _fast.average_precisions(code, ends, np.ones((1, 2)), result)
    assert np.isnan(result).all()


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
def test_plain_matrix_loop_equals_the_definition(values):
    scores = np.sort(np.array(values))
    code = np.array([1, 0, 3])
    starts = np.append(True, np.diff(scores) > 0)
    tied = len(set(values)) == 1
    expected = [[1, 0], [1, 0]] if tied else [[0, 0], [2, 0]]
    matrix = np.zeros((2, 2), dtype=np.int64)
    _fast.mann_whitney_matrix(code, starts, matrix, np.zeros(2, dtype=np.int64))
    assert matrix.tolist() == expected


def test_block_counts_with_and_without_compilation():
    random = np.random.default_rng(5)
    place, positive = random.integers(0, 7, 1003), random.random(1003) < 0.3
    expected = np.zeros((12, 2, 7))
    for row, (cluster, hit) in enumerate(zip(place, positive, strict=True)):
        expected[row // 100 + 1 :, int(hit), cluster] += 1
    for fast in (False, None):
        assert (rb._block_counts(place, positive, 100, 7, fast=fast) == expected).all()
        turned = rb._block_counts(place.astype(np.int32)[::-1], positive[::-1], 1003, 7, fast=fast)
        assert (turned[1] == expected[-1]).all()


def test_code_counts_are_a_histogram():
    code = np.array([3, 0, 3, 1], dtype=np.int32)
    counts = np.zeros(5, dtype=np.int64)
    _fast.code_counts(code, counts)
    assert counts.tolist() == [1, 1, 0, 2, 0]


@pytest.mark.parametrize("levels", [5, 10_000])
def test_best_f1_with_and_without_compilation(levels):
    random = np.random.default_rng(6)
    scores, positive = random.integers(0, levels, 500).astype(float), random.random(500) < 0.4
    rows = rb.RankedRows.of(scores, positive, np.zeros(500, dtype=np.int64), 1)
    value, cut = ranked.best_f1(rows, fast=False)
    assert ranked.best_f1(rows) == (value, cut)
    called = scores >= cut
    assert value == 2 * (called & positive).sum() / (called.sum() + positive.sum())
