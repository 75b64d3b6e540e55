"""Exact partial results of parts of the data, which add up to the same bits however the data was cut.

`partial(batch)` makes one from a batch, `merge` joins two, `finish` gives the arrays that the statistics take. Counts
are integers, sums are exact (`exact`), and where a statistic needs the values the partial is the column itself, put
in one order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import _checks, bootstrap, exact, ranking
from adjudge.stats._checks import FloatArray, IntArray
from adjudge.stats.estimate import Estimate
from adjudge.stats.sorting import rising

ALL = ""
"""The one cluster of data without clusters."""


@dataclass(frozen=True)
class Counts:
    """How many rows of each cluster fall into each of k cells."""

    k: int
    cells: dict[Any, IntArray]

    @classmethod
    def partial(cls, cells: npt.ArrayLike, k: int, *, clusters: npt.ArrayLike | None = None) -> Counts:
        """Of a batch of cell numbers 0 … k-1."""
        column = np.asarray(cells, dtype=np.int64)
        if column.size and (column.min() < 0 or column.max() >= k):
            raise StatsError(f"cells holds a number outside 0 … {k - 1}")
        names, place = _places(column.size, clusters)
        table = np.bincount(place * k + column, minlength=len(names) * k).reshape(len(names), k)
        return cls(k, dict(zip(names, table, strict=True)))

    def merge(self, other: Counts) -> Counts:
        """The counts of both parts."""
        if self.k != other.k:
            raise StatsError(f"counts over {self.k} and over {other.k} cells cannot be added")
        joined = dict(self.cells)
        for name, counts in other.cells.items():
            joined[name] = joined[name] + counts if name in joined else counts
        return Counts(self.k, joined)

    def finish(self) -> tuple[list[Any], IntArray]:
        """The clusters in their order, and counts[m, k]."""
        names = sorted(self.cells)
        return names, np.array([self.cells[name] for name in names], dtype=np.int64).reshape(len(names), self.k)


@dataclass(frozen=True)
class Sums:
    """The number of rows of each cluster and the exact sum of their values, in units of 2^-1074."""

    totals: dict[Any, tuple[int, int]]

    @classmethod
    def partial(cls, values: npt.ArrayLike, *, clusters: npt.ArrayLike | None = None) -> Sums:
        """Of a batch of finite values."""
        column = _checks.column(values, "values")
        names, place = _places(column.size, clusters)
        sizes = np.bincount(place, minlength=len(names)).tolist()
        units = exact.group_totals(column, place, len(names))
        return cls(dict(zip(names, zip(sizes, units, strict=True), strict=True)))

    def merge(self, other: Sums) -> Sums:
        """The sums of both parts."""
        joined = dict(self.totals)
        for name, (size, units) in other.totals.items():
            have, total = joined.get(name, (0, 0))
            joined[name] = (have + size, total + units)
        return Sums(joined)

    def finish(self) -> tuple[list[Any], FloatArray, IntArray]:
        """The clusters in their order, their correctly rounded sums, and their sizes."""
        names = sorted(self.totals)
        sums = np.array([exact.rounded(self.totals[name][1]) for name in names], dtype=np.float64)
        return names, sums, np.array([self.totals[name][0] for name in names], dtype=np.int64)

    def mean_value(self) -> float | None:
        """The correctly rounded mean of all rows, None without rows."""
        n = sum(size for size, _ in self.totals.values())
        return exact.rounded(sum(units for _, units in self.totals.values()), n) if n else None

    def mean(self, *, seed: int, stream: str, resamples: int = bootstrap.RESAMPLES, level: float = 0.95) -> Estimate:
        """The mean with its cluster bootstrap, as `bootstrap.mean` gives it on the whole column."""
        _, sums, sizes = self.finish()
        if sizes.size == 0:
            return Estimate.null("no values", level=level)
        return bootstrap.ratio_of_sums(sums, sizes, seed=seed, stream=stream, resamples=resamples, level=level)


@dataclass(frozen=True)
class Column:
    """Values themselves, in rising order, for what sums cannot give: quantiles, ranks, times."""

    values: FloatArray

    @classmethod
    def partial(cls, values: npt.ArrayLike) -> Column:
        """Of a batch of finite values."""
        # Adding 0.0 turns -0.0 into 0.0, which otherwise could stand on either side of it.
        return cls(rising(_checks.column(values, "values") + 0.0))

    def merge(self, other: Column) -> Column:
        """The values of both parts."""
        return Column(rising(np.concatenate([self.values, other.values])))

    def finish(self) -> FloatArray:
        """The sorted column."""
        return self.values


@dataclass(frozen=True)
class Scores:
    """Scores with class and cluster, sorted by score, then class, then cluster, for AUROC and what else needs ranks."""

    scores: FloatArray
    positive: npt.NDArray[np.bool_]
    clusters: npt.NDArray[Any]

    @classmethod
    def partial(
        cls, scores: npt.ArrayLike, positives: npt.ArrayLike, *, clusters: npt.ArrayLike | None = None
    ) -> Scores:
        """Of a batch of rows."""
        column, positive = _checks.column(scores, "scores") + 0.0, np.asarray(positives, dtype=bool)
        labels = np.zeros(column.size, dtype=np.int64) if clusters is None else np.asarray(clusters)
        _checks.same_length(column.size, positive.size, "positives")
        _checks.same_length(column.size, labels.size, "clusters")
        return cls._sorted(column, positive, labels)

    @classmethod
    def _sorted(cls, scores: FloatArray, positive: npt.NDArray[np.bool_], clusters: npt.NDArray[Any]) -> Scores:
        order = np.lexsort((clusters, positive, scores))
        return cls(scores[order], positive[order], clusters[order])

    def merge(self, other: Scores) -> Scores:
        """The rows of both parts."""
        return self._sorted(
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.positive, other.positive]),
            np.concatenate([self.clusters, other.clusters]),
        )

    def finish(self) -> tuple[FloatArray, npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """The columns that `ranking` takes."""
        return self.scores, self.positive, self.clusters

    def auroc(self, *, clustered: bool, seed: int, stream: str, level: float = 0.95) -> Estimate:
        """AUROC as `ranking.auroc` gives it on the whole columns."""
        clusters = self.clusters if clustered else None
        return ranking.auroc(self.scores, self.positive, clusters=clusters, seed=seed, stream=stream, level=level)


def _places(n: int, clusters: npt.ArrayLike | None) -> tuple[list[Any], IntArray]:
    if clusters is None:
        return ([ALL] if n else []), np.zeros(n, dtype=np.int64)
    labels = np.asarray(clusters)
    _checks.same_length(n, labels.size, "clusters")
    names, place = np.unique(labels, return_inverse=True)
    return names.tolist(), place.astype(np.int64)
