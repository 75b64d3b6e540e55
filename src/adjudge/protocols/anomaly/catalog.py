"""attacks/catalog.json: which attacks are injected, with which parameters, when, and with which seeds."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from adjudge.errors import ConfigError
from adjudge.readers.settings import json_of

_BIAS = ("position_bias_m", "velocity_bias_mps", "acceleration_bias_mps2", "gyro_bias_radps", "direction")
_DRIFT = ("position_drift_rate_mps", "velocity_drift_rate_mps2", "max_drift_duration_s")
PARAMETERS: dict[str, tuple[str, ...]] = {
    "bias": _BIAS,
    "step": _BIAS,
    "drift": _DRIFT,
    "ramp": _DRIFT,
    "noise": ("position_noise_std_m", "velocity_noise_std_mps", "acceleration_noise_std_mps2"),
    "coordinated": ("position_bias_m", "velocity_bias_mps", "acceleration_bias_mps2", "correlation_factor"),
    "intermittent": ("position_bias_m", "on_duration_s", "off_duration_s", "n_cycles"),
    "replay": ("replay_duration_s", "delay_s"),
    "ar1_drift": ("ar_coefficient", "innovation_std", "channels"),
}
_MAGNITUDES: dict[str, tuple[str, ...]] = {
    "drift": _DRIFT[:2],
    "ramp": _DRIFT[:2],
    "replay": ("delay_s", "replay_duration_s"),
    "ar1_drift": ("innovation_std",),
}
_NEEDED = {
    "intermittent": ("position_bias_m", "on_duration_s", "off_duration_s"),
    "replay": ("replay_duration_s",),
    "ar1_drift": ("ar_coefficient", "innovation_std"),
}
_NOT_NEGATIVE = frozenset(
    name for names in PARAMETERS.values() for name in names if name.endswith(("_s", "_std_m", "_std_mps", "_std_mps2"))
) | {"innovation_std"}
_KEYS = frozenset(
    {"type", "parameters", "injection_time", "duration", "seed", "seeds", "onset", "onset_range", "onset_fraction"}
)
_UNREAD = frozenset({"description", "comment", "notes"})
_RANDOM = frozenset({"random", "random_uniform", "uniform"})
_DRAWING = frozenset({"noise", "coordinated", "ar1_drift"})
"""Attacks that draw random numbers beside their onset."""
MANY = 500
"""Attacks from which a run says beforehand how many there are."""
DEFAULT_RANGE = (0.3, 0.7)
EXAMPLE: dict[str, Any] = {
    "bias": {
        "parameters": {"position_bias_m": [1.0, 2.0, 5.0, 10.0]},
        "injection_time": "random",
        "duration": 15.0,
        "seed": 1,
    },
    "drift": {
        "parameters": {"position_drift_rate_mps": [0.2, 0.5, 1.0], "max_drift_duration_s": 20.0},
        "onset_range": [0.3, 0.5],
        "duration": None,
        "seeds": [2],
    },
    "noise": {"parameters": {"position_noise_std_m": 3.0}, "onset_fraction": 0.4, "duration": 15.0, "seed": 3},
}


@dataclass(frozen=True)
class Attack:
    """One attack with one value for every parameter and one seed; the onset lies in a range of the flight."""

    name: str
    type: str
    parameters: Mapping[str, Any]
    seed: int | None
    """None where the catalog records none; numbers are then drawn as with seed 0."""
    onset_range: tuple[float, float] = DEFAULT_RANGE
    onset_s: float | None = None
    duration_s: float | None = None

    @property
    def sized_by(self) -> str | None:
        """The parameter that is the attack's size: the first that has a number."""
        names = _MAGNITUDES.get(self.type, PARAMETERS[self.type])
        return next((name for name in names if isinstance(self.parameters.get(name), int | float)), None)

    @property
    def random(self) -> bool:
        """Whether an injection depends on random numbers."""
        low, high = self.onset_range
        drawn = self.onset_s is None and low < high
        return drawn or self.type in _DRAWING or self.parameters.get("direction") == "random"

    @property
    def magnitude(self) -> float | None:
        """The size of the attack."""
        return None if self.sized_by is None else float(self.parameters[self.sized_by])

    def content(self) -> dict[str, Any]:
        """Plain data: everything that an injection depends on beside the flight."""
        return {
            "attack": self.name,
            "type": self.type,
            "parameters": dict(self.parameters),
            "magnitude": self.magnitude,
            "seed": self.seed,
            "onset_range": list(self.onset_range),
            "onset_s": self.onset_s,
            "duration_s": self.duration_s,
        }


