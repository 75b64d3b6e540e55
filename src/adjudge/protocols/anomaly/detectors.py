"""Detectors behind one small interface: `fit(X_train, X_val=None)` on clean sequences, `score(X)` one flight at a time.

A detector gets copies of the rows it may see, never labels. It may have `prepare(features, dt)`, called first, and
`raw = True` when it wants unscaled rows. A class that takes `seed` or `random_state` gets the run's seed. Scores follow
from what `fit` saw and the rows of the flight alone: the same rows get the same scores whenever they are asked for.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from adjudge.errors import ConfigError
from adjudge.protocols.anomaly.attacks import ACCELERATION, POSITION, VELOCITY
from adjudge.protocols.anomaly.flights import Floats
from adjudge.stats.resampling import generator

_MOST_ROWS = 50_000


class Detector(Protocol):
    """What the harness calls."""

    def fit(self, X_train: Sequence[Floats], X_val: Sequence[Floats] | None = None) -> Any:
        """Learn from clean sequences; validation is for early stopping only."""

    def score(self, X: Floats) -> Floats:
        """One score a row, higher for more anomalous."""


class RandomDetector:
    """Scores that know nothing: the floor under every other detector. The same rows always get the same scores."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def fit(self, X_train: Sequence[Floats], X_val: Sequence[Floats] | None = None) -> None:
        """Learn nothing."""

    def score(self, X: Floats) -> Floats:
        """Uniform numbers."""
        rows = hashlib.sha256(np.ascontiguousarray(X).tobytes()).hexdigest()
        return generator(self._seed, f"random detector/{rows}").random(len(X))


