"""Is a difference small enough not to matter? Two one-sided tests, and the interval inside a margin."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import _checks
from adjudge.stats.estimate import Estimate
from adjudge.stats.paired import PValue, p_value

Outcome = Literal["better", "worse", "equivalent", "inconclusive"]


def tost_mean(differences: npt.ArrayLike, margin: float) -> PValue:
    """Two one-sided t tests that the mean paired difference lies within ±margin; p is the larger of the two.

    Schuirmann 1987, J Pharmacokinet Biopharm 15:657-680. Rejecting at α is the same as the 1 − 2α t interval lying
    inside the margin. Null with fewer than two differences, or where they are all equal.
    """
    d = np.sort(_checks.column(differences, "differences"))
    margin = _margin(margin)
    if d.size < 2 or d[0] == d[-1]:
        why = "fewer than two differences" if d.size < 2 else "all differences are equal, so their spread is unknown"
        return PValue(p=None, why=why, n=d.size, method="TOST, paired t")
    from scipy.stats import t

    error = float(np.std(d, ddof=1)) / math.sqrt(d.size)
    gap = margin - abs(float(np.mean(d)))
    return p_value(float(t.logsf(gap / error, d.size - 1)), method="TOST, paired t", n=d.size, statistic=gap / error)


def inside_margin(difference: Estimate, margin: float) -> bool | None:
    """Whether the whole interval of a difference lies within ±margin; None without an interval."""
    margin = _margin(margin)
    if difference.low is None or difference.high is None:
        return None
    return -margin < difference.low and difference.high < margin


def _margin(margin: float) -> float:
    if not (math.isfinite(margin) and margin > 0.0):
        raise StatsError(f"margin {margin!r} is not a positive number")
    return float(margin)
