"""Do raters agree beyond chance? Percent agreement, Cohen's κ, Gwet's AC1 of two; Fleiss' κ and Krippendorff's α of many.

Two raters are a confusion matrix of whole counts: rows the first rater's label, columns the second's. Many are a table
of whole counts: one row an item, one column a label, how many raters gave the item that label. Values come from exact
integers, so row order and partition change no bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, Unpack

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats.bootstrap import Drawing, level_of, multinomial_cells
from adjudge.stats.estimate import Estimate, FloatArray, IntArray, check_same_length, checked_counts, checked_level
from adjudge.stats.proportions import normal_quantile, wilson
from adjudge.stats.resampling import quotient

Weights = Literal["unweighted", "linear", "quadratic"]
Disagreement = Sequence[Sequence[int]] | npt.NDArray[np.integer]
"""How grave each confusion is, in whole numbers; 0 on the diagonal."""
ONE_LABEL = "both raters gave one and the same label to every item, so chance alone agrees fully (1 − Pe = 0)"


class LabelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How one label fares: `agreement` is 2·both / (first + second); the indices set this label against the rest."""

    agreement: Estimate
    prevalence_index: float | None
    bias_index: float | None


def pair_counts(first: npt.ArrayLike, second: npt.ArrayLike, k: int) -> IntArray:
    """The confusion matrix of two columns of label codes 0 … k−1."""
    a, b = np.ascontiguousarray(first), np.ascontiguousarray(second)
    if a.dtype.kind not in "iu" or b.dtype.kind not in "iu" or a.ndim != 1:
        raise StatsError("label codes are one column of whole numbers")
    check_same_length(a.size, b.size, "the second rater")
    if a.size and not (min(a.min(), b.min()) >= 0 and max(a.max(), b.max()) < k):
        raise StatsError(f"a label code is outside the label space 0 … {k - 1}")
    return np.bincount(a.astype(np.int64) * k + b.astype(np.int64), minlength=k * k).reshape(k, k)


