"""The charts of a score run: the mean score of every model with its interval, and where the attempts ended."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.base import Measured
from adjudge.protocols.common.plan import Spec, chart

MOST_MODELS = 40


def build(measured: Measured, models: Sequence[str]) -> list[Spec]:
    """Two charts; with very many models of the first ones."""
    shown = list(models)[:MOST_MODELS]
    slices = {f"model={model}": model for model in shown}
    means = [
        {"model": slices[where], "mean": estimate.value, "low": estimate.low, "high": estimate.high}
        for name, where, estimate in measured.estimates
        if name == "mean_score" and where in slices and estimate.value is not None
    ]
    ends = [
        {"model": model, "bucket": bucket, "attempts": measured.buckets[model][bucket], "order": order}
        for model in shown
        for order, bucket in enumerate(BUCKETS)
        if measured.buckets[model][bucket]
    ]
    return [
        chart(__package__, "mean_score", rows=means),
        chart(__package__, "buckets", rows=ends, buckets=list(BUCKETS)),
    ]
