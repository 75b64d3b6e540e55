import numpy as np
import pytest

from adjudge.stats import _fast, ranking


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
    assert np.isnan(_fast.average_precisions(code, ends, np.ones((1, 2)))).all()


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
def test_plain_matrix_loop_equals_the_definition(values):
    scores = np.sort(np.array(values))
    code = np.array([1, 0, 3])
    starts = np.append(True, np.diff(scores) > 0)
    tied = len(set(values)) == 1
    expected = [[1, 0], [1, 0]] if tied else [[0, 0], [2, 0]]
    assert _fast.mann_whitney_matrix(code, starts, 2).tolist() == expected
