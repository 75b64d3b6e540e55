"""The harness: holds the data, injects attacks into copies of test, and hands a detector only what it may see."""

from __future__ import annotations

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
from adjudge.protocols.anomaly.detectors import detector, fingerprint
from adjudge.protocols.anomaly.folds import folds_of
from adjudge.protocols.anomaly.judge import Scoring
from adjudge.protocols.anomaly.leakage import column_checks, data_record, feature_names, split_checks
from adjudge.protocols.anomaly.rows import SPLITS, Flight, Splits, read_flights
from adjudge.protocols.anomaly.trial import Failed, Scaler, Trial, normal_rows, probe
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
