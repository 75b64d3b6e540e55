"""The true share behind an imperfect judge: an apparent share corrected for sensitivity and specificity.

Value: Rogan and Gladen 1978, American Journal of Epidemiology 107:71-76. Interval: Lang and Reiczigel 2014, Preventive
Veterinary Medicine 113:13-22, which takes into account that sensitivity and specificity are themselves estimated.
"""

from __future__ import annotations

import math

from adjudge.stats import _checks
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import normal_quantile

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
    hits, trials = _checks.successes(positive, n, "positive")
    level = _checks.level(level)
    tp, fn, tn, fp = (
        _checks.count(value, name)
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
