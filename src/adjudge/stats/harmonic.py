"""Harmonic numbers H(k) = 1 + 1/2 + … + 1/k of many whole numbers at once."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from adjudge.stats._checks import FloatArray

_FIRST = itertools.accumulate((Fraction(1, k) for k in range(1, 64)), initial=Fraction(0))
_TABLE = np.array([float(exact) for exact in _FIRST])


def harmonic(k: FloatArray) -> FloatArray:
    """H(k) of whole k ≥ 0, to the last digits.

    From 64 on by the expansion in x = k + 1/2: H(k) = ln x + γ + 1/(24x²) − 7/(960x⁴) + 31/(8064x⁶) − …, whose next term
    is below 1e-16 there (DeTemple and Wang 1991, J Math Anal Appl 160:149-156).
    """
    x = k + 0.5
    square = 1.0 / (x * x)
    rest = square * (1.0 / 24.0 + square * (-7.0 / 960.0 + square * (31.0 / 8064.0)))
    sums: FloatArray = np.log(x) + (np.euler_gamma + rest)
    small = np.nonzero(k < _TABLE.size)
    sums[small] = _TABLE[k[small].astype(np.int64)]
    return sums
