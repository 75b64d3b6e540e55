"""One detector under the contract: its alarms by the N rule, every check, and where each sequence ended."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.rule import Floats, Mask
from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.anomaly.batch import ATTACKED, LEFT_OUT, NORMAL, ScoreTable
from adjudge.protocols.anomaly.checks import Check, merged
from adjudge.protocols.anomaly.config import AnomalyConfig
from adjudge.protocols.anomaly.contract import Attacks, Calibration, calibrate, check_consecutive, score_checks
from adjudge.protocols.anomaly.rules import TITLES
from adjudge.protocols.anomaly.words import TEST
from adjudge.stats.detection import alarm_events, first_alarms, runs

Ints = NDArray[np.int64]


class Windows(NamedTuple):
    """Every stretch of attacked rows: its sequence, whether it was detected, and how long that took.

    The latency of a miss is the length of the stretch, where it is censored.
    """

    sequence: NDArray[np.intp]
    detected: Mask
    latency_ms: Floats


@dataclass(frozen=True)
class Decisions:
    """What a detector did on each sequence, row counts at the threshold first; `stretches` are all those of attacked rows.

    `detected` asks for every stretch of the sequence, `latency_ms` is that of its slowest; NaN when clean.
    """

    tp: Ints
    fp: Ints
    fn: Ints
    tn: Ints
    attacked: Mask
    detected: Mask
    latency_ms: Floats
    windows: Ints
    windows_detected: Ints
    events: Ints
    true_events: Ints
    hours: Floats
    stretches: Windows

    def take(self, places: NDArray[np.intp]) -> Decisions:
        """Some of the sequences, numbered anew."""
        number = np.full(self.tp.size, -1, dtype=np.intp)
        number[places] = np.arange(places.size)
        sequence, detected, latency_ms = self.stretches
        chosen = number[sequence] >= 0
        parts = {item.name: getattr(self, item.name)[places] for item in fields(self) if item.name != "stretches"}
        return Decisions(**parts, stretches=Windows(number[sequence[chosen]], detected[chosen], latency_ms[chosen]))


def decide(table: ScoreTable, threshold: float | None, consecutive: int) -> Decisions:
    """Apply a frozen threshold, strictly exceeded, and the N rule, which never crosses a sequence's start."""
    n = len(table.sequences)
    begin, end = table.edges[:-1], table.edges[1:]
    over = np.zeros(table.score.size, dtype=bool) if threshold is None else table.score > threshold
    starts = np.zeros(over.size, dtype=bool)
    starts[begin] = True
    code = np.repeat(np.arange(n), np.diff(table.edges))
    cells = code * 6 + 2 * table.label + runs(over, starts, consecutive)
    counts = np.bincount(cells, minlength=6 * n).reshape(n, 3, 2)
    # A stretch of rows of one kind is a sequence of its own for the N rule: a run counts where it begins.
    starts[1:] |= table.label[1:] != table.label[:-1]
    segments = np.flatnonzero(starts)
    kind, owner = table.label[segments], code[segments]
    last = np.append(segments[1:], over.size) - 1
    first = first_alarms(over, starts, consecutive)
    raised = alarm_events(over, starts, consecutive)
    window = np.flatnonzero(kind == ATTACKED)
    hit = first[window] >= 0
    reached = np.where(hit, segments[window] + first[window], last[window])
    stretches = Windows(owner[window], hit, (table.time[reached] - table.time[segments[window]]) * 1000.0)
    windows, detected = (np.bincount(stretches.sequence[mask], minlength=n) for mask in (slice(None), hit))
    latency = np.full(n, np.nan)
    np.fmax.at(latency, stretches.sequence, stretches.latency_ms)
    length = table.time[end - 1] - table.time[begin]
    step = np.divide(length, end - begin - 1, out=np.zeros(n), where=end - begin > 1)
    return Decisions(
        tp=counts[:, ATTACKED, 1],
        fp=counts[:, NORMAL, 1],
        fn=counts[:, ATTACKED, 0],
        tn=counts[:, NORMAL, 0],
        attacked=windows > 0,
        detected=(windows > 0) & (windows == detected),
        latency_ms=latency,
        windows=windows,
        windows_detected=detected,
        events=_per_sequence(owner, np.where(kind == LEFT_OUT, 0, raised), n),
        true_events=_per_sequence(owner, np.where(kind == ATTACKED, raised, 0), n),
        hours=(length + step) / 3600.0,
        stretches=stretches,
    )


