"""Which units a resample draws, and how often; and from the replicates of a statistic to its interval.

A stream is PCG64 seeded with (seed, SHA-256 of the stream's name), so that every metric has its own random numbers and
adding a metric changes no other. Of few units all distinct resamples are enumerated.

Intervals: percentile; BCa (Efron 1987, JASA 82:171-185); expanded percentile (Hesterberg 2015, The American Statistician
69:371-386), which widens the percentile levels by Student's t and by sqrt(m/(m-1)) and is the default. Where clusters
differ in size, m is their effective number (Σ size)² / Σ size².
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats.estimate import Estimate, FloatArray, IntArray
from adjudge.stats.proportions import FEW_CLUSTERS, normal_cdf, normal_quantile, student_quantile

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


Method = Literal["expanded", "percentile", "bca"]

NAMES: dict[Method, str] = {"expanded": "expanded percentile", "percentile": "percentile", "bca": "BCa"}


Jackknife = Callable[[], tuple[FloatArray, FloatArray | None]]
"""Gives the leave-one-out values, and how often each counts where they do not count alike; BCa alone asks for them."""


def interval_of(
    estimate: Estimate,
    replicates: FloatArray,
    method: Method,
    *,
    units: float,
    strata: int = 1,
    jackknife: Jackknife | None = None,
    probabilities: FloatArray | None = None,
) -> Estimate:
    """The estimate with its interval from replicates of `units` resampled units.

    Undefined replicates (NaN) are left out and reported; `probabilities` are those of the replicates where they differ.
    """
    value, level, warnings = estimate.value, estimate.level, estimate.warnings
    assert value is not None  # noqa: S101 -- a statistic without a value is not resampled
    defined = np.isfinite(replicates)
    kept = int(defined.sum())
    if kept < replicates.size:
        lost = replicates.size - kept
        warnings = (*warnings, f"undefined in {lost} of {replicates.size} resamples, which the interval leaves out")
        replicates = replicates[defined]
        probabilities = None if probabilities is None else probabilities[defined] / probabilities[defined].sum()
    if 2 * kept < defined.size or kept == 0:
        warnings = (*warnings, "no interval: the statistic is undefined in most resamples")
        return msgspec.structs.replace(estimate, warnings=warnings)
    if method == "bca":
        if jackknife is None:
            raise StatsError("BCa needs the leave-one-out values of the statistic")
        acceleration = _acceleration(*jackknife())
        bounds = _bca_levels(value, replicates, probabilities, acceleration, level)
    elif method == "expanded":
        bounds = _expanded_levels(units, strata, level)
    else:
        bounds = ((1.0 - level) / 2.0, 0.5 + level / 2.0)
    low, high = _quantiles(replicates, probabilities, bounds)
    if low == high:
        warnings = (*warnings, "all resamples agree: an interval of no width says nothing about data not seen")
    return msgspec.structs.replace(estimate, low=low, high=high, warnings=warnings)


def quotient(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """A statistic of each resample as a ratio; NaN, which is undefined, where it would be over nothing."""
    ratio: FloatArray = np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom > 0)
    return ratio


def few(m: int, unit: str, distinct: int = 0) -> tuple[str, ...]:
    """The warning of an interval over fewer than ten units, which may have so many distinct resamples."""
    if m >= FEW_CLUSTERS:
        return ()
    known = f", which have {distinct} distinct resamples" if distinct else ""
    return (f"only {m} {unit}s{known}: an interval over fewer than {FEW_CLUSTERS} is a rough guide",)


def _expanded_levels(units: float, strata: int, level: float) -> tuple[float, float]:
    freedom = max(units - strata, 1.0)
    reach = math.sqrt(units / freedom) * student_quantile(freedom, 0.5 + level / 2.0)
    return normal_cdf(-reach), normal_cdf(reach)


def _bca_levels(
    value: float, replicates: FloatArray, probabilities: FloatArray | None, acceleration: float, level: float
) -> tuple[float, float]:
    share = np.full(replicates.size, 1.0 / replicates.size) if probabilities is None else probabilities
    below = float(share[replicates < value].sum()) + 0.5 * float(share[replicates == value].sum())
    edge = 0.5 / replicates.size
    bias = normal_quantile(min(max(below, edge), 1.0 - edge))
    z = normal_quantile(0.5 + level / 2.0)
    ends = []
    for quantile in (-z, z):
        scale = 1.0 - acceleration * (bias + quantile)
        shifted = bias + (bias + quantile) / scale if scale > 0 else math.copysign(math.inf, quantile)
        ends.append(normal_cdf(shifted))
    return ends[0], ends[1]


def _acceleration(jackknife: FloatArray, jackknife_weights: FloatArray | None) -> float:
    defined = np.isfinite(jackknife)
    moves = jackknife[defined]
    share = np.ones(moves.size) if jackknife_weights is None else jackknife_weights[defined]
    moves = (share @ moves) / share.sum() - moves
    spread = float(share @ moves**2)
    return 0.0 if spread == 0 else float(share @ moves**3) / (6.0 * spread**1.5)


def _quantiles(
    replicates: FloatArray, probabilities: FloatArray | None, bounds: tuple[float, float]
) -> tuple[float, float]:
    if probabilities is None:
        low, high = np.quantile(replicates, bounds, method="weibull").tolist()
        return float(low), float(high)
    order = np.argsort(replicates, kind="stable")
    ordered, cumulative = replicates[order], np.cumsum(probabilities[order])
    first = int(np.searchsorted(cumulative, bounds[0] - 1e-12))
    last = int(np.searchsorted(cumulative, bounds[1] - 1e-12))
    return float(ordered[min(first, ordered.size - 1)]), float(ordered[min(last, ordered.size - 1)])


class Pieces(NamedTuple):
    """Runs of equal rows, cut: of every piece the run it is of, its rows, and the part it is in."""

    run: IntArray
    size: IntArray
    part: IntArray


def cut(counts: IntArray, edges: IntArray) -> Pieces:
    """Cut runs of counts[k] equal rows, one after another, into the parts edges[p] … edges[p + 1] of all rows."""
    ends = np.cumsum(counts)
    marks = np.unique(np.concatenate([edges, ends]))
    starts = marks[:-1]
    return Pieces(
        np.searchsorted(ends, starts, side="right"), np.diff(marks), np.searchsorted(edges, starts, side="right") - 1
    )
