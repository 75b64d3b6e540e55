"""Which units a resample draws, and how often: seeded streams, cluster counts, all distinct resamples of few units.

A stream is PCG64 seeded with (seed, SHA-256 of the stream's name), so that every metric has its own random numbers and
adding a metric changes no other.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats.estimate import FloatArray, IntArray

ENUMERATE_UP_TO = 9
"""24,310 distinct resamples of 9 units; of 10 there would be 92,378, more than anyone draws."""
_CHUNK_CELLS = 1 << 17  # what fits into the cache; random access beyond it takes three times as long
_STRATA_CELLS = 1 << 21  # strata are drawn one after another, so this number decides what is drawn


def generator(seed: int, stream: str) -> np.random.Generator:
    """The random numbers of one named stream; the same for the same seed and name, independent of all other names."""
    if seed < 0:
        raise StatsError(f"seed {seed} is negative; a seed is a whole number from 0")
    words = np.frombuffer(hashlib.sha256(stream.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(words.tolist()))))


@dataclass(frozen=True)
class Resamples:
    """The resamples of m units: drawn, or all distinct ones with their probabilities."""

    m: int
    resamples: int
    seed: int
    stream: str
    strata: tuple[IntArray, ...]
    probabilities: FloatArray | None
    enumerated: IntArray | None

    @property
    def says(self) -> str:
        """How many resamples there are, for `Estimate.method`."""
        if self.enumerated is not None:
            return f"all {len(self.enumerated)} distinct resamples"
        return f"{self.resamples} resamples"

    @property
    def recorded_seed(self) -> int | None:
        """The seed, or None where nothing was drawn."""
        return None if self.enumerated is not None else self.seed

    def chunks(self) -> Iterator[FloatArray]:
        """How often each unit is drawn in each resample, some rows at a time; every row adds up to m."""
        if self.enumerated is not None:
            yield self.enumerated.astype(np.float64)
            return
        random = generator(self.seed, self.stream)
        rows = max(1, (_CHUNK_CELLS if len(self.strata) == 1 else _STRATA_CELLS) // self.m)
        for start in range(0, self.resamples, rows):
            yield self._draw(random, min(rows, self.resamples - start))

    def _draw(self, random: np.random.Generator, rows: int) -> FloatArray:
        if len(self.strata) == 1:
            return _draw(random, rows, self.m)
        drawn = np.empty((rows, self.m), dtype=np.float64)
        for members in self.strata:
            drawn[:, members] = _draw(random, rows, members.size)
        return drawn


def resamples_of(
    m: int, resamples: int, *, seed: int, stream: str, strata: npt.ArrayLike | None = None, enumerate_few: bool = True
) -> Resamples:
    """The resamples of m units; within strata when given, and all distinct ones when the units are few."""
    if m < 1:
        raise StatsError("there is no unit to resample")
    if resamples < 1:
        raise StatsError(f"{resamples} resamples were asked for; at least one is needed")
    groups = _groups(m, strata)
    enumerated: IntArray | None = None
    probabilities: FloatArray | None = None
    if enumerate_few and m <= ENUMERATE_UP_TO:
        enumerated, probabilities = _enumerate(m, groups)
    return Resamples(m, resamples, seed, stream, groups, probabilities, enumerated)


def weights(
    m: int, resamples: int, seed: int, stream: str, *, strata: npt.ArrayLike | None = None
) -> Iterator[FloatArray]:
    """Drawn cluster counts, some rows at a time, as whole numbers in float64 for products with BLAS."""
    return resamples_of(m, resamples, seed=seed, stream=stream, strata=strata, enumerate_few=False).chunks()


@functools.cache
def compositions(m: int) -> tuple[IntArray, FloatArray]:
    """All ways to draw m times from m units, order ignored, with their multinomial probabilities."""
    rows: list[tuple[int, ...]] = []
    _compose((), m, m, rows)
    ways = [math.factorial(m) / math.prod(math.factorial(times) for times in row) / float(m) ** m for row in rows]
    tables = np.array(rows, dtype=np.int64), np.array(ways, dtype=np.float64)
    for values in tables:
        values.flags.writeable = False
    return tables


def _compose(prefix: tuple[int, ...], left: int, places: int, rows: list[tuple[int, ...]]) -> None:
    if places == 1:
        rows.append((*prefix, left))
        return
    for times in range(left + 1):
        _compose((*prefix, times), left - times, places - 1, rows)


def _enumerate(m: int, groups: tuple[IntArray, ...]) -> tuple[IntArray, FloatArray]:
    counts = np.zeros((1, m), dtype=np.int64)
    probability = np.ones(1)
    for members in groups:
        rows, ways = compositions(members.size)
        grown = np.repeat(counts, len(rows), axis=0)
        grown[:, members] = np.tile(rows, (len(counts), 1))
        counts, probability = grown, np.repeat(probability, len(rows)) * np.tile(ways, len(counts))
    return counts, probability


def _groups(m: int, strata: npt.ArrayLike | None) -> tuple[IntArray, ...]:
    if strata is None:
        return (np.arange(m),)
    labels = np.asarray(strata)
    if labels.shape != (m,):
        raise StatsError(f"strata has shape {labels.shape}; one stratum for each of the {m} units is needed")
    _, place = np.unique(labels, return_inverse=True)
    return tuple(np.flatnonzero(place == stratum) for stratum in range(int(place.max()) + 1))


def _draw(random: np.random.Generator, rows: int, m: int) -> FloatArray:
    drawn = random.integers(0, m, size=(rows, m), dtype=np.int64)
    drawn += np.arange(rows, dtype=np.int64)[:, None] * m
    return np.bincount(drawn.ravel(), minlength=rows * m).reshape(rows, m).astype(np.float64)
