"""One detector in trial: made, fitted on train, asked for scores one flight at a time, and probed.

Probes are about seeds, state across calls, what it learned from validation, and whether it looks ahead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adjudge.errors import ConfigError
from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.checks import Check
from adjudge.protocols.anomaly.detectors import Detector
from adjudge.protocols.anomaly.rows import Flight


class Failed(Exception):
    """The detector crashed or gave no sound scores; the text names the flight."""


@dataclass(frozen=True)
class Scaler:
    """Mean and spread of the normal rows of train; `digest` is over the rows it saw."""

    mean: Floats
    spread: Floats
    rows: int
    digest: str

    @classmethod
    def of(cls, rows: Floats) -> Scaler:
        """Fitted once."""
        spread = rows.std(axis=0)
        digest = hashlib.sha256(rows.tobytes()).hexdigest()
        return cls(rows.mean(axis=0), np.where(spread > 0, spread, 1.0), len(rows), digest)

    def transform(self, rows: Floats) -> Floats:
        """Rows in units of train's spread."""
        return (rows - self.mean) / self.spread


class Trial:
    """A detector with the features and the scaler through which it sees flights."""

    def __init__(self, detector: Detector, name: str, features: Sequence[str], scaler: Scaler) -> None:
        self.name = name
        self._detector, self._features, self._scaler = detector, features, scaler
        self.raw = bool(getattr(detector, "raw", False))
        self.causal = bool(getattr(detector, "causal", True))
        self.early_stopping = bool(getattr(detector, "early_stopping", False))

    def fit(self, train: Sequence[Flight], val: Sequence[Flight] | None) -> Trial:
        """Prepare and fit; validation flights are for early stopping only."""
        try:
            prepare = getattr(self._detector, "prepare", None)
            if prepare is not None:
                prepare(list(self._features), float(np.median(np.diff(train[0].time))))
            shown = None if val is None else [self._rows(flight) for flight in val]
            self._detector.fit([self._rows(flight) for flight in train], shown)
        except ConfigError:
            raise
        except Exception as error:  # a user's class may raise anything
            names = ", ".join(flight.id for flight in train)
            raise Failed(f"{self.name} failed in fit on {names}: {type(error).__name__}: {error}") from error
        return self

    def score(self, flight: Flight, name: str, rows: int | None = None) -> Floats:
        """The scores of a flight or of its first `rows`; a wrong shape, a NaN or a crash is a failure that names it."""
        matrix = self._rows(flight)[:rows]
        try:
            values = np.array(self._detector.score(matrix), dtype=np.float64)
        except Exception as error:  # a user's class may raise anything
            raise Failed(f"{self.name} failed on flight {name}: {type(error).__name__}: {error}") from error
        if values.shape != (len(matrix),):
            raise Failed(f"{self.name} gave shape {values.shape} for flight {name}, expected ({len(matrix)},)")
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            where = f"for flight {name}, first row {bad[0] + 1}"
            raise Failed(f"{self.name} gave {bad.size} scores that are no number {where}")
        return values

    def _rows(self, flight: Flight) -> Floats:
        matrix = flight.matrix(self._features)
        return matrix if self.raw else self._scaler.transform(matrix)


def normal_rows(flight: Flight, label: str) -> Flight:
    """A flight without its labelled rows."""
    if label not in flight.columns:
        return flight
    keep = flight.columns[label] != 1
    return Flight(flight.id, flight.time[keep], {name: values[keep] for name, values in flight.columns.items()})


_SAME = 1e-9
_CUTS = (0.25, 0.5, 0.75)


def probe(trial: Trial, first: Floats, flights: Sequence[Flight], refits: Sequence[Callable[[], Trial]]) -> list[Check]:
    """What scores reveal: `first` are those of the first flight before any other was scored.

    `refits` make the detector again, fitted without validation flights and with them; without refits two checks are unknown.
    """
    flight = flights[0]
    checks = [*_learned(trial, first, flight, refits), _state(trial, first, flight), _causal(trial, flights)]
    # A detector whose scores change from call to call fails every later comparison for the same reason.
    told = next((place for place, check in enumerate(checks, start=1) if check.leak), len(checks))
    why = f"not told: {checks[told - 1].code} failed"
    return checks[:told] + [Check.unknown(later.code, why) for later in checks[told:]]


def _learned(trial: Trial, first: Floats, flight: Flight, refits: Sequence[Callable[[], Trial]]) -> list[Check]:
    seeds, train_only = Check("seeds.recorded"), Check("detector.train_only")
    if not refits:
        why = "refit_check is off"
        return [Check.unknown(seeds.code, why), Check.unknown(train_only.code, why)]
    without, again = refits
    alone = without().score(flight, flight.id)
    if _same(first, alone):
        return [seeds, train_only]
    if not _same(first, again().score(flight, flight.id)):
        again_made = f"{trial.name}, made and fitted again with the same seeds, scores flight {flight.id} differently"
        seeds.fail(f"{again_made}: it draws numbers from a seed that is not recorded")
        return [seeds, train_only]
    apart = f"fitted without the validation flights it scores {flight.id} differently, by up to {float(np.abs(first - alone).max(initial=0.0)):.3g}"
    if trial.early_stopping:
        train_only.notes.append(f"{trial.name} declares early stopping on validation; {apart}")
    else:
        declares = "(`early_stopping = True` declares early stopping)"
        train_only.fail(f"{trial.name} learns from validation: {apart} {declares}")
    return [seeds, train_only]


def _state(trial: Trial, first: Floats, flight: Flight) -> Check:
    check = Check("scaler.train_normal_only")
    if not _same(first, trial.score(flight, flight.id)):
        changed = f"{trial.name} scores flight {flight.id} differently after it has seen test"
        check.fail(f"{changed}: it was fitted again there, not once on train")
    return check


def _causal(trial: Trial, flights: Sequence[Flight]) -> Check:
    """Scores of the first rows of a flight must not change with the rows that follow."""
    check = Check("detector.causal")
    if not trial.causal:
        check.notes.append(f"{trial.name} declares that it sees whole flights (`causal = False`): it is judged offline")
        return check
    for flight in flights:
        whole = trial.score(flight, flight.id)
        for rows in sorted({*(int(cut * flight.n) for cut in _CUTS), flight.n - 1} - {0}):
            if not _same(whole[:rows], trial.score(flight, flight.id, rows)):
                check.fail(
                    f"{trial.name} scores the first {rows} rows of flight {flight.id} differently when the "
                    f"{flight.n - rows} rows after them are there: it looks ahead, or scales on the flight it scores "
                    "(`causal = False` declares it, to be judged offline)"
                )
                break
    return check


def _same(a: Floats, b: Floats) -> bool:
    """Equal but for the rounding of sums that threads add up in another order."""
    return bool(np.allclose(a, b, rtol=_SAME, atol=_SAME * float(np.abs(a).max(initial=0.0))))