@dataclass(frozen=True)
class Catalog:
    """The catalog as given, and every attack that its lists and seeds unfold to."""

    content: dict[str, Any]
    attacks: tuple[Attack, ...] = field(default=())
    notes: tuple[str, ...] = ()


def read_catalog(path: Path) -> Catalog:
    """A catalog from a file."""
    return parse_catalog(json_of(path), str(path))


def parse_catalog(data: Any, where: str = "catalog") -> Catalog:
    """A catalog from decoded JSON, short or long form; an unknown attack or parameter is an error that says which."""
    if not isinstance(data, dict) or not data:
        raise ConfigError(f'{where}: expected an object of attacks, such as {{"bias": {{"parameters": …}}}}')
    entries: Any = data
    beside: dict[str, Any] = {}
    if "attacks" in data and "attacks" not in PARAMETERS:
        entries = data["attacks"]
        beside = {key: value for key, value in data.items() if key != "attacks"}
    if isinstance(entries, list) and all(isinstance(entry, dict) and "name" in entry for entry in entries):
        entries = {str(entry["name"]): {key: entry[key] for key in entry if key != "name"} for entry in entries}
    if not isinstance(entries, dict) or not entries:
        raise ConfigError(f'{where}: `attacks` holds no attack; expected such as {{"bias": {{"parameters": …}}}}')
    attacks: list[Attack] = []
    for name, entry in entries.items():
        attacks += _unfold(name, entry, f"{where}: {name}", beside.get("seed"))
    notes = [f"the catalog unfolds to {len(attacks):,} attacks on each test flight"] if len(attacks) >= MANY else []
    unread = sorted(key for key in beside if key != "seed")
    notes += [f"the catalog's {', '.join(unread)} describe it and change no attack"] if unread else []
    return Catalog(data, tuple(attacks), tuple(notes))


def _unfold(name: str, entry: Any, where: str, seed_of_all: Any) -> list[Attack]:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: expected an object with `parameters`, found {type(entry).__name__}")
    kind = entry.get("type", name)
    if not isinstance(kind, str) or kind not in PARAMETERS:
        close = difflib.get_close_matches(str(kind), PARAMETERS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"{where}: there is no attack {kind!r} (known: {', '.join(PARAMETERS)}).{hint}")
    parameters = entry.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise ConfigError(f"{where}: parameters is {parameters!r}, expected an object")
    parameters = dict(parameters)
    for key in entry:
        if key in PARAMETERS[kind]:
            parameters[key] = entry[key]
        elif key not in _KEYS | _UNREAD and not key.startswith("_"):
            raise ConfigError(f"{where}: unknown key {key!r} (known: {', '.join(sorted(_KEYS))} and the parameters)")
    for key in parameters:
        if key not in PARAMETERS[kind]:
            raise ConfigError(f"{where}: unknown parameter {key!r} (known: {', '.join(PARAMETERS[kind])})")
    for key in _NEEDED.get(kind, ()):
        if key not in parameters:
            raise ConfigError(f"{where}: parameter {key!r} is missing")
    onset_range, onset_s = _onset(entry, where)
    duration = entry.get("duration")
    if duration in ("end", "to_end"):
        duration = None
    if duration is not None and (not isinstance(duration, int | float) or duration <= 0):
        raise ConfigError(f"{where}: duration is {duration!r}, expected seconds above 0 or null for the end")
    duration_s = None if duration is None else float(duration)
    swept = {key: _values(key, value, where) for key, value in parameters.items()}
    seeds = _seeds(entry, where, seed_of_all)
    attacks = [
        Attack(name, kind, dict(zip(swept, values, strict=True)), seed, onset_range, onset_s, duration_s)
        for values in product(*swept.values())
        for seed in seeds
    ]
    if any(attack.magnitude is None for attack in attacks):
        known = ", ".join(PARAMETERS[kind])
        raise ConfigError(f"{where}: no parameter gives the attack a size; set one of {known}")
    return attacks


