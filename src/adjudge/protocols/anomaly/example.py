"""A seeded flight simulator: a point-mass UAV in wind, whose GPS and IMU come from one integrated trajectory.

Axes are those of the ground (x east, y north, z up); the IMU measures acceleration along them with gravity on z, and
turn rates of the velocity. Between samples the acceleration is linear, so velocity and position are its exact integrals.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.attacks import ACCELERATION, GYRO, POSITION, VELOCITY
from adjudge.protocols.anomaly.catalog import EXAMPLE
from adjudge.protocols.anomaly.rows import Flight
from adjudge.stats.resampling import generator

GRAVITY = 9.80665
GPS_POSITION_STD, GPS_VELOCITY_STD = 0.3, 0.05
IMU_STD, IMU_BIAS_STD, GYRO_STD = 0.05, 0.005, 0.002


def simulate(flight: str, *, seed: int, seconds: float = 60.0, rate: float = 100.0, noise: bool = True) -> Flight:
    """One flight of raw GPS and IMU channels; without noise the two agree to rounding."""
    random = generator(seed, f"simulate/{flight}")
    n = round(seconds * rate)
    dt = 1.0 / rate
    acceleration = _acceleration(random, n, dt)
    velocity = np.zeros((n, 3))
    velocity[0] = random.normal(0, 3, 3) * [1, 1, 0.1]
    velocity[1:] = velocity[0] + np.cumsum((acceleration[1:] + acceleration[:-1]) / 2 * dt, axis=0)
    position = np.zeros((n, 3))
    position[0] = random.normal(0, 50, 3) + np.array([0, 0, 120])
    steps = velocity[:-1] * dt + (2 * acceleration[:-1] + acceleration[1:]) * dt * dt / 6
    position[1:] = position[0] + np.cumsum(steps, axis=0)
    speed = np.hypot(velocity[:, 0], velocity[:, 1]) + 1.0
    turn = (velocity[:, 0] * acceleration[:, 1] - velocity[:, 1] * acceleration[:, 0]) / speed**2
    gyro = np.column_stack([np.zeros(n), np.zeros(n), turn])
    measured = acceleration + np.array([0, 0, GRAVITY])
    if noise:
        position = position + random.normal(0, GPS_POSITION_STD, (n, 3))
        velocity = velocity + random.normal(0, GPS_VELOCITY_STD, (n, 3))
        measured = measured + random.normal(0, IMU_BIAS_STD, 3) + random.normal(0, IMU_STD, (n, 3))
        gyro = gyro + random.normal(0, GYRO_STD, (n, 3))
    columns: dict[str, Floats] = {}
    for names, values in ((POSITION, position), (VELOCITY, velocity), (ACCELERATION, measured), (GYRO, gyro)):
        columns |= {name: np.ascontiguousarray(values[:, axis]) for axis, name in enumerate(names)}
    return Flight(flight, np.arange(n, dtype=np.float64) * np.float64(dt), columns)


def _acceleration(random: np.random.Generator, n: int, dt: float) -> Floats:
    """Commanded speeds that change every few seconds, a drag towards the wind, and gusts."""
    wind = random.normal(0, 2, 3) * [1, 1, 0.2]
    hold = max(1, round(5.0 / dt))
    goals = np.repeat(random.normal(0, 6, (n // hold + 1, 3)) * [1, 1, 0.25], hold, axis=0)[:n]
    gust = np.zeros(3)
    velocity, result = np.zeros(3), np.zeros((n, 3))
    smooth = np.zeros(3)
    kicks = random.normal(0, 1, (n, 3)) * np.sqrt(dt)
    for k in range(n):
        gust = gust * (1 - dt) + 0.6 * kicks[k]
        wanted = 0.8 * (goals[k] - velocity) + 0.15 * (wind + gust - velocity)
        smooth = smooth + (wanted - smooth) * dt / 0.3
        result[k] = smooth
        velocity = velocity + smooth * dt
    return result


def write_example(
    folder: Path, *, seed: int = 0, flights: int = 30, seconds: float = 60.0, rate: float = 100.0
) -> dict[str, Any]:
    """Flights, splits and a catalog in a folder; returns the configuration that judges the residual detector on them."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"f{index:02d}" for index in range(flights)]
    simulated = [simulate(name, seed=seed, seconds=seconds, rate=rate) for name in names]
    table = {
        "flight": np.repeat(names, [item.n for item in simulated]),
        "t": np.concatenate([item.time for item in simulated]),
    }
    table |= {name: np.concatenate([item.columns[name] for item in simulated]) for name in simulated[0].columns}
    pq.write_table(pa.table(table), folder / "flights.parquet", compression="zstd")
    a, b = flights // 2, flights // 2 + max(2, flights // 6)
    splits = {"train_flights": names[:a], "val_flights": names[a:b], "test_flights": names[b:]}
    (folder / "splits.json").write_text(json.dumps(splits, indent=2) + "\n", encoding="utf-8")
    (folder / "catalog.json").write_text(json.dumps(EXAMPLE, indent=2) + "\n", encoding="utf-8")
    return {
        "data": str(folder / "flights.parquet"),
        "splits": str(folder / "splits.json"),
        "catalog": str(folder / "catalog.json"),
        "detector": "residual",
        "seed": seed,
    }


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write a short version of the simulated flights and return the configuration that judges them, for the demo."""
    return write_example(folder, seed=seed, flights=16, seconds=40.0, rate=20.0) | {"resamples": 500}
