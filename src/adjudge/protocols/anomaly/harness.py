"""The harness: holds the data, injects attacks into copies of test, and hands a detector only what it may see."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import ConfigError, InputError
from adjudge.protocols.anomaly.attacks import inject
from adjudge.protocols.anomaly.catalog import Catalog
from adjudge.protocols.anomaly.detectors import Detector, detector
from adjudge.protocols.anomaly.flights import Columns, Flight, Floats, read_flights
from adjudge.protocols.anomaly.folds import folds_of
from adjudge.protocols.anomaly.leakage import (
    Check,
    check_allowed,
    check_banned,
    check_covers,
    check_disjoint,
    circular,
    correlations,
    feature_names,
)
from adjudge.protocols.anomaly.settings import AnomalyConfig, DetectorConfig
from adjudge.protocols.anomaly.splits import SPLITS, Splits
from adjudge.protocols.anomaly.table import ScoreTable
from adjudge.protocols.anomaly.table import Sequence as Item
from adjudge.protocols.anomaly.words import TEST, TRAIN, VAL

Parts = Mapping[str, Sequence[Flight]]
_SAME = 1e-9


@dataclass(frozen=True)
class Scored:
    """One detector's scores of all sequences, also by fold where asked, the checks on the way, and what the run keeps."""

    name: str
    table: ScoreTable
    folds: list[tuple[str, ScoreTable]]
    checks: list[Check]
    record: dict[str, Any]


class _Failed(Exception):
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
        return cls(
            rows.mean(axis=0), np.where(spread > 0, spread, 1.0), len(rows), hashlib.sha256(rows.tobytes()).hexdigest()
        )

    def transform(self, rows: Floats) -> Floats:
        """Rows in units of train's spread."""
        scaled: Floats = (rows - self.mean) / self.spread
        return scaled


def score_flights(settings: AnomalyConfig, splits: Splits, catalog: Catalog | None) -> list[Scored]:
    """For each detector: fit on clean train, score clean validation, clean test and every attack on test."""
    columns = settings.columns()
    flights = read_flights(Path(settings.data or ""), columns)
    features = settings.features or feature_names(flights, columns)
    _check_features(flights, features)
    by_id = {flight.id: flight for flight in flights}
    parts = {split: [by_id[name] for name in dict.fromkeys(splits.of(split)) if name in by_id] for split in SPLITS}
    for split, members in parts.items():
        if not members:
            raise InputError(f"no flight of {split} is in the data", file=settings.data)
    found, notes = correlations(flights, features, columns)
    record = {
        "features": features,
        "flights": {flight.id: flight.digest() for flight in flights},
        "correlations": found,
        "correlation_notes": notes,
    }
    checks = [
        check_disjoint(splits, flights, columns),
        check_covers(splits, list(by_id)),
        check_banned(features),
        check_allowed(features, settings.sources, imu_only=settings.imu_only),
        circular(found, notes, settings.correlation_threshold),
        _labelled_train(parts[TRAIN], columns.label),
    ]
    bench = _Bench(settings, columns, features, catalog, flights)
    # A detector that cannot be made is a wrong configuration, found before the first one runs.
    for chosen in settings.judged():
        detector(chosen.detector, chosen.options, settings.seed)
    return [bench.judge(chosen, parts, checks, record) for chosen in settings.judged()]


@dataclass(frozen=True)
class _Bench:
    settings: AnomalyConfig
    columns: Columns
    features: list[str]
    catalog: Catalog | None
    flights: list[Flight]

    def judge(self, chosen: DetectorConfig, parts: Parts, checks: Sequence[Check], record: dict[str, Any]) -> Scored:
        """One detector over the splits and, where asked, over every fold; a failure ends it and nobody else."""
        before = {flight.id: flight.digest() for split in (TRAIN, VAL) for flight in parts[split]}
        scaler = self._scaler(parts)
        sound = Check("detector.scores")
        state = Check("scaler.train_normal_only", observed=float(scaler.rows))
        seeds = Check("seeds.recorded")
        folds: list[tuple[str, ScoreTable]] = []
        raw = False
        try:
            trial = _Trial(self, chosen, parts, scaler)
            raw = trial.raw
            first = trial.score(parts[VAL][0], parts[VAL][0].id)
            table = self._table(parts, trial.score)
            if not self.settings.refit_check:
                seeds.notes.append("refit_check is off: whether the detector has seeds of its own is not known")
            again = _Trial(self, chosen, parts, scaler) if self.settings.refit_check else None
            self._hold(chosen, parts[VAL][0], first, trial, again, state, seeds)
            if self.settings.leave_one_flight_out:
                for name, fold in folds_of(self.flights, len(parts[VAL])):
                    folds.append((name, self._table(fold, _Trial(self, chosen, fold, self._scaler(fold)).score)))
        except _Failed as error:
            sound.fail(str(error))
            folds = []
            table = self._table(parts, lambda flight, _: np.full(flight.n, np.nan))
        kept = Check("attack.test_only")
        for key, value in before.items():
            if next(flight for flight in self.flights if flight.id == key).digest() != value:
                kept.fail(f"rows of flight {key} were changed while the detector ran")
        own = record | {
            "scaler": {"rows": scaler.rows, "digest": scaler.digest, "used": not raw},
            "clean_digests": before,
            "injections": [done for *_, done in self._sequences(parts) if done is not None],
        }
        return Scored(chosen.label, table, folds, [*checks, state, seeds, kept, sound], own)

    def _hold(
        self,
        chosen: DetectorConfig,
        flight: Flight,
        first: Floats,
        trial: _Trial,
        again: _Trial | None,
        state: Check,
        seeds: Check,
    ) -> None:
        """Scores must follow from the seeds of the configuration, and from what the detector saw in fit."""
        if again is not None and not _same(first, again.score(flight, flight.id)):
            seeds.fail(
                f"{chosen.label}, made and fitted again with the same seeds, scores flight {flight.id} differently: "
                "it draws numbers from a seed that is not recorded"
            )
        elif not _same(first, trial.score(flight, flight.id)):
            state.fail(
                f"{chosen.label} scores flight {flight.id} differently after it has seen test: "
                "it was fitted again there, not once on train"
            )

    def _scaler(self, parts: Parts) -> Scaler:
        return Scaler.of(
            np.concatenate([_normal(flight, self.columns.label).matrix(self.features) for flight in parts[TRAIN]])
        )

    def _sequences(self, parts: Parts) -> Iterator[tuple[Item, Flight, NDArray[np.bool_], dict[str, Any] | None]]:
        """Every sequence to score: what it is, its rows, which of them are attacked, and what was injected."""
        for split in (VAL, TEST):
            for flight in parts[split]:
                label = flight.columns.get(self.columns.label, np.zeros(flight.n)) == 1
                yield Item(flight.id, split, None, None, None, condition=flight.condition), flight, label, None
        seen: Counter[tuple[str, float | None, int]] = Counter()
        for attack in self.catalog.attacks if self.catalog is not None else ():
            key = (attack.name, attack.magnitude, attack.seed)
            for flight in parts[TEST]:
                done = inject(flight, attack)
                item = Item(flight.id, TEST, *key, seen[key], flight.condition)
                yield item, done.flight, done.label, {**done.record, "onset_range": list(attack.onset_range)}
            seen[key] += 1

    def _table(self, parts: Parts, score: Callable[[Flight, str], Floats]) -> ScoreTable:
        rows = [(item, flight.time, score(flight, item.id), label) for item, flight, label, _ in self._sequences(parts)]
        rows.sort(key=lambda entry: entry[0].key())
        return ScoreTable(
            [item for item, *_ in rows],
            np.concatenate([[0], np.cumsum([time.size for _, time, *_ in rows])]),
            np.concatenate([time for _, time, *_ in rows]),
            np.concatenate([values for _, _, values, _ in rows]),
            np.concatenate([label for *_, label in rows]),
            [],
        )


