"""What a detector did on each sequence: alarms by the N rule, counts, latency with censoring."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.anomaly.flights import Floats
from adjudge.protocols.anomaly.table import ScoreTable
from adjudge.stats.sequences import alarm_events, first_alarms, runs

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Decisions:
    """Per sequence. `latency_ms` of a miss is the length of the attack, where it is censored; NaN when clean."""

    tp: Ints
    fp: Ints
    fn: Ints
    tn: Ints
    attacked: NDArray[np.bool_]
    detected: NDArray[np.bool_]
    latency_ms: Floats
    events: Ints
    true_events: Ints
    hours: Floats

    def take(self, places: NDArray[np.intp]) -> Decisions:
        """Some of the sequences."""
        return Decisions(*(getattr(self, item.name)[places] for item in fields(self)))


def decide(table: ScoreTable, threshold: float | None, consecutive: int) -> Decisions:
    """Apply a frozen threshold, strictly exceeded, and the N rule, which never crosses a sequence's start."""
    n = len(table.sequences)
    begin, end = table.edges[:-1], table.edges[1:]
    over = np.zeros(table.score.size, dtype=bool) if threshold is None else table.score > threshold
    starts = np.zeros(over.size, dtype=bool)
    starts[begin] = True
    standing = runs(over, starts, consecutive)
    code = np.repeat(np.arange(n), np.diff(table.edges))
    counts = np.bincount(code * 4 + 2 * table.label + standing, minlength=4 * n).reshape(n, 4)
    positives = np.logical_or.reduceat(table.label, begin)
    # The attack's window, from its first attacked row to its last, is a sequence of its own for the N rule.
    first, last = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    rows = np.flatnonzero(table.label)
    owner = code[rows]
    first[owner[::-1]] = rows[::-1]
    last[owner] = rows
    where = np.flatnonzero(positives)
    cut = starts.copy()
    cut[first[where]] = True
    after = last[where] + 1
    cut[after[after < over.size]] = True
    segments = np.flatnonzero(cut)
    alarms = first_alarms(over, cut, consecutive)
    raised = alarm_events(over, cut, consecutive)
    place = np.searchsorted(segments, first[where])
    latency = np.full(n, np.nan)
    detected = np.zeros(n, dtype=bool)
    hit = alarms[place] >= 0
    reached = np.where(hit, first[where] + alarms[place], last[where])
    latency[where] = (table.time[reached] - table.time[first[where]]) * 1000.0
    detected[where] = hit
    true_events = np.zeros(n, dtype=np.int64)
    true_events[where] = raised[place]
    events = np.bincount(code[segments], weights=raised, minlength=n).astype(np.int64)
    length = table.time[end - 1] - table.time[begin]
    step = np.divide(length, end - begin - 1, out=np.zeros(n), where=end - begin > 1)
    return Decisions(
        tp=counts[:, 3],
        fp=counts[:, 1],
        fn=counts[:, 2],
        tn=counts[:, 0],
        attacked=positives,
        detected=detected,
        latency_ms=latency,
        events=events,
        true_events=true_events,
        hours=(length + step) / 3600.0,
    )