class ResidualDetector:
    """Does the integrated IMU agree with the GPS? An observer runs on the IMU and follows the GPS slowly.

    Velocity follows at `velocity_gain`, position at `position_gain` a second; where the GPS is more than `gate` metres
    off, twenty times slower, so that an attack does not pull the observer along. Runs on means over tenths of a second.
    """

    raw = True

    def __init__(self, velocity_gain: float = 1.0, position_gain: float = 0.1, gate: float = 1.0) -> None:
        self.velocity_gain, self.position_gain, self.gate = velocity_gain, position_gain, gate
        self._rest, self._spread = np.zeros(3), np.ones(2)
        self._places: tuple[list[int], ...] = ()
        self._dt, self._stride = 0.01, 10

    def prepare(self, features: Sequence[str], dt: float) -> None:
        """Find the GPS and IMU columns."""
        missing = [name for name in (*POSITION, *VELOCITY, *ACCELERATION) if name not in features]
        if missing:
            raise ConfigError(f"the residual detector needs {', '.join(missing)} among the features")
        self._places = tuple(
            [list(features).index(name) for name in names] for names in (POSITION, VELOCITY, ACCELERATION)
        )
        self._dt, self._stride = dt, max(1, round(0.1 / dt))

    def fit(self, X_train: Sequence[Floats], X_val: Sequence[Floats] | None = None) -> None:
        """Learn what the IMU reads at rest over whole flights, and how far GPS and IMU are apart when all is well."""
        del X_val
        gains = []
        for rows in X_train:
            moved = rows[-1, self._places[1]] - rows[0, self._places[1]]
            gains.append(rows[:, self._places[2]].mean(axis=0) - moved / (self._dt * max(1, len(rows) - 1)))
        self._rest = np.mean(gains, axis=0)
        far = np.concatenate([self._residuals(rows) for rows in X_train])
        self._spread = np.sqrt((far**2).mean(axis=0)) + 1e-9

    def score(self, X: Floats) -> Floats:
        """The distance between GPS and observer in units of what is usual."""
        distance: Floats = np.sqrt(((self._residuals(X) / self._spread) ** 2).sum(axis=1))
        # A row has the score of the last whole stretch, so that no score looks ahead.
        place = np.maximum((np.arange(len(X)) + 1) // self._stride - 1, 0)
        return distance[np.minimum(place, len(distance) - 1)]

    def _residuals(self, rows: Floats) -> Floats:
        whole = max(1, len(rows) // self._stride)
        step = self._dt * self._stride

        def means(places: list[int]) -> Any:
            cut = rows[: whole * self._stride, places] if len(rows) >= self._stride else rows[:, places]
            return cut.reshape(whole, -1, 3).mean(axis=1)

        gps, speed, force = (means(places) for places in self._places)
        force = force - self._rest
        p, v = gps[0].copy(), speed[0].copy()
        found = np.zeros((whole, 2))
        for k in range(1, whole):
            change = (force[k] + force[k - 1]) / 2 * step
            p = p + v * step + change * step / 2
            v = v + change
            off, off_speed = gps[k] - p, speed[k] - v
            size = float(np.sqrt(off @ off))
            found[k] = size, float(np.sqrt(off_speed @ off_speed))
            trust = 1.0 if size < self.gate else 0.05
            p = p + trust * self.position_gain * step * off
            v = v + trust * self.velocity_gain * step * off_speed
        return found


class _Library:
    """A PyOD or scikit-learn detector by its class."""

    def __init__(self, made: Any, *, pyod: bool, seed: int) -> None:
        self._made, self._pyod, self._seed = made, pyod, seed

    def fit(self, X_train: Sequence[Floats], X_val: Sequence[Floats] | None = None) -> None:
        """Fit on the rows of all train flights, a seeded choice of them where they are many."""
        del X_val
        rows = np.concatenate(X_train)
        if len(rows) > _MOST_ROWS:
            chosen = generator(self._seed, "train rows").choice(len(rows), _MOST_ROWS, replace=False)
            rows = rows[np.sort(chosen)]
        self._made.fit(rows)

    def score(self, X: Floats) -> Floats:
        """Its own score, turned so that higher is more anomalous."""
        if self._pyod:
            return np.asarray(self._made.decision_function(X), dtype=np.float64)
        return -np.asarray(self._made.score_samples(X), dtype=np.float64)


_OWN = {"random": RandomDetector, "residual": ResidualDetector}


def detector(name: str, options: dict[str, Any], seed: int) -> Detector:
    """A detector by name: random, residual, pyod:NAME, sklearn:NAME, or module:Class."""
    if name in _OWN:
        own: Detector = _make(_OWN[name], _seeded(_OWN[name], options, seed), name)
        return own
    library, _, kind = name.partition(":")
    if not kind:
        raise ConfigError(f"detector {name!r} is not random, residual, pyod:NAME, sklearn:NAME or module:Class")
    if library in {"pyod", "sklearn"}:
        found = _library_class(library, kind)
        if "random_state" in inspect.signature(found).parameters:
            options = {"random_state": seed % 2**32, **options}
        return _Library(_make(found, options, name), pyod=library == "pyod", seed=seed)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(library), kind)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"detector {name!r} cannot be loaded: {error}") from None
    made: Detector = _make(found, _seeded(found, options, seed), name)
    return made


def _seeded(found: Any, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """The options with the run's seed, where a class of the user takes one and none is given."""
    try:
        taken = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return options
    return {name: seed % 2**32 for name in ("seed", "random_state") if name in taken} | options


def _make(found: Any, options: dict[str, Any], name: str) -> Any:
    try:
        return found(**options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"detector {name!r} does not take these options: {error}") from None


def _library_class(library: str, kind: str) -> Any:
    modules = (
        [f"pyod.models.{kind.lower()}"]
        if library == "pyod"
        else ["sklearn.ensemble", "sklearn.neighbors", "sklearn.svm", "sklearn.covariance"]
    )
    for module in modules:
        try:
            found = getattr(importlib.import_module(module), kind, None)
        except ImportError:
            continue
        if found is not None:
            return found
    raise ConfigError(f"{library} has no detector {kind!r} (or is not installed: pip install 'adjudge[detect]')")
