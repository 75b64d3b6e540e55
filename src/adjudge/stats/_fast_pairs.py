"""Pairs of label codes counted and squares summed exactly: loops for Numba (extra `fast`), and equal NumPy paths."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from adjudge.stats import exact
from adjudge.stats._checks import FloatArray, IntArray

_SMALL = 200_000  # below this the NumPy path is as quick, and nothing has to be compiled
_LOW = (1 << 27) - 1


def pair_counts(first: npt.NDArray[Any], second: npt.NDArray[Any], k: int) -> IntArray | None:
    """The k by k matrix of pairs, or None where a code lies outside 0 … k−1."""
    kernels = _kernels() if first.size >= _SMALL else None
    if kernels is not None:
        counts = np.zeros((k, k), dtype=np.int64)
        return counts if kernels[0](first, second, counts) else None
    return pair_counts_numpy(first, second, k)


def pair_counts_numpy(first: npt.NDArray[Any], second: npt.NDArray[Any], k: int) -> IntArray | None:
    """The same through bincount."""
    if first.size and not (first.min() >= 0 and first.max() < k and second.min() >= 0 and second.max() < k):
        return None
    key = first.astype(np.int64) * k + second
    return np.bincount(key, minlength=k * k).astype(np.int64).reshape(k, k)


def square_total(errors: FloatArray) -> int:
    """The exact sum of the (rounded) squares of a column, in the units of `exact`."""
    squares = errors * errors
    kernels = _kernels() if errors.size >= _SMALL else None
    if kernels is None:
        return exact.total(squares)
    high, low = np.zeros(2048, dtype=np.int64), np.zeros(2048, dtype=np.int64)
    kernels[1](squares.view(np.int64), high, low)
    result = 0
    for place in np.flatnonzero(high | low).tolist():
        # An exponent field of 0 (subnormal) and of 1 share the unit 2^-1074.
        result += ((int(high[place]) << 27) + int(low[place])) << max(place - 1, 0)
    return result


@functools.cache
def _kernels() -> tuple[Callable[..., bool], Callable[..., None]] | None:
    try:
        import numba
    except ImportError:
        return None

    @numba.njit(nogil=True)
    def pairs(first: Any, second: Any, counts: Any) -> bool:
        k = counts.shape[0]
        for i in range(first.size):
            a, b = first[i], second[i]
            if a < 0 or a >= k or b < 0 or b >= k:
                return False
            counts[a, b] += 1
        return True

    @numba.njit(nogil=True)
    def halves(bits: Any, high: Any, low: Any) -> None:
        # Bits of doubles that are not negative: mantissas added per exponent, in two halves of 26 and 27 bits.
        for i in range(bits.size):
            place = bits[i] >> 52
            mantissa = bits[i] & ((1 << 52) - 1)
            if place:
                mantissa |= 1 << 52
            high[place] += mantissa >> 27
            low[place] += mantissa & _LOW

    return pairs, halves
