"""Do many raters agree beyond chance? Fleiss' κ and Krippendorff's α, with intervals over items.

Both work on a table of whole counts: one row an item, one column a label, how many raters gave the item that label.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, Unpack

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import _checks
from adjudge.stats._checks import FloatArray, IntArray
from adjudge.stats.agreement import zero_width
from adjudge.stats.bootstrap import Drawing, level_of
from adjudge.stats.cells import multinomial_cells
from adjudge.stats.estimate import Estimate
from adjudge.stats.replicates import quotient

Metric = Literal["nominal", "ordinal"]


def fleiss_kappa(counts: npt.ArrayLike, **drawing: Unpack[Drawing]) -> Estimate:
    """Fleiss' κ of items that each have the same number of ratings, with a bootstrap interval over items.

    κ = (P̄ − Pe)/(1 − Pe), P̄ the mean share of agreeing pairs an item, Pe = Σ p² (Fleiss 1971, Psychol Bull
    76:378-382). Null when every rating is one label (1 − Pe = 0).
    """
    table, level = _table(counts), level_of(drawing)
    if len(table) == 0:
        return Estimate.null("no items", level=level)
    raters = int(table[0].sum())
    if raters < 2 or (table.sum(axis=1) != raters).any():
        raise StatsError(
            "Fleiss' κ needs the same number of ratings, at least two, on every item; use Krippendorff's α"
        )
    patterns, repeats = np.unique(table, axis=0, return_counts=True)
    pairs = (patterns * (patterns - 1)).sum(axis=1)
    n = int(repeats.sum())
    totals = [int(total) for total in repeats @ patterns]
    chance = Fraction(sum(total * total for total in totals), (n * raters) ** 2)
    if chance == 1:
        return Estimate.null("every rating is one and the same label (1 − Pe = 0)", n=n, level=level)
    value = (Fraction(int(repeats @ pairs), n * raters * (raters - 1)) - chance) / (1 - chance)
    columns = patterns.astype(np.float64)

    def kappa(drawn: FloatArray) -> FloatArray:
        size = drawn.sum(axis=1)
        expected = ((drawn @ columns) ** 2).sum(axis=1) / (size * raters) ** 2
        agreed = drawn @ pairs.astype(np.float64) / (size * raters * (raters - 1))
        return quotient(agreed - expected, 1.0 - expected)

    estimate = multinomial_cells(repeats, kappa, value=float(value), **drawing)
    return zero_width(estimate, _unanimous(patterns, repeats), n, float(chance))


def krippendorff_alpha(counts: npt.ArrayLike, *, metric: Metric = "nominal", **drawing: Unpack[Drawing]) -> Estimate:
    """Krippendorff's α = 1 − Do/De, with a bootstrap interval over the items that have two ratings or more.

    `metric` is how far two labels are apart: nominal (equal or not) or ordinal (by the ranks between them; the label
    space is in order) (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability). Null when all pairable ratings
    are one label (De = 0).
    """
    table, level = _table(counts), level_of(drawing)
    table = table[table.sum(axis=1) >= 2]
    if len(table) == 0:
        return Estimate.null("no item has two ratings", level=level)
    k = table.shape[1]
    patterns, repeats = np.unique(table, axis=0, return_counts=True)
    raters = patterns.sum(axis=1)
    # The coincidences of one item: n_c·(n_k − [c = k]) / (m − 1).
    coincidences = (
        patterns[:, :, None] * (patterns[:, None, :] - np.eye(k, dtype=np.int64)) / (raters - 1)[:, None, None]
    )
    flat = coincidences.reshape(len(patterns), k * k)

    def alpha(drawn: FloatArray) -> FloatArray:
        observed = (drawn @ flat).reshape(-1, k, k)
        return _alpha(observed, drawn @ patterns.astype(np.float64), metric)

    value = float(alpha(repeats[None, :].astype(np.float64))[0])
    n = int(repeats.sum())
    if not np.isfinite(value):
        return Estimate.null("every pairable rating is one and the same label (De = 0)", n=n, level=level)
    estimate = multinomial_cells(repeats, alpha, value=value, **drawing)
    share = (repeats @ patterns) / float(repeats @ raters)
    return zero_width(estimate, _unanimous(patterns, repeats), n, float((share**2).sum()))


def _alpha(observed: FloatArray, margins: FloatArray, metric: Metric) -> FloatArray:
    """1 − (n − 1)·Σ o δ² / Σ n n δ² for each resample's coincidences (rows, k, k) and label totals (rows, k)."""
    k = margins.shape[1]
    if metric == "nominal":
        distance = np.broadcast_to(1.0 - np.eye(k), observed.shape)
    elif metric == "ordinal":
        # δ = Σ of the totals from c to k, less half of both ends = the difference of mid-ranks.
        rank = np.cumsum(margins, axis=1) - margins / 2.0
        distance = (rank[:, :, None] - rank[:, None, :]) ** 2
    else:
        raise StatsError(f"metric {metric!r} is not one of nominal, ordinal")
    total = margins.sum(axis=1)
    disagreed = (total - 1.0) * (observed * distance).sum(axis=(1, 2))
    expected = np.einsum("rc,rck,rk->r", margins, distance, margins)
    return 1.0 - quotient(disagreed, expected)


def _table(counts: npt.ArrayLike) -> IntArray:
    table = _checks.counts(counts, "rating counts")
    if table.ndim != 2 or table.shape[1] < 1:
        raise StatsError(f"rating counts have one row an item and one column a label, not the shape {table.shape}")
    return table


def _unanimous(patterns: IntArray, repeats: IntArray) -> int:
    return int(repeats[patterns.max(axis=1) == patterns.sum(axis=1)].sum())
