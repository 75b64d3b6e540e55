"""The harness: holds the data, injects attacks into copies of test, and hands a detector only what it may see.

A detector in trial is made, fitted on train, asked for scores one flight at a time, and probed: about seeds, state across
calls, what it learned from validation, and whether it looks ahead.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import ConfigError, InputError
from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.attacks import inject
from adjudge.protocols.anomaly.batch import ATTACKED, LEFT_OUT, Scored, ScoreTable
from adjudge.protocols.anomaly.batch import Sequence as Item
from adjudge.protocols.anomaly.catalog import Catalog
from adjudge.protocols.anomaly.checks import Check
from adjudge.protocols.anomaly.config import AnomalyConfig, DetectorConfig
from adjudge.protocols.anomaly.detectors import Detector, detector, fingerprint
from adjudge.protocols.anomaly.folds import folds_of
from adjudge.protocols.anomaly.judge import Scoring
from adjudge.protocols.anomaly.leakage import column_checks, data_record, feature_names, split_checks
from adjudge.protocols.anomaly.rows import SPLITS, Flight, Splits, read_flights
from adjudge.protocols.anomaly.words import TEST, TRAIN, VAL

Parts = Mapping[str, Sequence[Flight]]


def score_flights(settings: AnomalyConfig, splits: Splits, catalog: Catalog | None) -> list[Scoring]:
    """For each detector: fit on clean train, score clean validation, clean test and every attack on test."""
    read = read_flights(Path(settings.data or ""), settings)
    flights, label = read.flights, settings.label_column
    features = settings.features or feature_names(flights, settings)
    _check_cells(flights, features, settings)
    by_id = {flight.id: flight for flight in flights}
    parts = {split: [by_id[name] for name in dict.fromkeys(splits.of(split)) if name in by_id] for split in SPLITS}
    for split, members in parts.items():
        if not members:
            raise InputError(f"no flight of {split} is in the data", file=settings.data)
    if catalog is None and label not in flights[0].columns:
        raise ConfigError(f"there is nothing to detect: no catalog of attacks, and the data has no column {label!r}")
    notes = [*read.notes, *_kept_labels(parts[TEST], label, catalog)]
    record = data_record(flights, features, settings) | {"notes": notes}
    checks = [
        *split_checks(splits, record, list(by_id), settings, folds=settings.leave_one_flight_out),
        *column_checks(record, settings),
        _labelled_train(parts[TRAIN], label),
    ]
    bench = _Bench(settings, features, catalog, flights)
    # A detector that cannot be made is a wrong configuration, found before the first one runs.
    for chosen in settings.judged():
        detector(chosen.detector, chosen.options, settings.seed)
    return [bench.judge(chosen, parts, checks, record) for chosen in settings.judged()]


@dataclass(frozen=True)
class _Bench:
    settings: AnomalyConfig
    features: list[str]
    catalog: Catalog | None
    flights: list[Flight]

    def judge(self, chosen: DetectorConfig, parts: Parts, checks: Sequence[Check], record: dict[str, Any]) -> Scoring:
        """One detector over the splits and, where asked, over every fold; a failure ends it and nobody else."""
        before = {flight.id: flight.digest() for split in (TRAIN, VAL) for flight in parts[split]}
        scaler = self._scaler(parts)
        sound = Check("detector.scores")
        probes: list[Check] = []
        folds: list[tuple[str, ScoreTable]] = []
        trial = None
        try:
            trial = self._trial(chosen, parts, scaler)
            first = trial.score(parts[VAL][0], parts[VAL][0].id)
            table, injections = self._table(parts, trial.score)
            refit = partial(self._trial, chosen, parts, scaler)
            refits = (partial(refit, with_val=False), refit) if self.settings.refit_check else ()
            probes = probe(trial, first, (parts[VAL][0], parts[TEST][0]), refits)
            if self.settings.leave_one_flight_out:
                for name, fold in folds_of(self.flights, len(parts[VAL])):
                    fitted = self._trial(chosen, fold, self._scaler(fold))
                    folds.append((name, self._table(fold, fitted.score, fold=True)[0]))
        except Failed as error:
            sound.fail(str(error))
            folds = []
            table, injections = self._table(parts, lambda flight, _: np.full(flight.n, np.nan))
        kept = Check("attack.test_only")
        for key, value in before.items():
            if next(flight for flight in self.flights if flight.id == key).digest() != value:
                kept.fail(f"rows of flight {key} were changed while the detector ran")
        scaled = Check("scaler.train_normal_only", observed=float(scaler.rows))
        detector_record = record | {
            "detector": fingerprint(chosen.detector, chosen.options, self.settings.seed),
            "offline": trial is not None and not trial.causal,
            "scaler": {"rows": scaler.rows, "digest": scaler.digest, "used": trial is not None and not trial.raw},
            "clean_digests": before,
            "injections": injections,
        }
        return Scoring(chosen.label, table, folds, [*checks, scaled, *probes, kept, sound], detector_record)

    def _trial(self, chosen: DetectorConfig, parts: Parts, scaler: Scaler, *, with_val: bool = True) -> Trial:
        tried = detector(chosen.detector, chosen.options, self.settings.seed)
        train = [normal_rows(flight, self.settings.label_column) for flight in parts[TRAIN]]
        trial = Trial(tried, chosen.label, self.features, scaler)
        trial.causal &= chosen.causal
        return trial.fit(train, parts[VAL] if with_val else None)

    def _scaler(self, parts: Parts) -> Scaler:
        rows = [normal_rows(flight, self.settings.label_column).matrix(self.features) for flight in parts[TRAIN]]
        return Scaler.of(np.concatenate(rows))

    def _table(
        self, parts: Parts, score: Callable[[Flight, str], Floats], *, fold: bool = False
    ) -> tuple[ScoreTable, list[dict[str, Any]]]:
        """The scores of every sequence, and what was injected into them.

        Rows with a known fault are neither normal nor attacked in attacked copies, nor where a fold calibrates.
        """
        scored, injections = [], []
        for split in (VAL, TEST):
            mark = LEFT_OUT if fold and split == VAL else ATTACKED
            for flight in parts[split]:
                item = Item(flight.id, split, None, None, None, condition=flight.condition)
                label = np.where(_faulty(flight, self.settings.label_column), mark, 0).astype(np.int8)
                scored.append(Scored(item, flight.time, score(flight, item.id), label))
        seen: Counter[tuple[str, float | None, int | None]] = Counter()
        for attack in self.catalog.attacks if self.catalog is not None else ():
            key = (attack.name, attack.magnitude, attack.seed)
            for flight in parts[TEST]:
                done = inject(flight, attack)
                item = Item(flight.id, TEST, *key, seen[key], flight.condition)
                label = np.where(_faulty(flight, self.settings.label_column), LEFT_OUT, 0).astype(np.int8)
                label[done.label] = ATTACKED
                scored.append(Scored(item, flight.time, score(done.flight, item.id), label))
                injections.append({**done.record, "onset_range": list(attack.onset_range)})
            seen[key] += 1
        return ScoreTable.of(scored), injections


def _faulty(flight: Flight, label: str) -> NDArray[np.bool_]:
    return np.equal(flight.columns.get(label, np.zeros(flight.n)), 1)


def _labelled_train(flights: Sequence[Flight], label: str) -> Check:
    check = Check("attack.test_only")
    for flight in flights:
        rows = int(_faulty(flight, label).sum())
        if rows:
            check.fail(f"flight {flight.id} of train is attacked ({rows} rows labelled)")
    return check


def _kept_labels(flights: Sequence[Flight], label: str, catalog: Catalog | None) -> list[str]:
    """What is done with labels that test flights bring along, where attacks are injected into copies of them."""
    labelled = [count for flight in flights if (count := int(_faulty(flight, label).sum()))]
    if catalog is None or not labelled:
        return []
    judged = "judged in the flight itself (attack `labelled`), neither attacked nor normal in attacked copies"
    return [f"{sum(labelled)} rows of {len(labelled)} test flights are labelled in the data: {judged}"]


def _check_cells(flights: Sequence[Flight], features: Sequence[str], settings: AnomalyConfig) -> None:
    """Refuse features that are not there or have blank cells, and labels that are neither 0 nor 1."""
    if not features:
        raise InputError("the data has no feature columns", file=settings.data)
    for name in features:
        if name not in flights[0].columns:
            raise ConfigError(f"feature {name!r} is not in the data (it has {', '.join(flights[0].columns)})")
    for flight in flights:
        for name in features:
            bad = np.flatnonzero(~np.isfinite(flight.columns[name]))
            if bad.size:
                hint = "--fill forward repeats the value before." if bad[0] > 0 else "There is no value before it."
                text = f"flight {flight.id}: {name} is no number at row {bad[0] + 1} ({bad.size} rows in all)."
                raise InputError(text, file=settings.data, hint=hint)
        label = settings.label_column
        truth = flight.columns.get(label, np.zeros(1))
        wrong = np.flatnonzero((truth != 0) & (truth != 1))
        if wrong.size:
            text = f"flight {flight.id}: {label} is {truth[wrong[0]]:g} at row {wrong[0] + 1}, expected 0 or 1"
            raise InputError(text, file=settings.data)


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
        return [Check.unknown(check.code, "refit_check is off") for check in (seeds, train_only)]
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
