"""The true share behind an imperfect judge, from what the judge says of all and from a truth that is known for some.

Corrected for sensitivity and specificity: Rogan and Gladen 1978, American Journal of Epidemiology 107:71-76, with the
interval of Lang and Reiczigel 2014, Preventive Veterinary Medicine 113:13-22, which takes into account that sensitivity
and specificity are themselves estimated.

PPI++: θ = λ · mean f(all others) + mean (Y − λ·f)(labelled), with λ = Cov(Y, f) / ((1 + n/N) · Var f) over n labelled and N
other samples, kept between 0 and 1 (Angelopoulos, Duchi, Zrnic 2023, arXiv:2311.01453, §6 and its example of the mean). A
judge that says nothing gets λ = 0 and the labelled mean remains; the interval is at most as wide, to first order.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from adjudge.stats.estimate import (
    Estimate,
    FloatArray,
    check_same_length,
    checked_column,
    checked_count,
    checked_level,
    checked_successes,
    cluster_codes,
)
from adjudge.stats.proportions import normal_quantile, student_quantile

METHOD = "Rogan-Gladen, Lang-Reiczigel interval"


def rogan_gladen(
    positive: int,
    n: int,
    *,
    true_positive: int,
    false_negative: int,
    true_negative: int,
    false_positive: int,
    level: float = 0.95,
) -> Estimate:
    """(apparent + Sp − 1)/(Se + Sp − 1), cut to [0, 1], of `positive` among `n` rows that the judge labelled.

    The four counts are the judge against the truth on rows where the truth is known. Null where Se + Sp ≤ 1: such a
    judge says nothing about the truth. The interval treats the n rows and the four counts as independent samples.
    """
    hits, trials = checked_successes(positive, n, "positive")
    level = checked_level(level)
    tp, fn, tn, fp = (
        checked_count(value, name)
        for value, name in (
            (true_positive, "true_positive"),
            (false_negative, "false_negative"),
            (true_negative, "true_negative"),
            (false_positive, "false_positive"),
        )
    )
    n_se, n_sp = tp + fn, tn + fp
    for missing, why in (
        (trials == 0, "no rows were judged"),
        (n_se == 0, "the truth has no positives"),
        (n_sp == 0, "the truth has no negatives"),
    ):
        if missing:
            return Estimate.null(why, n=trials, level=level, method=METHOD)
    youden = tp / n_se + tn / n_sp - 1.0
    if youden <= 0.0:
        return Estimate.null("sensitivity + specificity ≤ 1: the judge does not know better than chance", n=trials)
    value = min(1.0, max(0.0, (hits / trials + tn / n_sp - 1.0) / youden))
    low, high = _lang_reiczigel(hits, trials, tp, n_se, tn, n_sp, level)
    warnings = () if low <= value <= high else ("the value lies outside its interval: too few rows with a known truth",)
    return Estimate(value=value, low=low, high=high, level=level, n=trials, method=METHOD, warnings=warnings)


def _lang_reiczigel(hits: int, n: int, tp: int, n_se: int, tn: int, n_sp: int, level: float) -> tuple[float, float]:
    z = normal_quantile(0.5 + level / 2.0)
    size, size_se, size_sp = n + z * z, n_se + 2, n_sp + 2
    apparent, se, sp = (hits + z * z / 2.0) / size, (tp + 1) / size_se, (tn + 1) / size_sp
    gain = se + sp - 1.0
    if gain <= 0.0:
        return 0.0, 1.0
    share = (apparent + sp - 1.0) / gain
    var_se, var_sp = se * (1.0 - se) / size_se, sp * (1.0 - sp) / size_sp
    shift = 2.0 * z * z * (share * var_se - (1.0 - share) * var_sp)
    half = z * math.sqrt(apparent * (1.0 - apparent) / size + share**2 * var_se + (1.0 - share) ** 2 * var_sp) / gain
    low, high = (min(1.0, max(0.0, share + shift + side * half)) for side in (-1.0, 1.0))
    return low, high


FEW_LABELS = 30


def ppi_mean(
    labels: npt.ArrayLike,
    judged: npt.ArrayLike,
    others: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """The share of truths: `labels` and `judged` of the labelled samples, and the judge's `others` without a label.

    `clusters` are those of the labelled samples, then of the others: the variance is that of what each cluster adds.
    """
    truth, verdict = checked_column(labels, "labels"), checked_column(judged, "judged")
    rest = checked_column(others, "others")
    check_same_length(truth.size, verdict.size, "judged")
    level = checked_level(level)
    n, total = truth.size, rest.size
    if n < 2:
        return Estimate.null(f"{n} labelled samples; two or more are needed", n=n, level=level, method="PPI++")
    if not total:
        why = "every sample is labelled: the labelled mean needs no help"
        return Estimate.null(why, n=n, level=level, method="PPI++")
    tuning = power_tuning(truth, verdict, rest)
    value = tuning * _mean(rest) + _mean(truth - tuning * verdict)
    corrected = truth - tuning * verdict
    variance, units = _variance(corrected) / n + tuning**2 * _variance(rest) / total, n
    if clusters is not None:
        codes, m = cluster_codes(clusters, n + total)
        adds = np.concatenate([(corrected - _mean(corrected)) / n, tuning * (rest - _mean(rest)) / total])
        units = int(np.unique(codes[:n]).size)
        if units < 2:
            return Estimate.null("the labelled samples are of one cluster", n=n, level=level, method="PPI++")
        variance = m / (m - 1) * math.fsum(np.bincount(codes, weights=adds) ** 2)
    half = student_quantile(units - 1.0, 0.5 + level / 2.0) * math.sqrt(variance)
    value, low, high = (min(1.0, max(0.0, end)) for end in (value, value - half, value + half))
    what = "labelled samples" if clusters is None else "clusters with labels"
    warning = f"only {units} {what}: an interval over fewer than {FEW_LABELS} is a rough guide"
    few = (warning,) if units < FEW_LABELS else ()
    method = f"PPI++, tuning {tuning:.6g}, {n} labelled of {n + total}"
    method += "" if clusters is None else f", {units} clusters labelled"
    return Estimate(value=value, low=low, high=high, level=level, n=n, method=method, warnings=few)


def power_tuning(truth: FloatArray, verdict: FloatArray, others: FloatArray) -> float:
    """λ: how much of the judge's mean to use; 0 where its verdicts do not vary."""
    spread = _variance(np.concatenate([verdict, others]))
    if spread <= 0.0:
        return 0.0
    shared = math.fsum((truth - _mean(truth)) * (verdict - _mean(verdict))) / (truth.size - 1)
    return min(1.0, max(0.0, shared / ((1.0 + truth.size / others.size) * spread)))


def _mean(values: FloatArray) -> float:
    return math.fsum(values) / values.size


def _variance(values: FloatArray) -> float:
    return math.fsum((values - _mean(values)) ** 2) / (values.size - 1) if values.size > 1 else 0.0
