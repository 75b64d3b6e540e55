"""One detector in trial: made, fitted on train, and asked for scores one flight at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adjudge.errors import ConfigError
from adjudge.evidence.rule import Floats
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
        scaled: Floats = (rows - self.mean) / self.spread
        return scaled


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
            text = f"{bad.size} scores that are no number for flight {name}, first row {bad[0] + 1}"
            raise Failed(f"{self.name} gave {text}")
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
