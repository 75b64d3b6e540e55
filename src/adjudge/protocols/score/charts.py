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
    means = [
        {
            "model": named.slice.partition("=")[2],
            "mean": named.estimate.value,
            "low": named.estimate.low,
            "high": named.estimate.high,
        }
        for named in measured.estimates
        if named.name == "mean_score" and named.slice.startswith("model=") and named.estimate.value is not None
    ]
    ends = [
        {"model": model, "bucket": bucket, "attempts": measured.buckets[model][bucket], "order": order}
        for model in shown
        for order, bucket in enumerate(BUCKETS)
        if measured.buckets[model][bucket]
    ]
    return [
        chart(__package__, "mean_score", rows=[row for row in means if row["model"] in set(shown)]),
        chart(__package__, "buckets", rows=ends, buckets=list(BUCKETS)),
    ]
