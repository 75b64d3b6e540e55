"""Runs of consecutive exceedances within sequences, and the alarms they raise.

An alarm is raised at the row where the N-th consecutive exceedance falls. A run never crosses the start of a
sequence; where only runs that begin inside a window count, the window's first row is the start of a sequence of its
own. Everything is whole-column logic: a window of N rows is all true when two overlapping windows of a power of two
are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import _checks
from adjudge.stats._checks import BoolArray, IntArray


def runs(over: npt.ArrayLike, starts: npt.ArrayLike, length: int) -> BoolArray:
    """True where a run of at least `length` consecutive exceedances of the same sequence stands."""
    exceeds, first = _columns(over, starts)
    if _checks.count(length, "length") == 0:
        raise StatsError("a run has at least one row; length is 0")
    if length == 1:
        return exceeds.copy()
    # A window lies in one sequence when none of its rows but the first is a start.
    return _all_of_last(exceeds, length) & _all_of_last(~first, length - 1)


def first_alarms(over: npt.ArrayLike, starts: npt.ArrayLike, length: int) -> IntArray:
    """For each sequence the row, counted from its start, where its first alarm falls, or -1 where there is none."""
    standing, (_, first) = runs(over, starts, length), _columns(over, starts)
    begin = np.flatnonzero(first)
    alarms = np.flatnonzero(standing)
    place = np.searchsorted(alarms, begin)
    followed = place < alarms.size
    row = np.where(followed, alarms[np.minimum(place, max(alarms.size - 1, 0))] if alarms.size else 0, 0)
    end = np.append(begin[1:], first.size)
    return np.where(followed & (row < end), row - begin, -1).astype(np.int64)


def alarm_events(over: npt.ArrayLike, starts: npt.ArrayLike, length: int) -> IntArray:
    """For each sequence the number of alarms: a run that goes on is one alarm, however long."""
    standing, (_, first) = runs(over, starts, length), _columns(over, starts)
    onset = standing.copy()
    onset[1:] &= ~standing[:-1] | first[1:]
    begin = np.flatnonzero(first)
    if begin.size == 0:
        return np.zeros(0, dtype=np.int64)
    return np.add.reduceat(onset.astype(np.int64), begin)


def _all_of_last(flags: BoolArray, width: int) -> BoolArray:
    # True where this row and the width - 1 before it are; rows with fewer before them are not.
    result = flags.copy()
    have = 1
    while have < width:
        step = min(have, width - have)
        wider = np.zeros_like(result)
        np.logical_and(result[step:], result[:-step], out=wider[step:])
        result, have = wider, have + step
    return result


def _columns(over: npt.ArrayLike, starts: npt.ArrayLike) -> tuple[BoolArray, BoolArray]:
    exceeds, first = np.asarray(over), np.asarray(starts)
    for flags, name in ((exceeds, "over"), (first, "starts")):
        if flags.dtype != np.bool_ or flags.ndim != 1:
            raise StatsError(f"{name} must be a column of true and false")
    _checks.same_length(exceeds.size, first.size, "starts")
    if first.size and not first[0]:
        raise StatsError("the first row must start a sequence")
    return exceeds, first