def _values(key: str, value: Any, where: str) -> list[Any]:
    """The values a parameter is swept over; a direction of three numbers is one value."""
    values = value if isinstance(value, list) and not (key == "direction" and _is_vector(value)) else [value]
    if not values:
        raise ConfigError(f"{where}: {key} is an empty list")
    good, expected = _EXPECTED.get(key, (_is_number, "a number"))
    for item in values:
        if not good(item):
            raise ConfigError(f"{where}: {key} is {item!r}, expected {expected}")
    return values


def _onset(entry: Mapping[str, Any], where: str) -> tuple[tuple[float, float], float | None]:
    onset = entry.get("onset")
    word = onset if isinstance(onset, str) else None
    present = [key for key in ("onset", "onset_range", "onset_fraction") if entry.get(key) is not None]
    places = [key for key in present if key != "onset" or word is None]
    if len(places) > 1:
        raise ConfigError(f"{where}: give one of {' and '.join(places)}")
    mode = word or entry.get("injection_time", "fixed" if places == ["onset_fraction"] else "random")
    if mode not in (*_RANDOM, "fixed"):
        key = "onset" if word else "injection_time"
        raise ConfigError(f"{where}: {key} is {mode!r}, expected {'seconds from 0, ' if word else ''}random or fixed")
    if onset is not None and word is None:
        if not _is_number(onset) or onset < 0:
            raise ConfigError(f"{where}: onset is {onset!r}, expected seconds from 0, random or fixed")
        return DEFAULT_RANGE, float(onset)
    ends = entry.get("onset_range") or DEFAULT_RANGE
    if not isinstance(ends, list | tuple) or len(ends) != 2 or not all(map(_is_number, ends)):
        raise ConfigError(f"{where}: onset_range is {ends!r}, expected two fractions of the flight from 0 below 1")
    low, high = ends
    if mode == "fixed":
        low = high = entry.get("onset_fraction", 0.5 if not entry.get("onset_range") else (low + high) / 2)
    elif entry.get("onset_fraction") is not None:
        raise ConfigError(f"{where}: onset_fraction is one place, and the injection is {mode}; give onset_range")
    if not (_is_number(low) and _is_number(high) and 0 <= low <= high < 1):
        expected = "expected fractions of the flight from 0 below 1"
        raise ConfigError(f"{where}: the onset lies in [{low}, {high}], {expected}")
    return (float(low), float(high)), None


def _seeds(entry: Mapping[str, Any], where: str, seed_of_all: Any) -> Sequence[int | None]:
    if "seed" in entry and "seeds" in entry:
        raise ConfigError(f"{where}: give seed or seeds")
    seeds = entry.get("seeds", [entry.get("seed", seed_of_all)])
    if seeds == [None]:
        return [None]
    if not (isinstance(seeds, list) and seeds and all(isinstance(seed, int) and 0 <= seed < 2**63 for seed in seeds)):
        raise ConfigError(f"{where}: seeds are {seeds!r}, expected whole numbers from 0 and below 2**63")
    return seeds


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_number, value)) and any(value)


_CORRELATION = (lambda value: _is_number(value) and abs(value) <= 1, "a number from -1 to 1")
_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(_NOT_NEGATIVE, (lambda value: _is_number(value) and value >= 0, "a number from 0")),
    **dict.fromkeys(("correlation_factor", "ar_coefficient"), _CORRELATION),
    "direction": (
        lambda value: value in ("x", "y", "z", "random") or _is_vector(value),
        "x, y, z, random or three numbers",
    ),
    "channels": (lambda value: value in ("position", "velocity", "both"), "position, velocity or both"),
    "n_cycles": (lambda value: isinstance(value, int) and value >= 1, "a whole number from 1"),
}
"""What the value of a parameter must be; a number where nothing is said."""
