"""Pairs of label codes counted and squares summed exactly: loops for Numba (extra `fast`), and equal NumPy paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adjudge.stats import _fast, exact
from adjudge.stats._checks import FloatArray, IntArray

_SMALL = 200_000  # below this the NumPy path is as quick, and nothing has to be compiled
_CACHED = 1 << 15  # rows whose squares stay in the cache between two passes


def pair_counts(
    first: npt.NDArray[Any], second: npt.NDArray[Any], k: int, *, fast: bool | None = None
) -> IntArray | None:
    """The k by k matrix of pairs, or None where a code lies outside 0 … k−1."""
    loop = _fast.kernel(_count_pairs, fast=fast) if fast or first.size >= _SMALL else None
    if loop is not None:
        counts = np.zeros((k, k), dtype=np.int64)
        return counts if loop(first, second, counts) else None
    if first.size and not (first.min() >= 0 and first.max() < k and second.min() >= 0 and second.max() < k):
        return None
    key = first.astype(np.int64) * k + second
    return np.bincount(key, minlength=k * k).astype(np.int64).reshape(k, k)


def square_total(first: npt.NDArray[Any], second: npt.NDArray[Any], *, fast: bool | None = None) -> int:
    """The exact sum of the (rounded) squares (first − second)², in the units of `exact`."""
    loop = _fast.kernel(_add_halves, fast=fast) if fast or first.size >= _SMALL else None
    if loop is None:
        difference = np.asarray(first - second, dtype=np.float64)
        return exact.total(difference * difference)
    high, low = np.zeros(2048, dtype=np.int64), np.zeros(2048, dtype=np.int64)
    for start in range(0, first.size, _CACHED):
        part: FloatArray = np.subtract(
            first[start : start + _CACHED], second[start : start + _CACHED], dtype=np.float64
        )
        part *= part
        loop(part.view(np.int64), high, low)
    result = 0
    for place in np.flatnonzero(high | low).tolist():
        # An exponent field of 0 (subnormal) and of 1 share the unit 2^-1074.
        result += ((int(high[place]) << 27) + int(low[place])) << max(place - 1, 0)
    return result


def _count_pairs(first: npt.NDArray[Any], second: npt.NDArray[Any], counts: IntArray) -> bool:
    k = counts.shape[0]
    for i in range(first.size):
        a, b = first[i], second[i]
        if a < 0 or a >= k or b < 0 or b >= k:
            return False
        counts[a, b] += 1
    return True


def _add_halves(bits: IntArray, high: IntArray, low: IntArray) -> None:
    # Bits of doubles that are not negative: mantissas are added per exponent, in halves of 26 and 27 bits.
    for i in range(bits.size):
        place = bits[i] >> 52
        mantissa = bits[i] & ((1 << 52) - 1)
        if place:
            mantissa |= 1 << 52
        high[place] += mantissa >> 27
        low[place] += mantissa & ((1 << 27) - 1)
