"""Thresholds on scores: one that clean scores exceed rarely, and the first size that is detected."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import _checks
from adjudge.stats._checks import FloatArray
from adjudge.stats.ranked import largest_allowed


def exceeded_by_at_most(scores: npt.ArrayLike, target: float) -> float:
    """The smallest score of the column of which at most target · n scores lie strictly above; no interpolation."""
    column = _checks.column(scores, "scores")
    if column.size == 0:
        raise StatsError("a threshold needs scores")
    if not 0.0 < target < 1.0:
        raise StatsError(f"target {target!r} is not between 0 and 1")
    allowed = int(largest_allowed(np.array([column.size]), target)[0])
    place = column.size - 1 - min(allowed, column.size - 1)
    return float(np.partition(column, place)[place])


def needed(target: float) -> int:
    """How many scores a threshold at this share needs: with fewer, not one may lie above it."""
    return math.ceil(1.0 / target - 1e-9)


def first_reaching(sizes: npt.ArrayLike, hits: npt.ArrayLike, totals: npt.ArrayLike, target: float) -> float | None:
    """The smallest size whose share of hits, fitted to never fall with the size, is at least the target; else None.

    Isotonic regression weighted by the totals (Barlow et al. 1972); no extrapolation, no interpolation.
    """
    from scipy.optimize import isotonic_regression

    where, share_of = np.unique(_checks.column(sizes, "sizes"), return_inverse=True)
    hits_of_size = np.bincount(share_of, weights=np.asarray(hits, dtype=np.float64), minlength=where.size)
    out_of = np.bincount(share_of, weights=np.asarray(totals, dtype=np.float64), minlength=where.size)
    used = out_of > 0
    if not used.any():
        return None
    fitted: FloatArray = isotonic_regression(hits_of_size[used] / out_of[used], weights=out_of[used]).x
    reached = np.flatnonzero(fitted >= target - 1e-12)
    return float(where[used][reached[0]]) if reached.size else None
