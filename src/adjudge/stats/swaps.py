"""Paired permutation test of any statistic of summed counts: under "no difference" the two systems could be swapped."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from adjudge.stats._checks import FloatArray
from adjudge.stats.bootstrap import Statistic, generator
from adjudge.stats.paired import ENUMERATE_UP_TO, UNDEFINED_FOR_ONE, PValue, p_value, paired_counts

_CELLS_AT_ONCE = 4_000_000


def swap_test(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    function: Statistic,
    *,
    seed: int,
    stream: str = "swap_test",
    resamples: int = 20_000,
    unit: str = "cluster",
) -> PValue:
    """|f(Σ second) − f(Σ first)| against its values when the two are swapped in a random half of the units.

    `first` and `second` are counts[m, k] of the same m units (samples, clusters), `function` maps (rows, k) to (rows,), NaN
    where undefined. Up to 16 units that differ every swap is counted (exact); above, `resamples` are drawn and p = (1 + as
    extreme) / (1 + drawn) (Phipson & Smyth 2010, Stat Appl Genet Mol Biol 9:39). A swap on which the statistic is undefined
    counts as extreme, which can only make p larger. Row order changes nothing. Null where the statistic is undefined for
    one of the two.
    """
    a, b = paired_counts(first, second)
    if not len(a):
        return PValue(p=None, why="no pairs", method="swap")
    of_a, of_b = (np.array([math.fsum(column) for column in side.T]) for side in (a, b))
    observed = float(np.abs(function(of_b[None, :]) - function(of_a[None, :]))[0])
    if math.isnan(observed):
        return PValue(p=None, why=UNDEFINED_FOR_ONE, method="swap", n=len(a))
    moves, repeats = np.unique((b - a)[(a != b).any(axis=1)], axis=0, return_counts=True)
    if not len(moves):
        return p_value(0.0, method="swap, no unit differs", n=len(a), statistic=0.0)
    # A rounding step below: the same sums in another order count as equal.
    bound = observed - 1e-12 * max(1.0, observed)

    def extreme(swapped: FloatArray) -> int:
        moved = of_a + swapped @ moves
        gap = np.abs(function(of_a + of_b - moved) - function(moved))
        return int(np.count_nonzero((gap >= bound) | np.isnan(gap)))

    units = int(repeats.sum())
    exact = units <= ENUMERATE_UP_TO
    if exact:
        bits = (np.arange(1 << units)[:, None] >> np.arange(units)) & 1
        owner = np.repeat(np.arange(len(moves)), repeats)
        ln_p = math.log(extreme(bits @ (owner[:, None] == np.arange(len(moves))).astype(np.float64)) / (1 << units))
    else:
        random, as_extreme = generator(seed, stream), 0
        block = max(1, _CELLS_AT_ONCE // len(moves))
        for start in range(0, resamples, block):
            rows = min(block, resamples - start)
            as_extreme += extreme(random.binomial(repeats, 0.5, size=(rows, len(moves))).astype(np.float64))
        ln_p = math.log((1 + as_extreme) / (1 + resamples))
    method = ("swap, all patterns" if exact else f"swap, {resamples} patterns") + (f", {unit}s" if unit else "")
    return p_value(ln_p, method=method, n=len(a), statistic=observed, seed=None if exact else seed)
