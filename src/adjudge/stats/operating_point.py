"""From which confidence on may answers be trusted? Thresholds chosen on calibration data, with a finite-sample promise.

The promise holds for independent rows drawn like the rows to come, whatever the distribution, because thresholds are
tested in an order that was fixed before the data were seen:

- At a fixed threshold t the errors among the k answered rows are Binomial(k, R(t)), so P(Binomial(k, target) ≤ errors)
  is an exact p value for "R(t) is above the target".
- Thresholds are tested from the highest down by the fallback procedure (Wiens 2003, Pharm Stat 2:211-215): threshold j
  has the share w_j of δ = 1 − level, and a rejected one hands its level on: α_j = w_j·δ + α_{j−1}·[j−1 rejected].
- Why picking the best of the rejected thresholds is safe: look at the first threshold j that is rejected though its
  error is above the target. The earlier ones of that kind were not rejected and handed nothing on, so α_j is at most δ
  times the weights after the last of them. These stretches of the order are fixed and do not overlap, so the chances of
  all such j add up to at most δ·Σw = δ.

One start (all weight on the first threshold) is fixed-sequence testing; several starts keep a chance where the highest
thresholds have too few rows to be decided. Testing every observed confidence and taking the best has no such promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats.estimate import Estimate, FloatArray, check_same_length, checked_column, checked_flags, checked_level
from adjudge.stats.proportions import wilson

Of = Literal["answered", "all"]
STARTS = (0.99, 0.95, 0.9, 0.8, 0.5)


class OperatingPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Answer at `threshold` and above. Null threshold: no threshold could be shown to meet the target, and `why`.

    `bound` is the exact upper bound of the error at the level at which the threshold was tested, never above `target`.
    """

    threshold: float | None
    target: float
    level: float
    n: int
    of: Of
    answered: int = 0
    errors: int = 0
    coverage: Estimate | None = None
    bound: float | None = None
    why: str | None = None


class CostPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Answer at `threshold` and above (null: review everything), with the mean cost a row on the calibration data."""

    threshold: float | None
    cost: float
    cost_answer_all: float
    cost_review_all: float
    answered: int
    n: int


def decimal_thresholds() -> FloatArray:
    """1, then .9999 … .9991, .999 … .991, .99 … .01, 0: falling, finer towards 1, the same for every data set."""
    fine = [(10**digits - step) / 10**digits for digits in (4, 3) for step in range(1, 10)]
    return np.array([1.0, *fine, *(k / 100 for k in range(99, -1, -1))])


def operating_point(
    confidence: npt.ArrayLike,
    wrong: npt.ArrayLike,
    *,
    target: float,
    level: float = 0.95,
    of: Of = "answered",
    thresholds: Sequence[float] | FloatArray | None = None,
    starts: Sequence[float] | None = None,
) -> OperatingPoint:
    """The lowest threshold whose error is below `target` with probability `level` over calibration files.

    `of="answered"`: the error among answered rows. `of="all"`: answered errors over all rows given, such as the slip
    rate when the rows are the fakes. `thresholds` (falling) and `starts` (some of them, which share 1 − level
    equally) must not be taken from these rows; by default the decimal grid and .99, .95, .9, .8, .5, or its top where
    `of="all"`, whose error can only grow as the threshold falls. Rows must be independent: one row a sample.
    """
    c = checked_column(confidence, "confidence")
    bad = checked_flags(wrong, "wrong", c.size)
    delta = 1.0 - checked_level(level)
    if not 0.0 < target < 1.0:
        raise StatsError(f"target {target!r} is not between 0 and 1")
    if of not in {"answered", "all"}:
        raise StatsError(f"the error is of answered or of all rows, not of {of!r}")
    grid = decimal_thresholds() if thresholds is None else checked_column(thresholds, "thresholds")
    if grid.size == 0 or (np.diff(grid) >= 0).any():
        raise StatsError("thresholds must fall from the first to the last")
    weights = _weights(grid, starts, of, default=thresholds is None)
    chosen, alpha = _fallback(*_counts(c, bad, grid, of), target, weights * delta)
    if chosen is None:
        why = "no threshold could be shown to keep the error below the target on so few rows or so many errors"
        return OperatingPoint(
            threshold=None, target=target, level=level, n=c.size, of=of, why=why if c.size else "no calibration rows"
        )
    from scipy.special import betaincinv

    inside = c >= grid[chosen]
    answered, errors = int(inside.sum()), int(bad[inside].sum())
    base = answered if of == "answered" else c.size
    return OperatingPoint(
        threshold=float(grid[chosen]),
        target=target,
        level=level,
        n=c.size,
        of=of,
        answered=answered,
        errors=errors,
        coverage=wilson(answered, c.size, level=level),
        bound=float(betaincinv(errors + 1, base - errors, 1.0 - alpha)),
    )


def cheapest_point(
    confidence: npt.ArrayLike, cost_if_answered: npt.ArrayLike, *, review_cost: float
) -> CostPoint | None:
    """The threshold with the least mean cost on the calibration data; None without rows.

    `cost_if_answered` is each row's cost if its answer is used (the slip's, the false flag's, or 0), `review_cost`
    that of sending it to a person. At equal cost the lower threshold, that is more answers. This is an estimate
    without a guarantee.
    """
    c = checked_column(confidence, "confidence")
    cost = checked_column(cost_if_answered, "cost_if_answered")
    check_same_length(c.size, cost.size, "cost_if_answered")
    if not np.isfinite(review_cost):
        raise StatsError(f"review cost {review_cost!r} is not a number")
    n = c.size
    if n == 0:
        return None
    order = np.lexsort((cost, -c))
    ordered = c[order]
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    spent = np.cumsum(cost[order])[last] + review_cost * (n - 1 - last)
    every = np.append(review_cost * n, spent)
    # The last of equal minima: reversed, argmin finds it first.
    best = every.size - 1 - int(np.argmin(every[::-1]))
    return CostPoint(
        threshold=None if best == 0 else float(ordered[last[best - 1]]),
        cost=float(every[best]) / n,
        cost_answer_all=float(every[-1]) / n,
        cost_review_all=float(review_cost),
        answered=0 if best == 0 else int(last[best - 1]) + 1,
        n=n,
    )


def _weights(grid: FloatArray, starts: Sequence[float] | None, of: Of, *, default: bool) -> FloatArray:
    """The share of 1 − level that each threshold holds at first."""
    weights = np.zeros(grid.size)
    if starts is None:
        starts = STARTS if default and of == "answered" else (float(grid[0]),)
    places = [int(np.flatnonzero(grid == start)[0]) for start in starts if (grid == start).any()]
    if not starts or len(set(places)) != len(starts):
        raise StatsError(f"starts {tuple(starts)!r} must be some of the thresholds, each once")
    weights[places] = 1.0 / len(places)
    return weights


def _counts(
    c: FloatArray, bad: npt.NDArray[np.bool_], grid: FloatArray, of: Of
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows that the error is of, and errors, at each threshold."""
    answered = c.size - np.searchsorted(np.sort(c), grid)
    wrong = np.sort(c[bad])
    errors = wrong.size - np.searchsorted(wrong, grid)
    return (answered if of == "answered" else np.full(grid.size, c.size)), errors


def _fallback(
    rows: npt.NDArray[np.int64], errors: npt.NDArray[np.int64], target: float, levels: FloatArray
) -> tuple[int | None, float]:
    """The last rejected place in the fixed order and the level it was tested at."""
    from scipy.special import betainc

    # P(Binomial(k, target) ≤ e) = I_{1−target}(k − e, e + 1), and 1 where e = k.
    p = np.where(rows > errors, betainc(np.maximum(rows - errors, 1), errors + 1.0, 1.0 - target), 1.0)
    chosen, at, carried = None, 0.0, 0.0
    for place, share in enumerate(levels.tolist()):
        alpha = share + carried
        rejected = alpha > 0.0 and p[place] <= alpha
        carried = alpha if rejected else 0.0
        if rejected:
            chosen, at = place, alpha
    return chosen, at