class _Trial:
    """A detector made and fitted on the train flights of some splits."""

    def __init__(self, bench: _Bench, chosen: DetectorConfig, parts: Parts, scaler: Scaler) -> None:
        self._name, self._features, self._scaler = chosen.label, bench.features, scaler
        self._made = detector(chosen.detector, chosen.options, bench.settings.seed)
        self.raw = bool(getattr(self._made, "raw", False))
        normal = [_normal(flight, bench.columns.label) for flight in parts[TRAIN]]
        try:
            prepare = getattr(self._made, "prepare", None)
            if prepare is not None:
                prepare(list(bench.features), float(np.median(np.diff(parts[TRAIN][0].time))))
            self._made.fit([self._rows(flight) for flight in normal], [self._rows(flight) for flight in parts[VAL]])
        except ConfigError:
            raise
        except Exception as error:  # a user's class may raise anything
            names = ", ".join(flight.id for flight in parts[TRAIN])
            raise _Failed(f"{self._name} failed in fit on {names}: {type(error).__name__}: {error}") from error

    def score(self, flight: Flight, name: str) -> Floats:
        """The scores of one sequence."""
        return score(self._made, self._rows(flight), name, self._name)

    def _rows(self, flight: Flight) -> Floats:
        matrix = flight.matrix(self._features)
        return matrix if self.raw else self._scaler.transform(matrix)


def score(made: Detector, rows: Floats, flight: str, name: str) -> Floats:
    """The scores of one flight; a wrong shape, a NaN or a crash is a failure that names the flight."""
    expected = len(rows)
    try:
        values = np.array(made.score(rows), dtype=np.float64)
    except Exception as error:  # a user's class may raise anything
        raise _Failed(f"{name} failed on flight {flight}: {type(error).__name__}: {error}") from error
    if values.shape != (expected,):
        raise _Failed(f"{name} gave shape {values.shape} for flight {flight}, expected ({expected},)")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise _Failed(f"{name} gave {bad.size} scores that are no number for flight {flight}, first row {bad[0] + 1}")
    return values


def _same(a: Floats, b: Floats) -> bool:
    """Equal but for the rounding of sums that threads add up in another order."""
    return bool(np.allclose(a, b, rtol=_SAME, atol=_SAME * float(np.abs(a).max(initial=0.0))))


def _labelled_train(flights: Sequence[Flight], label: str) -> Check:
    check = Check("attack.test_only")
    for flight in flights:
        rows = int((flight.columns[label] == 1).sum()) if label in flight.columns else 0
        if rows:
            check.fail(f"flight {flight.id} of train is attacked ({rows} rows labelled)")
    return check


def _normal(flight: Flight, label: str) -> Flight:
    if label not in flight.columns:
        return flight
    keep = flight.columns[label] != 1
    return Flight(flight.id, flight.time[keep], {name: values[keep] for name, values in flight.columns.items()})


def _check_features(flights: Sequence[Flight], features: Sequence[str]) -> None:
    if not features:
        raise InputError("the data has no feature columns")
    for name in features:
        if name not in flights[0].columns:
            raise ConfigError(f"feature {name!r} is not in the data (it has {', '.join(flights[0].columns)})")
    for flight in flights:
        for name in features:
            bad = np.flatnonzero(~np.isfinite(flight.columns[name]))
            if bad.size:
                raise InputError(
                    f"flight {flight.id}: {name} is no number at row {bad[0] + 1} ({bad.size} rows in all)"
                )
