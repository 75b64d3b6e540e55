"""Models on the same samples: paired differences, Holm-adjusted, with ranks and tie groups; by flight where flights are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.protocols.flight.partials import PAIR_SUMS, PLACE, Partial, compared_models
from adjudge.stats import bootstrap
from adjudge.stats.estimate import Estimate
from adjudge.stats.paired import mcnemar_exact, sign_flip
from adjudge.stats.proportions import newcombe_paired_difference
from adjudge.stats.quantiles import student_quantile
from adjudge.stats.ties import holm, ranking

if TYPE_CHECKING:
    from adjudge.protocols.flight.config import FlightConfig

HOW = "rank: 1 + the models whose first tie group is better"
LEVEL = 0.95


def comparison(whole: Partial, config: FlightConfig, eligibility: dict[str, float | None]) -> dict[str, Any] | None:
    """Every pair of models, and the ranking by eligibility."""
    models = whole.models
    if compared_models(len(models)) < 2:
        return None
    pairs = [_pair(whole, config, a, b) for a in range(len(models)) for b in range(a + 1, len(models))]
    for pair, value in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = value
    matrix = {(pair["a"], pair["b"]): pair["p_holm"] for pair in pairs}
    ranked = ranking(list(models), [eligibility[model] or 0.0 for model in models], matrix)
    return {
        "metric": "eligibility_rate",
        "how": HOW,
        "pairs": pairs,
        "ranking": [
            {"rank": item.rank, "model": item.name, "value": item.score, "tie_groups": list(item.letters)}
            for item in ranked
        ],
    }


def _pair(whole: Partial, config: FlightConfig, a: int, b: int) -> dict[str, Any]:
    sums = dict(zip(PAIR_SUMS, whole.pairs[a, b].T, strict=True))
    counts = whole.sums[a, :, PLACE["n"]]
    n = int(counts.sum())
    only_a, only_b, both = (int(sums[name].sum()) for name in ("only_first", "only_second", "both"))
    label = f"{whole.models[a]}~{whole.models[b]}"
    if whole.clustered:
        gap, total = (
            bootstrap.ratio_of_sums(
                column,
                counts,
                n=n,
                unit="flight",
                seed=config.seed,
                stream=f"{label}/{name}",
                resamples=config.resamples,
            )
            for name, column in (("eligible", sums["only_first"] - sums["only_second"]), ("total", sums["total"]))
        )
        flips = sums["only_first"] - sums["only_second"]
        test = sign_flip(flips, seed=config.seed, stream=f"{label}/signs", clusters=np.arange(flips.size))
    else:
        gap = newcombe_paired_difference(both, only_a, only_b, n - both - only_a - only_b)
        total = _mean_difference(float(sums["total"].sum()), float(sums["total_squared"].sum()), n)
        test = mcnemar_exact(only_a, only_b)
    return {
        "a": whole.models[a],
        "b": whole.models[b],
        "n": n,
        "eligible_only_a": only_a,
        "eligible_only_b": only_b,
        "eligibility_difference": gap.to_dict(),
        "total_difference_all": total.to_dict(),
        "p": test.p,
        "log10_p": test.log10_p,
        "test": test.method,
    }


def _mean_difference(total: float, squares: float, n: int) -> Estimate:
    """The mean of paired differences with Student's interval, samples taken as independent."""
    method = "paired t, by sample"
    if n < 2:
        return Estimate(value=total / n, n=n, method=method) if n else Estimate.null("no samples", method=method)
    mean = total / n
    spread = max(0.0, squares - n * mean * mean) / (n - 1)
    half = student_quantile(n - 1, 0.5 + LEVEL / 2) * (spread / n) ** 0.5
    return Estimate(value=mean, low=mean - half, high=mean + half, level=LEVEL, n=n, method=method)
