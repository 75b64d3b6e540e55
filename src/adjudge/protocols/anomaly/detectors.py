"""Detectors behind one small interface: `fit(X_train, X_val=None)` on clean sequences, `score(X)` one flight at a time.

A detector gets copies of the rows it may see, never labels. It may have `prepare(features, dt)`, called first, and
`raw = True` when it wants unscaled rows. A class that takes `seed` or `random_state` gets the run's seed. Scores follow
from what `fit` saw and the rows of the flight alone: the same rows get the same scores whenever they are asked for, and
later rows do not change them. `causal = False` declares a detector that sees whole flights, `early_stopping = True` one
that stops its training by the validation flights.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.machinery
import inspect
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from adjudge.errors import ConfigError
from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.attacks import ACCELERATION, POSITION, VELOCITY
from adjudge.provenance.canonical import file_digest
from adjudge.stats.resampling import generator

_MOST_ROWS = 50_000
_TRANSDUCTIVE = frozenset({"ECOD", "COPOD"})
"""Detectors of PyOD that rank a row among all rows they are asked for at once."""


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
        """Uniform numbers that follow from the first row, so that none depends on later rows."""
        first = hashlib.sha256(np.ascontiguousarray(X[:1]).tobytes()).hexdigest()
        return generator(self._seed, f"random detector/{first}").random(len(X))


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
        residuals = np.zeros((whole, 2))
        for k in range(1, whole):
            change = (force[k] + force[k - 1]) / 2 * step
            p = p + v * step + change * step / 2
            v = v + change
            off, off_speed = gps[k] - p, speed[k] - v
            size = float(np.sqrt(off @ off))
            residuals[k] = size, float(np.sqrt(off_speed @ off_speed))
            trust = 1.0 if size < self.gate else 0.05
            p = p + trust * self.position_gain * step * off
            v = v + trust * self.velocity_gain * step * off_speed
        return residuals


class _Library:
    """A PyOD or scikit-learn detector by its class."""

    def __init__(self, estimator: Any, *, pyod: bool, seed: int) -> None:
        self._made, self._pyod, self._seed = estimator, pyod, seed
        self.causal = not (pyod and type(estimator).__name__ in _TRANSDUCTIVE)

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


def versions(modules: Iterable[str]) -> dict[str, str]:
    """The installed version of every package that gives one of these modules; the standard library gives none."""
    from importlib.metadata import packages_distributions, version

    packages = packages_distributions()
    names = {package for module in modules for package in packages.get(module, ())}
    return {name: version(name) for name in sorted(names)}


_OWN = {"random": RandomDetector, "residual": ResidualDetector}


def detector(name: str, options: dict[str, Any], seed: int) -> Detector:
    """A detector by name: random, residual, pyod:NAME, sklearn:NAME, or module:Class."""
    kind = _class_of(name)
    estimator = _make(kind, _seeded(kind, options, seed), name)
    library = name.partition(":")[0]
    if library in {"pyod", "sklearn"}:
        return _Library(estimator, pyod=library == "pyod", seed=seed)
    checked: Detector = estimator
    return checked


def _class_of(name: str) -> Any:
    if name in _OWN:
        return _OWN[name]
    module, _, kind = name.partition(":")
    if not kind:
        raise ConfigError(f"detector {name!r} is not random, residual, pyod:NAME, sklearn:NAME or module:Class")
    if module in {"pyod", "sklearn"}:
        return _library_class(module, kind)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), kind)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"detector {name!r} cannot be loaded: {error}") from None


def code_of(names: Iterable[str]) -> dict[str, str]:
    """The detectors that are code of somebody's own, and the file that each would be imported from."""
    chosen = [name for name in names if name not in _OWN and name.partition(":")[0] not in {"pyod", "sklearn"}]
    return {name: _file_of(name.partition(":")[0].partition(".")[0]) for name in chosen}


def _file_of(module: str) -> str:
    """Where a module is, without importing it."""
    spec = importlib.machinery.PathFinder.find_spec(module, [str(Path.cwd()), *sys.path])
    return (spec and (spec.origin or ", ".join(spec.submodule_search_locations or ()))) or "no file that exists"


def fingerprint(name: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """What a detector is made of: its parameters, the digests of its source files, the versions of what they import."""
    kind = _class_of(name)
    sources: dict[str, str] = {}
    imported = {"numpy"}
    waiting = [Path(inspect.getsourcefile(kind) or "")]
    while waiting:
        path = waiting.pop()
        if not path.is_file() or path.name in sources:
            continue
        sources[path.name] = file_digest(path)
        names = _imported(path)
        beside = {item: path.with_name(f"{item}.py") for item in names}
        waiting += [other for other in beside.values() if other.is_file()]
        imported |= {item for item, other in beside.items() if not other.is_file()}
    return {
        "detector": name,
        "parameters": _seeded(kind, options, seed),
        "sources": dict(sorted(sources.items())),
        "packages": versions(imported),
    }


def _imported(path: Path) -> set[str]:
    """The top-level names that a source file imports."""
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:
        return set()
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    return {name.partition(".")[0] for name in names}


def _seeded(kind: Any, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """The options with the run's seed, where a class takes one and none is given."""
    try:
        accepted = inspect.signature(kind).parameters
    except (TypeError, ValueError):
        return options
    return {name: seed % 2**32 for name in ("seed", "random_state") if name in accepted} | options


def _make(kind: Any, options: dict[str, Any], name: str) -> Any:
    try:
        return kind(**options)
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
            detector_class = getattr(importlib.import_module(module), kind, None)
        except ImportError:
            continue
        if detector_class is not None:
            return detector_class
    raise ConfigError(f"{library} has no detector {kind!r} (or is not installed: pip install 'adjudge[detect]')")
