"""The harness: holds the data, injects attacks into copies of test, and hands a detector only what it may see."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.errors import ConfigError, InputError
from adjudge.protocols.anomaly.attacks import inject
from adjudge.protocols.anomaly.catalog import Catalog
from adjudge.protocols.anomaly.detectors import Detector, detector
from adjudge.protocols.anomaly.flights import Columns, Flight, Floats, read_flights
from adjudge.protocols.anomaly.leakage import (
    Check,
    check_allowed,
    check_banned,
    check_circular,
    check_covers,
    check_disjoint,
    feature_names,
)
from adjudge.protocols.anomaly.splits import Splits
from adjudge.protocols.anomaly.table import ScoreTable
from adjudge.protocols.anomaly.table import Sequence as Item
from adjudge.protocols.anomaly.words import TEST, TRAIN, VAL

if TYPE_CHECKING:
    from adjudge.protocols.anomaly.plan import AnomalyConfig


@dataclass(frozen=True)
class Scored:
    """Scores of all sequences, the checks made on the way, and what the run keeps of them."""

    table: ScoreTable
    checks: list[Check]
    record: dict[str, Any]


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


def score_flights(settings: AnomalyConfig, splits: Splits, catalog: Catalog | None) -> Scored:
    """Fit on clean train, score clean validation, clean test and every attack on test."""
    columns = Columns(settings.flight_column, settings.time_column, settings.label_column, settings.target_column)
    flights = read_flights(Path(settings.data or ""), columns)
    features = settings.features or feature_names(flights, columns)
    _check_features(flights, features)
    checks = [
        check_disjoint(splits, flights, columns),
        check_covers(splits, [flight.id for flight in flights]),
        check_banned(features),
        check_allowed(features, settings.sources, imu_only=settings.imu_only),
        check_circular(flights, features, columns, settings.correlation_threshold),
    ]
    by_id = {flight.id: flight for flight in flights}
    parts = {
        split: [by_id[name] for name in dict.fromkeys(splits.of(split)) if name in by_id]
        for split in (TRAIN, VAL, TEST)
    }
    for split, members in parts.items():
        if not members:
            raise InputError(f"no flight of {split} is in the data", file=settings.data)
    before = {flight.id: flight.digest() for split in (TRAIN, VAL) for flight in parts[split]}
    normal = [_normal(flight, columns.label) for flight in parts[TRAIN]]
    scaler = Scaler.of(np.concatenate([flight.matrix(features) for flight in normal]))
    made = detector(settings.detector or "", settings.detector_options, settings.seed)
    raw = bool(getattr(made, "raw", False))

    def rows(flight: Flight) -> Floats:
        matrix = flight.matrix(features)
        return matrix.copy() if raw else scaler.transform(matrix)

    if hasattr(made, "prepare"):
        made.prepare(features, float(np.median(np.diff(parts[TRAIN][0].time))))
    name = settings.detector or ""
    try:
        made.fit([rows(flight) for flight in normal], [rows(flight) for flight in parts[VAL]])
    except ConfigError:
        raise
    except Exception as error:  # a user's class may raise anything
        raise ConfigError(f"detector {name} failed in fit: {type(error).__name__}: {error}") from error
    items: list[tuple[Item, Flight, Floats, Any]] = []
    injections = []
    for split in (VAL, TEST):
        for flight in parts[split]:
            label = flight.columns.get(columns.label, np.zeros(flight.n)) == 1
            items.append(
                (Item(flight.id, split, None, None, None), flight, score(made, rows(flight), flight.id, name), label)
            )
    for attack in catalog.attacks if catalog is not None else ():
        for flight in parts[TEST]:
            done = inject(flight, attack)
            item = Item(flight.id, TEST, attack.name, attack.magnitude, attack.seed)
            items.append((item, flight, score(made, rows(done.flight), item.id, name), done.label))
            injections.append({**done.record, "onset_range": list(attack.onset_range)})
    changed = [key for key, value in before.items() if by_id[key].digest() != value]
    scaled = Check("scaler.train_normal_only", observed=float(scaler.rows))
    for key in changed:
        scaled.fail(f"rows of flight {key} were changed while the detector ran")
    items.sort(key=lambda entry: entry[0].key())
    table = ScoreTable(
        [item for item, *_ in items],
        np.concatenate([[0], np.cumsum([flight.n for _, flight, *_ in items])]),
        np.concatenate([flight.time for _, flight, *_ in items]),
        np.concatenate([values for _, _, values, _ in items]),
        np.concatenate([label for *_, label in items]),
        [],
    )
    record = {
        "features": features,
        "scaler": {"rows": scaler.rows, "digest": scaler.digest, "used": not raw},
        "clean_digests": before,
        "injections": injections,
    }
    return Scored(table, [*checks, scaled], record)


def score(made: Detector, rows: Floats, flight: str, name: str) -> Floats:
    """The scores of one flight; a wrong shape, a NaN or a crash is an error that names the flight."""
    try:
        values = np.asarray(made.score(rows), dtype=np.float64)
    except Exception as error:  # a user's class may raise anything
        raise ConfigError(f"detector {name} failed on flight {flight}: {type(error).__name__}: {error}") from error
    if values.shape != (len(rows),):
        raise ConfigError(f"detector {name} gave shape {values.shape} for flight {flight}, expected ({len(rows)},)")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ConfigError(
            f"detector {name} gave {bad.size} scores that are no number for flight {flight}, first row {bad[0] + 1}"
        )
    return values


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
