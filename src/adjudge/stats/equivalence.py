"""Is a difference small enough not to matter? Two one-sided tests, the interval inside a margin, and the verdict."""

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


def tost_paired_proportions(only_first: int, only_second: int, n: int, margin: float) -> PValue:
    """Two one-sided tests that the difference of two accuracies on the same n samples lies within ±margin.

    z = (margin − |b − c|/n) / se, se² = (b + c)·(1 − margin²·n/(b + c))/n² held under the margin as the truth: the
    score form with the observed share of discordant pairs, which is not 0 where b = c. Null without discordant pairs.
    """
    b, c = _checks.count(only_first, "only_first"), _checks.count(only_second, "only_second")
    pairs = _checks.count(n, "n")
    if b + c > pairs:
        raise StatsError(f"{b + c} discordant pairs among {pairs} samples")
    margin = _margin(margin)
    if b + c == 0:
        return PValue(p=None, why="no discordant pairs", n=pairs, method="TOST, paired proportions")
    from scipy.special import log_ndtr

    # A true difference of `margin` needs at least that share of discordant pairs.
    discordant = max((b + c) / pairs, margin)
    error = math.sqrt((discordant - margin**2) / pairs)
    gap = margin - abs(b - c) / pairs
    z = gap / error if error > 0 else math.copysign(math.inf, gap)
    return p_value(float(log_ndtr(-z)), method="TOST, paired proportions", n=pairs, statistic=z)


def inside_margin(difference: Estimate, margin: float) -> bool | None:
    """Whether the whole interval of a difference lies within ±margin; None without an interval."""
    margin = _margin(margin)
    if difference.low is None or difference.high is None:
        return None
    return -margin < difference.low and difference.high < margin


def verdict(difference: Estimate, *, margin: float | None = None, higher_is_better: bool = True) -> Outcome:
    """What the interval of a difference (new − old) says.

    `equivalent` where it lies inside the stated margin, even if it leaves out 0: a difference that small was said not
    to matter. Else `better` or `worse` where it leaves out 0; else, and without an interval, `inconclusive`.
    """
    if difference.low is None or difference.high is None:
        return "inconclusive"
    if margin is not None and inside_margin(difference, margin):
        return "equivalent"
    if difference.low > 0.0:
        return "better" if higher_is_better else "worse"
    if difference.high < 0.0:
        return "worse" if higher_is_better else "better"
    return "inconclusive"


def _margin(margin: float) -> float:
    if not (math.isfinite(margin) and margin > 0.0):
        raise StatsError(f"margin {margin!r} is not a positive number")
    return float(margin)
