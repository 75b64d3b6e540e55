"""Attack injection: a pure function of a clean flight, an attack, its parameters and a seed.

`bias` and `step` add a constant offset from the onset on; `drift` and `ramp` an offset that grows and, after
max_drift_duration_s, stays. All random numbers of one injection come from the stream (seed, attack name, flight), not
from the parameters: a sweep over magnitudes repeats the same onset, direction and noise at another size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import InputError, OutputError
from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.catalog import Attack
from adjudge.protocols.anomaly.rows import Flight
from adjudge.stats.resampling import generator

Group = tuple[str, ...]
"""Columns that one parameter of an attack changes."""
POSITION, VELOCITY = ("gps_x", "gps_y", "gps_z"), ("gps_vx", "gps_vy", "gps_vz")
ACCELERATION, GYRO = ("imu_ax", "imu_ay", "imu_az"), ("imu_wx", "imu_wy", "imu_wz")
_BIASES: dict[Group, str] = {
    POSITION: "position_bias_m",
    VELOCITY: "velocity_bias_mps",
    ACCELERATION: "acceleration_bias_mps2",
    GYRO: "gyro_bias_radps",
}
_DRIFTS: dict[Group, str] = {POSITION: "position_drift_rate_mps", VELOCITY: "velocity_drift_rate_mps2"}
_NOISES: dict[Group, str] = {
    POSITION: "position_noise_std_m",
    VELOCITY: "velocity_noise_std_mps",
    ACCELERATION: "acceleration_noise_std_mps2",
}

Offsets = dict[Group, Floats]


@dataclass(frozen=True)
class Injected:
    """An attacked copy of a flight, and which of its rows are attacked."""

    flight: Flight
    label: NDArray[np.bool_]
    record: dict[str, Any]


@dataclass(frozen=True)
class _Window:
    """Times since the onset of the rows in the window, the random stream, and the parameters."""

    elapsed: Floats
    random: np.random.Generator
    parameters: Mapping[str, Any]

    def get(self, name: str) -> float:
        """A parameter, 0 when it is not set."""
        return float(self.parameters.get(name) or 0.0)

    def sizes(self, parameters: Mapping[Group, str]) -> Iterator[tuple[Group, float]]:
        """The columns whose parameter is set, each with its size."""
        return ((names, size) for names, name in parameters.items() if (size := self.get(name)))

    def along(self, directions: Mapping[Group, Floats]) -> Offsets:
        """The biases that are set as offsets of all rows, those of each group of columns along its direction."""
        sizes = dict(self.sizes(_BIASES))
        rows = self.elapsed.size
        return {names: np.tile(sizes[names] * axis, (rows, 1)) for names, axis in directions.items() if names in sizes}


def inject(flight: Flight, attack: Attack) -> Injected:
    """An attacked copy of a clean flight; the flight itself is not touched."""
    random = generator(attack.seed or 0, f"attack/{attack.name}/{flight.id}")
    first, last = float(flight.time[0]), float(flight.time[-1])
    # The onset is always drawn, so that fixing it changes no other random number.
    share = random.uniform(*attack.onset_range)
    onset = first + (share * (last - first) if attack.onset_s is None else attack.onset_s)
    start = int(np.searchsorted(flight.time, onset))
    duration = attack.duration_s
    if attack.type == "replay":
        length = float(attack.parameters["replay_duration_s"])
        duration = length if duration is None else min(duration, length)
    end = flight.n
    if duration is not None and start < flight.n:
        end = int(np.searchsorted(flight.time, flight.time[start] + duration - 1e-9))
    if end <= start:
        raise InputError(f"flight {flight.id} is too short for attack {attack.name}: its window would be empty")
    columns = {name: values.copy() for name, values in flight.columns.items()}
    active = np.zeros(flight.n, dtype=bool)
    active[start:end] = True
    window = _Window(flight.time[start:end] - flight.time[start], random, attack.parameters)
    if attack.type == "replay":
        _replay(flight, columns, start, end, window)
    else:
        offsets = _OFFSETS[attack.type](window)
        if attack.type == "intermittent":
            active[start:end] = _on(window)
        for names, offset in offsets.items():
            present = [name for name in names if name in columns]
            if not present:
                changed = ", ".join(names)
                raise InputError(f"attack {attack.name} changes {changed}, and flight {flight.id} has none of them")
            for name in present:
                columns[name][start:end] += offset[:, names.index(name)]
    record = attack.content() | {
        "flight": flight.id,
        "start_row": start,
        "end_row": end,
        "start_s": float(flight.time[start]),
        "attacked_rows": int(active.sum()),
        "source_digest": flight.digest(),
    }
    return Injected(Flight(flight.id, flight.time, columns), active, record)


def _constant(window: _Window) -> Offsets:
    return window.along(dict.fromkeys(_BIASES, _direction(window)))


def _growing(window: _Window) -> Offsets:
    limit = window.parameters.get("max_drift_duration_s")
    grown = window.elapsed if limit is None else np.minimum(window.elapsed, float(limit))
    return {names: size * grown[:, None] * np.array([1.0, 0.0, 0.0]) for names, size in window.sizes(_DRIFTS)}


def _noise(window: _Window) -> Offsets:
    draws = {names: window.random.standard_normal((window.elapsed.size, 3)) for names in _NOISES}
    return {names: size * draws[names] for names, size in window.sizes(_NOISES)}


def _coordinated(window: _Window) -> Offsets:
    """Offsets whose directions have the given correlation with that of the position."""
    direction = _unit(window.random.standard_normal(3))
    factor = float(window.parameters.get("correlation_factor", 1.0))
    turned = []
    for _ in range(2):
        other = window.random.standard_normal(3)
        other = _unit(other - (other @ direction) * direction)
        turned.append(factor * direction + math.sqrt(1.0 - factor * factor) * other)
    return window.along({POSITION: direction, VELOCITY: turned[0], ACCELERATION: turned[1]})


def _intermittent(window: _Window) -> Offsets:
    return {POSITION: np.outer(_on(window) * window.get("position_bias_m"), [1.0, 0.0, 0.0])}


def _on(window: _Window) -> NDArray[np.bool_]:
    """The rows of the window in which an intermittent attack is on."""
    period = window.get("on_duration_s") + window.get("off_duration_s")
    if period <= 0:
        return np.ones(window.elapsed.size, dtype=bool)
    cycle = np.floor((window.elapsed + 1e-9) / period)
    active: NDArray[np.bool_] = window.elapsed - cycle * period < window.get("on_duration_s") - 1e-9
    cycles = window.parameters.get("n_cycles")
    return active if cycles is None else active & (cycle < int(cycles))


def _autoregressive(window: _Window) -> Offsets:
    from scipy.signal import lfilter

    channels = window.parameters.get("channels", "position")
    offsets: Offsets = {}
    for names, wanted in ((POSITION, "position"), (VELOCITY, "velocity")):
        steps = window.random.standard_normal((window.elapsed.size, 3)) * window.get("innovation_std")
        if channels in {wanted, "both"}:
            offsets[names] = np.asarray(lfilter([1.0], [1.0, -window.get("ar_coefficient")], steps, axis=0))
    return offsets


_OFFSETS: dict[str, Callable[[_Window], Offsets]] = {
    "bias": _constant,
    "step": _constant,
    "drift": _growing,
    "ramp": _growing,
    "noise": _noise,
    "coordinated": _coordinated,
    "intermittent": _intermittent,
    "ar1_drift": _autoregressive,
}


def _replay(flight: Flight, columns: dict[str, Floats], start: int, end: int, window: _Window) -> None:
    """GPS rows of the window become those of `delay_s` before."""
    delay = float(window.parameters.get("delay_s", window.parameters["replay_duration_s"]))
    source = int(np.searchsorted(flight.time, flight.time[start] - delay - 1e-9))
    if flight.time[start] - delay < flight.time[0] - 1e-9 or delay <= 0:
        why = "would begin before the flight (or not before)"
        raise InputError(f"flight {flight.id}: a replay of {delay:g} s before the onset {why}")
    names = [name for name in (*POSITION, *VELOCITY) if name in columns]
    if not names:
        raise InputError(f"flight {flight.id} has no gps columns to replay")
    for name in names:
        columns[name][start:end] = flight.columns[name][source : source + end - start]


def _direction(window: _Window) -> Floats:
    random = _unit(window.random.standard_normal(3))
    direction = window.parameters.get("direction", "x")
    if isinstance(direction, str):
        return random if direction == "random" else np.eye(3)["xyz".index(direction)]
    return _unit(np.array(direction, dtype=np.float64))


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float64)


def write_attacked(flights: Sequence[Flight], attacks: Sequence[Attack], path: Path, *, force: bool = False) -> int:
    """Every attack on every flight in one Parquet file, with label, attack, magnitude and seed, for use elsewhere.

    Rows that were labelled before stay labelled, and a column `fault` tells them from the attack.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.exists() and not force:
        raise OutputError(f"{path} exists already; choose another --output, or --force to replace it")
    if not flights or not attacks:
        raise InputError("there is no flight to attack" if attacks else "the catalog holds no attack")
    faults = "label" in flights[0].columns
    numbers = ("t", *(name for name in flights[0].columns if name != "label"))
    kinds = {"flight": pa.string(), **dict.fromkeys(numbers, pa.float64()), "label": pa.int8()}
    kinds |= {"fault": pa.int8()} if faults else {}
    schema = pa.schema(kinds | {"attack": pa.string(), "magnitude": pa.float64(), "seed": pa.int64()})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for attack in attacks:
            for flight in flights:
                done = inject(flight, attack)
                fault = flight.columns["label"] == 1 if faults else np.zeros(flight.n, dtype=bool)
                values: dict[str, Any] = {
                    **done.flight.columns,
                    "flight": [flight.id] * flight.n,
                    "t": flight.time,
                    "label": (done.label | fault).astype(np.int8),
                    "fault": fault.astype(np.int8),
                    "attack": [attack.name] * flight.n,
                    "magnitude": [attack.magnitude] * flight.n,
                    "seed": [attack.seed] * flight.n,
                }
                writer.write_table(pa.table(values, schema=schema))
    return len(flights) * len(attacks)