def alarm_rows(score: Floats, threshold: float | None, consecutive: int) -> Mask:
    """The rows of one sequence that are under alarm."""
    over = np.zeros(score.size, dtype=bool) if threshold is None else score > threshold
    return runs(over, np.arange(score.size) == 0, consecutive)


def _per_sequence(owner: NDArray[np.intp], counts: Ints, n: int) -> Ints:
    return np.bincount(owner, weights=counts, minlength=n).astype(np.int64)


@dataclass(frozen=True)
class Scoring:
    """One detector's scores of all sequences, also by fold where asked, the checks on the way, and what the run keeps."""

    name: str
    table: ScoreTable
    folds: list[tuple[str, ScoreTable]]
    recorded: list[Check]
    record: dict[str, Any]


@dataclass(frozen=True)
class Judgement(Scoring):
    """What was found of one detector. `recorded` was found while it ran; `checks` is every rule of the contract."""

    checks: dict[str, Check]
    calibration: Calibration
    decisions: Decisions
    n_consecutive: int
    test: NDArray[np.intp]

    @classmethod
    def of(cls, scoring: Scoring, settings: AnomalyConfig, attacks: Attacks) -> Judgement:
        """Judge the scores under the configuration and, where there is a catalog, its attacks."""
        table, recorded = scoring.table, scoring.recorded
        broken = bool(np.isnan(table.score).any())
        calibration = calibrate(table, settings.target_fpr, settings.threshold, usable=not broken)
        sound = Check("detector.scores")
        if broken and not any(check.code == sound.code and check.leak for check in recorded):
            sound.fail("some scores are no number")
        by_code = merged([*recorded, *score_checks(table, calibration, settings, attacks), sound])
        checks = {code: by_code.get(code) or Check.unknown(code, "not checked") for code in TITLES}
        n = check_consecutive(settings.n_consecutive)[1]
        decisions = decide(table, calibration.threshold, n)
        test = np.array(table.of_split(TEST), dtype=np.intp)
        return cls(
            **vars(scoring), checks=checks, calibration=calibration, decisions=decisions, n_consecutive=n, test=test
        )

    @property
    def broken(self) -> bool:
        """Whether the detector gave no sound scores."""
        return self.checks["detector.scores"].leak

    @property
    def violations(self) -> list[Check]:
        """The rules that the detector or its pipeline violated."""
        return [check for check in self.checks.values() if check.leak]

    def bucket_names(self) -> list[str]:
        """Where each sequence of test ended: attacked and detected, or clean and quiet, has passed."""
        if self.broken:
            return ["errored"] * self.test.size
        part = self.decisions.take(self.test)
        good = np.where(part.attacked, part.detected, part.events == 0)
        return ["passed" if each else "failed" for each in good]

    def verdicts(self) -> list[str]:
        """The verdict on each sequence of test."""
        if self.broken or self.violations:
            return ["errored" if self.broken else "invalid"] * self.test.size
        part = self.decisions.take(self.test)
        attacked = np.where(part.detected, "detected", np.where(part.windows_detected > 0, "partly_detected", "missed"))
        clean = np.where(part.events > 0, "false_alarm", "quiet")
        return [str(verdict) for verdict in np.where(part.attacked, attacked, clean)]

    def buckets(self) -> dict[str, int]:
        """How many sequences of test ended where."""
        names = self.bucket_names()
        return {bucket: names.count(bucket) for bucket in BUCKETS} | {"n": len(names)}
