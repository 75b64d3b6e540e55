import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.errors import StatsError
from adjudge.stats.detection import alarm_events, first_alarms, runs


def plain(over, starts, length):
    """One row after the other: where a run stands, the first alarm and the alarms of each sequence."""
    standing, first, events, run = [], [], [], 0
    for row, (exceeds, start) in enumerate(zip(over, starts, strict=True)):
        if start:
            run, begin = 0, row
            first.append(-1)
            events.append(0)
        run = run + 1 if exceeds else 0
        standing.append(run >= length)
        if run == length:
            events[-1] += 1
            if first[-1] < 0:
                first[-1] = row - begin
    return standing, first, events


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5).map(lambda k: k == 0)), max_size=60), st.integers(1, 9))
def test_equals_the_loop(rows, length):
    over = np.array([exceeds for exceeds, _ in rows], dtype=bool)
    starts = np.array([start for _, start in rows], dtype=bool)
    starts[:1] = True
    standing, first, events = plain(over, starts, length)
    assert runs(over, starts, length).tolist() == standing
    assert first_alarms(over, starts, length).tolist() == first
    assert alarm_events(over, starts, length).tolist() == events


@given(st.integers(1, 40), st.integers(1, 40))
def test_long_runs(length, rows):
    over, starts = np.ones(rows, dtype=bool), np.arange(rows) == 0
    assert runs(over, starts, length).sum() == max(0, rows - length + 1)


def test_a_run_does_not_cross_from_one_flight_to_the_next():
    # Three exceedances at the end of one flight and two at the start of the next are no run of five.
    over = np.array([False, True, True, True, True, True, False])
    starts = np.array([True, False, False, False, True, False, False])
    assert first_alarms(over, starts, 5).tolist() == [-1, -1]
    assert first_alarms(over, starts, 3).tolist() == [3, -1]
    assert first_alarms(over, np.arange(7) == 0, 5).tolist() == [5]


def test_no_rows():
    empty = np.zeros(0, dtype=bool)
    assert first_alarms(empty, empty, 3).size == 0
    assert alarm_events(empty, empty, 3).size == 0


@pytest.mark.parametrize(
    "over, starts, length, message",
    [
        ([True], [False], 1, "first row"),
        ([True], [True], 0, "at least one row"),
        ([True], [True, False], 1, "rows"),
        ([1.0], [True], 1, "true and false"),
    ],
)
def test_bad_columns_are_refused(over, starts, length, message):
    with pytest.raises(StatsError, match=message):
        runs(np.array(over), np.array(starts), length)
