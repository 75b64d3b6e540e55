"""Random data sets of flights, clean or with rows of one flight copied into another, changed on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.protocols.anomaly.rows import Flight, Splits


def clean_flights(seed: int, *, flights: int = 8, rows: int = 600) -> list[Flight]:
    """Flights as sensors give them: walks, noise, coarse channels, rest at the start, set points that all share, clocks."""
    random = np.random.default_rng(seed)
    width = int(random.integers(3, 11))
    kinds = random.choice(["walk", "noise", "wave", "coarse"], size=width, p=[0.4, 0.3, 0.2, 0.1])
    kinds[:2] = "walk", "noise"
    scales = 10.0 ** random.uniform(-2, 3, size=width)
    decimals = random.choice([15, 8, 6, 4], size=width)
    resting, shared = random.random() < 0.3, random.random() < 0.3
    made = []
    for index in range(flights):
        n = int(random.integers(rows // 2, rows * 2))
        t = np.arange(n) / 20.0
        columns: dict[str, np.ndarray] = {}
        for k, kind in enumerate(kinds):
            noise = random.normal(size=n)
            wave = np.sin(t * random.uniform(0.1, 2) + random.uniform(0, 6))
            shapes = {"walk": np.cumsum(noise) / 10, "noise": noise, "wave": wave + noise / 50}
            values = shapes.get(kind, np.round(noise, 1))
            columns[f"c{k}"] = np.round(values * scales[k], max(0, decimals[k] - int(np.log10(scales[k]) > 1)))
            if resting:
                columns[f"c{k}"][: n // 5] = 0.0
        if shared:
            columns["setpoint"] = np.floor(t / 5)
        columns["counter"] = np.arange(n, dtype=float)
        columns["label"] = np.zeros(n)
        made.append(Flight(f"f{index}", t + 1000.0 * index, columns))
    return made


@dataclass(frozen=True)
class Leak:
    """How rows are copied: the share of the receiving flight, noise in spreads, every how many rows, other names."""

    share: float
    noise: float
    stride: int
    renamed: bool
    rounded: bool
    blanks: float

    @classmethod
    def random(cls, seed: int) -> Leak:
        """A leak of at least 5 %."""
        draw = np.random.default_rng(seed + 10_000)
        renamed = bool(draw.random() < 0.3)
        noise = 0.0 if draw.random() < 0.4 else 10.0 ** draw.uniform(-12, -9 if renamed else -4)
        return cls(
            share=float(draw.uniform(0.05, 1.0)),
            noise=noise,
            stride=int(draw.choice([1, 1, 2, 3, 5])),
            renamed=renamed,
            rounded=bool(draw.random() < 0.3),
            blanks=float(draw.choice([0.0, 0.0, 0.01, 0.1])),
        )


def leaking_flights(seed: int, leak: Leak) -> tuple[list[Flight], Splits]:
    """A clean data set with rows of a train flight in a test flight, on the test flight's own clock and counter."""
    flights = clean_flights(seed)
    draw = np.random.default_rng(seed + 20_000)
    source, target = flights[0], flights[-1]
    n = target.n
    wanted = max(40, int(leak.share * n))
    # A flight at rest at its start gives rows of zeros, which are nobody's.
    rows = np.arange(source.n // 5, source.n, leak.stride)[:wanted]
    start = int(draw.integers(0, max(1, n - rows.size)))
    columns = {}
    for name, values in target.columns.items():
        copied = values.copy()
        if name not in {"counter", "label", "setpoint"}:
            part = source.columns[name][rows][: n - start]
            spread = float(np.std(source.columns[name])) or 1.0
            part = part + leak.noise * spread * draw.normal(size=part.size) if leak.noise else part.copy()
            if leak.rounded:
                part = np.round(part, 6)
            part[draw.random(part.size) < leak.blanks] = np.nan
            copied[start : start + part.size] = part
        columns[f"other_{name}" if leak.renamed and name not in {"counter", "label"} else name] = copied
    flights[-1] = Flight(target.id, target.time, columns)
    return flights, splits_of(flights)


def splits_of(flights: list[Flight]) -> Splits:
    names = tuple(flight.id for flight in flights)
    return Splits(names[: len(names) // 2], names[len(names) // 2 : -2], names[-2:])
