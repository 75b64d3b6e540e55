"""The chart of a check run: pass rates of all rules with their intervals, by model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.protocols.check.compiled import Compiled
from adjudge.protocols.check.sections import Estimates
from adjudge.protocols.common.plan import chart


def build(estimates: Estimates, compiled: Compiled, models: Sequence[str]) -> list[dict[str, Any]]:
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
    return [chart(__package__, "rules", rows=rows, order=order)]
