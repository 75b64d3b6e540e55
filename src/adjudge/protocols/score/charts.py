"""The charts of a score run: the mean score of every model with its interval, and where the attempts ended."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.base import Measured
from adjudge.protocols.common.charts import Spec, chart, intervals, tooltip

MOST_MODELS = 40
_COLOURS = ("#2a9d8f", "#e76f51", "#e9c46a", "#8d99ae", "#9d4edd", "#adb5bd")


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
    y = {"field": "model", "type": "nominal", "title": None, "sort": None}
    axis = {"type": "quantitative", "title": "mean score over all attempts"}
    return [
        chart(
            "mean_score",
            "Mean score, what has none counting 0, with its interval",
            data={"values": [row for row in means if row["model"] in set(shown)]},
            encoding={"y": y},
            layer=intervals(axis, "mean", "#264653", tooltip=tooltip("model", "mean", "low", "high")),
        ),
        chart(
            "buckets",
            "Where the attempts ended",
            data={"values": ends},
            mark={"type": "bar"},
            encoding={
                "y": y,
                "x": {"field": "attempts", "type": "quantitative", "stack": "zero", "title": "attempts"},
                "color": {
                    "field": "bucket",
                    "type": "nominal",
                    "scale": {"domain": list(BUCKETS), "range": list(_COLOURS)},
                    "title": None,
                },
                "order": {"field": "order"},
                "tooltip": tooltip("model", "bucket", "attempts"),
            },
        ),
    ]
