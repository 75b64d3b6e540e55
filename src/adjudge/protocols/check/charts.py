"""The chart of a check run: pass rates of all rules with their intervals, by model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.protocols.check.compiled import Compiled
from adjudge.protocols.common.charts import chart, intervals, tooltip
from adjudge.stats.estimate import Estimate


def build(
    estimates: Mapping[tuple[str, str], Estimate], compiled: Compiled, models: Sequence[str]
) -> list[dict[str, Any]]:
    """Pass rate of the samples and of every rule."""
    names = ["pass_rate", *(f"{code}.pass_rate" for code in compiled.file.rated)]
    cuts = [("", "all")] if len(models) < 2 else [(f"model={model}", model) for model in models]
    rows = [
        {"rule": "all rules" if name == "pass_rate" else name.removesuffix(".pass_rate"), "model": model, "n": e.n,
         "value": e.value, "low": e.low, "high": e.high}
        for name in names
        for cut, model in cuts
        if (e := estimates.get((cut, name))) is not None and e.value is not None
    ]  # fmt: skip
    order = list(dict.fromkeys(row["rule"] for row in rows))
    axis = {"type": "quantitative", "scale": {"domain": [0, 1]}, "title": "pass rate", "axis": {"format": "%"}}
    return [
        chart(
            "rules",
            "Pass rate of every rule",
            description="Pass rates with their 95 % intervals, over the samples on which a rule could be applied.",
            data={"values": rows},
            facet={"row": {"field": "model", "type": "nominal", "title": None}},
            spec={
                "width": 420,
                "height": {"step": 22},
                "encoding": {
                    "y": {"field": "rule", "type": "nominal", "sort": order, "title": None},
                    "tooltip": tooltip("rule", "model", "value", "low", "high", "n"),
                },
                "layer": intervals(axis, "value", "#2b6ca3"),
            },
        )
    ]
