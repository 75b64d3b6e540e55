import numpy as np
import pytest

from adjudge.errors import StatsError
from adjudge.stats.detection import exceeded_by_at_most, first_reaching, needed


@pytest.mark.parametrize(
    "scores, target, expected",
    [
        (range(1, 101), 0.01, 99.0),
        (range(1, 101), 0.05, 95.0),
        (range(1, 21), 0.01, 20.0),
        ([1.0] * 90 + [2.0] * 10, 0.05, 2.0),
        ([1.0] * 90 + [2.0] * 10, 0.10, 1.0),
    ],
)
def test_smallest_score_with_few_enough_above(scores, target, expected):
    column = np.array(list(scores), dtype=float)
    found = exceeded_by_at_most(column, target)
    assert found == expected
    assert (column > found).sum() <= target * column.size
    lower = column[column < found]
    assert not lower.size or (column > lower.max()).sum() > target * column.size


def test_scores_needed():
    assert (needed(0.01), needed(0.05), needed(0.03)) == (100, 20, 34)


def test_threshold_of_nothing():
    with pytest.raises(StatsError, match="needs scores"):
        exceeded_by_at_most([], 0.01)


def test_first_size_that_is_detected_ignores_a_lucky_small_one():
    assert first_reaching([1, 2, 5, 10], [6, 2, 9, 10], [10, 10, 10, 10], 0.5) == 5
    assert first_reaching([1, 2, 5, 10], [6, 2, 9, 10], [10, 10, 10, 10], 0.9) == 5
    assert first_reaching([1, 2], [1, 2], [10, 10], 0.5) is None