def percent_agreement(matrix: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """The share of items with equal labels, with Wilson's interval."""
    table = _square(matrix)
    return wilson(int(np.trace(table)), int(table.sum()), level=level)


def cohen_kappa(
    matrix: npt.ArrayLike, *, weights: Weights | Disagreement = "unweighted", level: float = 0.95
) -> Estimate:
    """Cohen's κ = (Po − Pe)/(1 − Pe) with the large-sample interval; null when 1 − Pe = 0.

    Weighted: κ = 1 − N·Σ v n / Σ v r c with disagreement weights v = |i − j|, (i − j)² or one's own (Cohen 1968,
    Psychol Bull 70:213-220). Variance: Fleiss, Cohen, Everitt 1969, Psychol Bull 72:323-327. Under perfect agreement
    that variance is 0; the interval is then Wilson's for the agreement, carried over with Pe held fixed.
    """
    table = _square(matrix)
    v = disagreement(len(table), weights)
    exact = _kappa_exact(table, v)
    n = int(table.sum())
    if exact is None:
        return Estimate.null(ONE_LABEL if n else "no items", n=n, level=checked_level(level), method="analytic")
    value = float(exact)
    p = table / n
    w = 1.0 - v / max(1, int(v.max()))
    row, column = p.sum(axis=1), p.sum(axis=0)
    chance = float(row @ w @ column)
    gradient = (w - (1.0 - value) * ((w @ column)[:, None] + (row @ w)[None, :])) / (1.0 - chance)
    return _delta_interval(table, value, chance, gradient, level)


def cohen_kappa_bootstrap(matrix: npt.ArrayLike, **drawing: Unpack[Drawing]) -> Estimate:
    """Cohen's κ with a bootstrap interval over items."""
    table = _square(matrix)
    v = disagreement(len(table), "unweighted")
    exact = _kappa_exact(table, v)
    n = int(table.sum())
    if exact is None:
        return Estimate.null(ONE_LABEL if n else "no items", n=n, level=level_of(drawing))
    k = len(table)

    def kappa(flat: FloatArray) -> FloatArray:
        counts = flat.reshape(-1, k, k)
        expected = np.einsum("ri,ij,rj->r", counts.sum(axis=2), v, counts.sum(axis=1))
        observed = counts.sum(axis=(1, 2)) * np.einsum("rij,ij->r", counts, v)
        return 1.0 - quotient(observed, expected)

    estimate = multinomial_cells(table.ravel(), kappa, value=float(exact), **drawing)
    chance = 1.0 - float(table.sum(axis=1) @ v.astype(np.float64) @ table.sum(axis=0)) / (n * n)
    return zero_width(estimate, int(np.trace(table)), n, chance)


def gwet_ac1(matrix: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """Gwet's AC1, which does not collapse when one label prevails, with its large-sample interval.

    Pe = Σ π(1 − π)/(q − 1) over the q declared labels, π the mean of the two raters' shares (Gwet 2008, Br J Math Stat
    Psychol 61:29-48). Defined whenever there are items and at least two labels.
    """
    table = _square(matrix)
    n, q = int(table.sum()), len(table)
    if n == 0 or q < 2:
        return Estimate.null("no items" if n == 0 else "one label only", n=n, level=checked_level(level))
    value = float(_ac1_exact(table))
    share, chance = _ac1_chance(table)
    slope = (1.0 - (share[:, None] + share[None, :])) / (q - 1)
    gradient = (np.eye(q) - (1.0 - value) * slope) / (1.0 - chance)
    return _delta_interval(table, value, chance, gradient, level)


def pabak(matrix: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """κ adjusted for prevalence and bias: (q·Po − 1)/(q − 1), chance being 1/q; Wilson's interval of Po carried over.

    Byrt, Bishop, Carlin 1993, J Clin Epidemiol 46:423-429 (q = 2: 2·Po − 1); the same as Brennan & Prediger's
    coefficient.
    """
    table = _square(matrix)
    q, agreed, n = len(table), int(np.trace(table)), int(table.sum())
    share = wilson(agreed, n, level=level)
    if n == 0 or q < 2:
        return Estimate.null("no items" if n == 0 else "one label only", n=n, level=checked_level(level))
    value = float(Fraction(q * agreed - n, (q - 1) * n))
    carried = share.mapped(lambda agreement: (q * agreement - 1.0) / (q - 1))
    return msgspec.structs.replace(carried, value=value, method="wilson of the agreement")


def label_agreement(matrix: npt.ArrayLike, *, level: float = 0.95) -> list[LabelAgreement]:
    """For each label: specific agreement, and the prevalence and bias index of that label against all others.

    Specific agreement is 2·n_ii/(r_i + c_i) (Cicchetti & Feinstein 1990, J Clin Epidemiol 43:551-558), null where
    neither rater used the label; its interval is Wilson's for that share of mentions, which pairs of mentions make
    too narrow, so the mentions count half. Prevalence index (a − d)/N, bias index (b − c)/N (Byrt, Bishop, Carlin
    1993).
    """
    table = _square(matrix)
    n = int(table.sum())
    rows: list[LabelAgreement] = []
    for i in range(len(table)):
        both, first, second = int(table[i, i]), int(table[i].sum()), int(table[:, i].sum())
        rows.append(
            LabelAgreement(
                agreement=Estimate.null("neither rater used the label", level=checked_level(level))
                if first + second == 0
                else wilson(2 * both, first + second, level=level, design_effect=2.0),
                prevalence_index=None if n == 0 else (first + second - n) / n,
                bias_index=None if n == 0 else (first - second) / n,
            )
        )
    return rows


def constant_rater(matrix: npt.ArrayLike, *, level: float = 0.95) -> tuple[Estimate, Estimate]:
    """The best agreement that a rater of one constant label reaches with the first, and with the second rater."""
    table = _square(matrix)
    n = int(table.sum())
    first, second = (wilson(int(margin.max(initial=0)), n, level=level) for margin in (table.sum(1), table.sum(0)))
    return first, second


def disagreement(k: int, weights: Weights | Disagreement) -> IntArray:
    """The disagreement weights of k labels, as whole numbers: a named scheme, or a matrix of one's own."""
    if not isinstance(weights, str):
        table = _square(weights)
        if len(table) != k or np.diagonal(table).any():
            raise StatsError(f"disagreement weights of {k} labels are a {k} by {k} matrix with zeros on its diagonal")
        return table
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    known = {"unweighted": distance > 0, "linear": distance, "quadratic": distance**2}
    if weights not in known:
        raise StatsError(f"weights {weights!r} are not one of {', '.join(known)}")
    return known[weights].astype(np.int64)


def zero_width(estimate: Estimate, agreed: int, n: int, chance: float) -> Estimate:
    """An interval of zero width replaced by Wilson's for the share of full agreement, with Pe held fixed.

    Where every item agrees, no resample and no variance formula sees a disagreement, though one may come next.
    """
    if estimate.low is None or estimate.low != estimate.high or estimate.value is None or n == 0:
        return estimate
    share = wilson(agreed, n, level=estimate.level)
    if share.low is None or share.high is None:
        return estimate
    return msgspec.structs.replace(
        estimate,
        low=max(-1.0, min(estimate.value, (share.low - chance) / (1.0 - chance))),
        high=min(1.0, max(estimate.value, (share.high - chance) / (1.0 - chance))),
        method="wilson of the agreement, chance held fixed",
        seed=None,
    )


def _square(matrix: npt.ArrayLike) -> IntArray:
    table = checked_counts(matrix, "confusion matrix")
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) == 0:
        raise StatsError(f"a confusion matrix of two raters is square over the label space, not {table.shape}")
    return table


def _kappa_exact(table: IntArray, v: IntArray) -> Fraction | None:
    counts, weights = table.astype(object), v.astype(object)
    row, column = counts.sum(axis=1), counts.sum(axis=0)
    expected = int((weights * np.outer(row, column)).sum())
    if expected == 0:
        return None
    return 1 - Fraction(int(counts.sum()) * int((weights * counts).sum()), expected)


def _ac1_chance(table: IntArray) -> tuple[FloatArray, float]:
    """The mean of the two raters' shares of each label, and the agreement by chance that AC1 makes of them."""
    share: FloatArray = (table.sum(axis=0) + table.sum(axis=1)) / (2 * int(table.sum()))
    return share, float((share * (1.0 - share)).sum()) / (len(table) - 1)


def _ac1_exact(table: IntArray) -> Fraction:
    n, q = int(table.sum()), len(table)
    shares = [Fraction(int(count), 2 * n) for count in table.sum(axis=0) + table.sum(axis=1)]
    chance = sum((share * (1 - share) for share in shares), Fraction(0)) / (q - 1)
    return (Fraction(int(np.trace(table)), n) - chance) / (1 - chance)


def _delta_interval(table: IntArray, value: float, chance: float, gradient: FloatArray, level: float) -> Estimate:
    """Value ± z·sqrt(Var), Var = (Σ p g² − (Σ p g)²)/N for the gradient g of the statistic by the cell shares p."""
    level = checked_level(level)
    n = int(table.sum())
    p = table / n
    centred = gradient - float((p * gradient).sum())
    variance = float((p * centred**2).sum()) / n
    half = 0.0 if variance < 1e-30 else normal_quantile(0.5 + level / 2.0) * math.sqrt(variance)
    estimate = Estimate(
        value=value, low=max(-1.0, value - half), high=min(1.0, value + half), level=level, n=n, method="analytic"
    )
    return zero_width(estimate, int(np.trace(table)), n, chance)


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
    table = checked_counts(counts, "rating counts")
    if table.ndim != 2 or table.shape[1] < 1:
        raise StatsError(f"rating counts have one row an item and one column a label, not the shape {table.shape}")
    return table


def _unanimous(patterns: IntArray, repeats: IntArray) -> int:
    return int(repeats[patterns.max(axis=1) == patterns.sum(axis=1)].sum())
