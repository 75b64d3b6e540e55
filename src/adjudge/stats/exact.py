"""Sums that are correctly rounded and therefore do not depend on the order or the partition of the rows.

A finite double is an integer times 2^-1074. Mantissas are added as integers per exponent (exact in float64 up to 2^26
rows at a time because both halves of a mantissa have at most 27 bits) and joined in a Python integer, which has no
limit. Division of two Python integers is correctly rounded, so sums and means are too.
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from adjudge.stats.estimate import FloatArray, IntArray

UNIT = 1074  # the smallest positive double is 2^-1074
_ROWS = 1 << 26
_HALF = 27
_FEW = 32  # numbers that take less time one by one than the calls for a column


def total(values: npt.ArrayLike, counts: IntArray | None = None) -> int:
    """The exact sum of a column of finite numbers, in units of 2^-1074; each stands there `counts` times, or once."""
    array = np.ascontiguousarray(values, dtype=np.float64).ravel()
    if _repeated(counts):
        return _counted(array, np.zeros(array.size, dtype=np.int64), 1, counts)[0]
    result = 0
    for start in range(0, array.size, _ROWS):
        result += _total(array[start : start + _ROWS])
    return result


def _total(array: FloatArray) -> int:
    if array.size <= _FEW:
        ratios = map(float.as_integer_ratio, array.tolist())  # over powers of two
        return sum(top << (UNIT + 1 - bottom.bit_length()) for top, bottom in ratios)
    high, low, exponent = _split(array)
    highs = np.bincount(exponent, weights=high)
    lows = np.bincount(exponent, weights=low)
    result = 0
    for place in np.flatnonzero((highs != 0) | (lows != 0)).tolist():
        result += ((int(highs[place]) << _HALF) + int(lows[place])) << place
    return result


def group_totals(values: npt.ArrayLike, groups: IntArray, m: int, counts: IntArray | None = None) -> list[int]:
    """The exact sum of each of the groups 0 … m-1, in units of 2^-1074; each value stands there `counts` times."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if _repeated(counts):
        return _counted(array, groups, m, counts)
    totals = [0] * m
    for start in range(0, array.size, _ROWS):
        high, low, exponent = _split(array[start : start + _ROWS])
        base = int(exponent.min())
        span = int(exponent.max()) - base + 1
        key = groups[start : start + _ROWS] * span + (exponent - base)
        if m * span <= 4 * array.size + 4096:
            used: IntArray = np.arange(m * span)
            highs = np.bincount(key, weights=high, minlength=m * span)
            lows = np.bincount(key, weights=low, minlength=m * span)
        else:
            used, place = np.unique(key, return_inverse=True)
            highs = np.bincount(place, weights=high)
            lows = np.bincount(place, weights=low)
        filled = np.flatnonzero((highs != 0) | (lows != 0))
        for k, h, l in zip(used[filled].tolist(), highs[filled].tolist(), lows[filled].tolist(), strict=True):
            totals[k // span] += ((int(h) << _HALF) + int(l)) << (k % span + base)
    return totals


def rounded(units: int, n: int = 1) -> float:
    """`units` of 2^-1074 divided by n, correctly rounded."""
    return units / (n << UNIT)


def sum_of(values: npt.ArrayLike) -> float:
    """The correctly rounded sum of a column."""
    return rounded(total(values))


def mean_of(values: npt.ArrayLike) -> float:
    """The correctly rounded mean of a column that is not empty."""
    array = np.asarray(values, dtype=np.float64)
    return rounded(total(array), array.size)


def group_sums(values: npt.ArrayLike, groups: IntArray, m: int, counts: IntArray | None = None) -> FloatArray:
    """The correctly rounded sum of each group."""
    return np.array([rounded(units) for units in group_totals(values, groups, m, counts)], dtype=np.float64)


def _repeated(counts: IntArray | None) -> TypeGuard[IntArray]:
    """Whether some value does not stand there exactly once."""
    return counts is not None and not bool((counts == 1).all())


def _counted(array: FloatArray, groups: IntArray, m: int, counts: IntArray) -> list[int]:
    """As `group_totals`; whole numbers of 64 bits hold the halves of a mantissa times up to 2^36 rows."""
    totals = [0] * m
    if not array.size:
        return totals
    high, low, exponent = _split(array)
    used, place = np.unique(groups * (2 * UNIT) + exponent, return_inverse=True)
    highs, lows = np.zeros(used.size, dtype=np.int64), np.zeros(used.size, dtype=np.int64)
    np.add.at(highs, place, high.astype(np.int64) * counts)
    np.add.at(lows, place, low.astype(np.int64) * counts)
    for k, h, l in zip(used.tolist(), highs.tolist(), lows.tolist(), strict=True):
        totals[k // (2 * UNIT)] += ((h << _HALF) + l) << (k % (2 * UNIT))
    return totals


def _split(array: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    # value = (high · 2^27 + low) · 2^(exponent - 1074), both halves whole and of the value's sign.
    mantissa, exponent = np.frexp(array)
    place = np.maximum(exponent.astype(np.int64) - 53 + UNIT, 0)
    # A subnormal number has fewer bits: its unit is 2^-1074 itself.
    scaled = np.ldexp(mantissa, np.minimum(exponent.astype(np.int64) + UNIT, 53).astype(np.int32))
    high = np.trunc(scaled * 2.0**-_HALF)
    return high, scaled - high * 2.0**_HALF, place
