"""What calibration needs of each confidence bin, as exact sums: the same bits however the data was cut."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import exact
from adjudge.stats._checks import FloatArray, IntArray
from adjudge.stats.confidence_bins import Closed, columns, equal_width


class BrierParts(msgspec.Struct, frozen=True, kw_only=True):
    """Brier = reliability − resolution + uncertainty + within_variance − within_covariance."""

    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float


@dataclass(frozen=True)
class BinSums:
    """Of each bin: rows, hits, Σ confidence, its square, its product with correct; of all, Σ (confidence − correct)².

    Sums are whole numbers of 2^-1074 (`exact`).
    """

    size: tuple[int, ...]
    hits: tuple[int, ...]
    promised: tuple[int, ...]
    squared: tuple[int, ...]
    promised_hits: tuple[int, ...]
    square_errors: int

    @classmethod
    def partial(
        cls, confidence: npt.ArrayLike, correct: npt.ArrayLike, *, bins: int = 10, closed: Closed = "left"
    ) -> BinSums:
        """Of a batch of rows, over bins of equal width."""
        c, y = columns(confidence, correct)
        return cls.of(c, y, equal_width(confidence, bins, closed), bins)

    @classmethod
    def of(cls, c: FloatArray, y: npt.NDArray[Any], where: IntArray, bins: int) -> BinSums:
        """Of checked columns whose bins are known."""

        def total(values: FloatArray) -> tuple[int, ...]:
            return tuple(exact.group_totals(values, where, bins)) if c.size else (0,) * bins

        return cls(
            size=tuple(np.bincount(where, minlength=bins).tolist()),
            hits=tuple(np.bincount(where[y == 1], minlength=bins).tolist()),
            promised=total(c),
            squared=total(c * c),
            promised_hits=total(c * y),
            square_errors=exact.total((c - y) ** 2),
        )

    def merge(self, other: BinSums) -> BinSums:
        """The sums of both parts."""
        if len(self.size) != len(other.size):
            raise StatsError(f"sums over {len(self.size)} and over {len(other.size)} bins cannot be added")
        return BinSums(
            size=_added(self.size, other.size),
            hits=_added(self.hits, other.hits),
            promised=_added(self.promised, other.promised),
            squared=_added(self.squared, other.squared),
            promised_hits=_added(self.promised_hits, other.promised_hits),
            square_errors=self.square_errors + other.square_errors,
        )

    def ece(self) -> float | None:
        """The expected calibration error, correctly rounded; None without rows."""
        n = sum(self.size)
        return ece_of(self.hits, self.promised, n) if n else None

    def brier(self) -> float | None:
        """The Brier score, correctly rounded over the rounded squares; None without rows."""
        n = sum(self.size)
        return exact.rounded(self.square_errors, n) if n else None

    def brier_parts(self) -> BrierParts | None:
        """The Brier score taken apart (see `calibration.brier_parts`); None without rows."""
        n = sum(self.size)
        if n == 0:
            return None
        unit = 1 << exact.UNIT
        overall = Fraction(sum(self.hits), n)
        reliability = resolution = variance = covariance = Fraction(0)
        for k, o, promised, squared, both in zip(
            self.size, self.hits, self.promised, self.squared, self.promised_hits, strict=True
        ):
            if k:
                f, ff, fo = Fraction(promised, unit), Fraction(squared, unit), Fraction(both, unit)
                reliability += (f - o) ** 2 / k
                resolution += k * (Fraction(o, k) - overall) ** 2
                variance += ff - f * f / k
                covariance += 2 * (fo - f * o / k)
        return BrierParts(
            brier=exact.rounded(self.square_errors, n),
            reliability=float(reliability / n),
            resolution=float(resolution / n),
            uncertainty=float(overall * (1 - overall)),
            within_variance=float(variance / n),
            within_covariance=float(covariance / n),
        )


def ece_of(hits: tuple[int, ...] | list[int], promised: tuple[int, ...] | list[int], n: int) -> float:
    """Σ over bins of |Σ correct − Σ confidence| / n, correctly rounded."""
    return exact.rounded(sum(abs((h << exact.UNIT) - f) for h, f in zip(hits, promised, strict=True)), n)


def _added(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))
