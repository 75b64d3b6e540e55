"""PPI++: the mean of a truth known for few samples, helped by a judge's verdict that is known for all.

θ = λ · mean f(all others) + mean (Y − λ·f)(labelled), with λ = Cov(Y, f) / ((1 + n/N) · Var f) over n labelled and N other
samples, kept between 0 and 1 (Angelopoulos, Duchi, Zrnic 2023, arXiv:2311.01453, §6 and its example of the mean). A judge
that says nothing gets λ = 0 and the labelled mean remains; the interval is at most as wide, to first order.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from adjudge.stats import _checks
from adjudge.stats._checks import FloatArray
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import student_quantile

FEW_LABELS = 30


def ppi_mean(labels: npt.ArrayLike, judged: npt.ArrayLike, others: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """The share of truths: `labels` and `judged` of the labelled samples, and the judge's `others` without a label."""
    truth, verdict = _checks.column(labels, "labels"), _checks.column(judged, "judged")
    rest = _checks.column(others, "others")
    _checks.same_length(truth.size, verdict.size, "judged")
    level = _checks.level(level)
    n, total = truth.size, rest.size
    if n < 2:
        return Estimate.null(f"{n} labelled samples; two or more are needed", n=n, level=level, method="PPI++")
    if not total:
        return Estimate.null(
            "every sample is labelled: the labelled mean needs no help", n=n, level=level, method="PPI++"
        )
    tuning = power_tuning(truth, verdict, rest)
    value = tuning * _mean(rest) + _mean(truth - tuning * verdict)
    variance = _variance(truth - tuning * verdict) / n + tuning**2 * _variance(rest) / total
    half = student_quantile(n - 1.0, 0.5 + level / 2.0) * math.sqrt(variance)
    value, low, high = (min(1.0, max(0.0, end)) for end in (value, value - half, value + half))
    few = (f"only {n} labelled samples: an interval over fewer than {FEW_LABELS} is a rough guide",)
    return Estimate(
        value=value,
        low=low,
        high=high,
        level=level,
        n=n,
        method=f"PPI++, tuning {tuning:.6g}, {n} labelled of {n + total}",
        warnings=few if n < FEW_LABELS else (),
    )


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
