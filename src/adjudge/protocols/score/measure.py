"""The estimates of one block of attempts: means over all and over the scored, rates, pass@k, calibration, labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.score.attempts import Attempts, Floats, Ints
from adjudge.protocols.score.config import ScoreConfig
from adjudge.stats import bootstrap, calibration, selective
from adjudge.stats.estimate import Estimate
from adjudge.stats.exact import sum_of
from adjudge.stats.pass_k import pass_at_k, pass_hat_k
from adjudge.stats.prevalence import ppi_mean
from adjudge.stats.proportions import cluster_wilson, wilson

USUAL_K = (1, 2, 3, 4, 5, 8, 10, 16, 32, 64, 100)
_MOST_CLUSTERS = 20_000  # of a resampled calibration measure
_NOT_BY_CLUSTER = (
    f"more than {_MOST_CLUSTERS:,} clusters: the interval takes attempts as independent and may be too narrow"
)
_STATUS_RATES = {
    "error_rate": "errored",
    "abstain_rate": "abstained",
    "unparsed_rate": "unparsed",
    "missing_rate": "missing",
}


@dataclass(frozen=True)
class Block:
    """Some attempts of one model, with what their measures need."""

    attempts: Attempts
    rows: Ints
    config: ScoreConfig
    stream: str

    @property
    def n(self) -> int:
        """How many attempts."""
        return int(self.rows.size)

    def column(self, name: str) -> NDArray[Any]:
        """A column of the attempts."""
        return self.of_rows(self.attempts.columns[name])

    @property
    def first_of_item(self) -> NDArray[np.bool_]:
        """Which attempts are the first at their item; attempts stand in the order of items."""
        items = self.column("item")
        return np.append(True, items[1:] != items[:-1])[: items.size]

    def of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Those of the block, of values of all attempts in order; nothing is copied where the block has them all."""
        return values if self.n == values.size else values[self.rows]

    def rate(
        self, flags: NDArray[np.bool_], base: NDArray[np.bool_] | None = None, why: str = "no attempts"
    ) -> Estimate:
        """A share of the attempts, by Wilson; with the design effect of the clusters where there are such."""
        counted = flags if base is None else flags[base]
        if not counted.size:
            return Estimate.null(why, method="wilson")
        clusters = self.clusters(base)
        if clusters is None:
            return wilson(int(np.count_nonzero(counted)), int(counted.size))
        _, place = np.unique(clusters, return_inverse=True)
        sizes = np.bincount(place)
        return cluster_wilson(np.bincount(place, weights=counted, minlength=sizes.size).astype(np.int64), sizes)

    def mean(self, values: Floats, base: NDArray[np.bool_] | None, name: str, why: str) -> Estimate:
        """The mean of a score: a rate where it is 0 and 1 alone, otherwise resampled."""
        chosen = values if base is None else values[base]
        if not chosen.size:
            return Estimate.null(why, method="bootstrap")
        if only_zeros_and_ones(chosen):
            return self.rate(values == 1.0, base)
        return bootstrap.mean(
            chosen,
            clusters=self.clusters(base),
            seed=self.config.seed,
            stream=f"{self.stream}/{name}",
            resamples=self.config.resamples,
        )

    def clusters(self, base: NDArray[np.bool_] | None) -> Ints | None:
        """The clusters of some of the attempts, None where they are independent."""
        return self.attempts.clusters(self.rows if base is None else self.rows[base])


def measure(block: Block) -> dict[str, Estimate]:
    """All estimates of a block by name."""
    attempts = block.attempts
    scored, value = block.of_rows(attempts.scored), block.of_rows(attempts.value)
    passed, why = block.of_rows(attempts.passed), no_threshold(block)
    estimates = {
        "mean_score": block.mean(value, None, "mean_score", "no attempts"),
        "mean_score_scored": block.mean(value, scored, "mean_score_scored", "no attempt has a score"),
        **_bounds(block, value, scored),
        "pass_rate": block.rate(passed) if why is None else Estimate.null(why, n=block.n, method="wilson"),
        "coverage": block.rate(scored),
    }
    for name, status in _STATUS_RATES.items():
        estimates[name] = block.rate(block.of_rows(attempts.has_status(status)))
    estimates |= _floor(block)
    if np.unique(block.column("trial")).size > 1:
        estimates |= _trials(block)
    if not np.isnan(block.column("confidence")).all():
        estimates |= _calibration(block)
    if not np.isnan(block.column("truth")).all():
        estimates |= _labelled(block)
    return estimates


def only_zeros_and_ones(values: Floats) -> bool:
    """Whether a score is a rate."""
    return bool(((values == 0.0) | (values == 1.0)).all())


def no_threshold(block: Block) -> str | None:
    """Why nothing can be said to have passed, or None where it can."""
    if not block.of_rows(block.attempts.undecided).any():
        return None
    return "scores are graded and no threshold was given (--pass-at)"


def _bounds(block: Block, value: Floats, scored: NDArray[np.bool_]) -> dict[str, Estimate]:
    """The mean if everything without a score had the least, or the greatest."""
    low, high = block.config.range
    names = ("mean_score_low", "mean_score_high")
    if not block.n:
        return {name: Estimate.null("no attempts") for name in names}
    if ((value[scored] < low) | (value[scored] > high)).any():
        why = f"a score lies outside {low:g} … {high:g} (--range says what it can be)"
        return {name: Estimate.null(why, n=block.n) for name in names}
    absent = int(block.n - np.count_nonzero(scored))
    total = float(np.count_nonzero(value)) if only_zeros_and_ones(value) else sum_of(value[scored])
    return {
        name: Estimate(value=(total + absent * end) / block.n, n=block.n, method="bound, no interval")
        for name, end in zip(names, (low, high), strict=True)
    }


def _floor(block: Block) -> dict[str, Estimate]:
    """How often the target is the one that is most frequent: what a model reaches that always answers the same."""
    targets, tasks = block.column("target"), block.column("task")
    first = block.first_of_item
    targets, tasks = targets[first], tasks[first]
    if not targets.size or (targets < 0).any() or np.count_nonzero(np.bincount(targets)) in {1, targets.size}:
        return {}
    hits = sum(int(np.bincount(targets[tasks == task]).max()) for task in np.unique(tasks).tolist())
    return {"constant_answer_rate": wilson(hits, int(targets.size))}


def _trials(block: Block) -> dict[str, Estimate]:
    """How steady the verdicts are over the attempts at one item."""
    why = no_threshold(block)
    place = np.cumsum(block.first_of_item) - 1
    attempts_of = np.bincount(place)
    passed = block.of_rows(block.attempts.passed)
    passes = np.bincount(place, weights=passed).astype(np.int64)
    repeated = attempts_of > 1
    flipped = repeated & (passes > 0) & (passes < attempts_of)
    why_no_rate = why or (None if repeated.any() else "no item was tried several times")
    estimates = {
        "flip_rate": Estimate.null(why_no_rate, method="wilson")
        if why_no_rate
        else wilson(int(flipped.sum()), int(repeated.sum()))
    }
    for k in block.config.k or [k for k in USUAL_K if k <= int(attempts_of.max())]:
        ways: tuple[tuple[str, Callable[..., Estimate]], ...] = (
            (f"pass_at_{k}", pass_at_k),
            (f"pass_hat_{k}", pass_hat_k),
        )
        for name, way in ways:
            estimates[name] = Estimate.null(why) if why else way(passes, attempts_of, k)
    return estimates


def _calibration(block: Block) -> dict[str, Estimate]:
    """Whether confidences are as good as they claim, over the attempts that have one and a verdict."""
    confidence = block.column("confidence")
    use = block.of_rows(block.attempts.scored & ~block.attempts.undecided) & ~np.isnan(confidence)
    names = ("ece", "brier", "aurc")
    if not use.any():
        return {name: Estimate.null("no verdict has a confidence", method="bootstrap") for name in names}
    chosen, right = confidence[use], block.of_rows(block.attempts.passed)[use]
    clusters = block.clusters(use)
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1]
    too_many = clusters is not None and int(clusters.max()) >= _MOST_CLUSTERS
    drawing: dict[str, Any] = {"seed": block.config.seed, "resamples": block.config.resamples}
    common: dict[str, Any] = {"clusters": None if too_many else clusters, **drawing}
    stream = block.stream
    estimates = {
        "ece": calibration.ece(chosen, right, bins=block.config.bins, stream=f"{stream}/ece", **common),
        "brier": calibration.brier(chosen, right, clusters=clusters, stream=f"{stream}/brier", **drawing),
        "aurc": selective.selective_areas(chosen, right, ("aurc",), stream=f"{stream}/aurc", **common)[0],
    }
    for name in ("ece", "aurc") if too_many else ():
        warnings = (*estimates[name].warnings, _NOT_BY_CLUSTER)
        estimates[name] = msgspec.structs.replace(estimates[name], warnings=warnings)
    return estimates


def _labelled(block: Block) -> dict[str, Estimate]:
    """The pass rate by people's labels: on the labelled attempts alone, and helped by the log's verdicts on the others."""
    truth = block.column("truth")
    known = ~np.isnan(truth)
    why = no_threshold(block)
    verdict = block.of_rows(block.attempts.passed).astype(np.float64)
    clusters = block.clusters(None)
    if clusters is not None:
        clusters = np.concatenate([clusters[known], clusters[~known]])
    return {
        "pass_rate_labelled": block.rate(truth == 1.0, known),
        "pass_rate_ppi": Estimate.null(why)
        if why
        else ppi_mean(truth[known], verdict[known], verdict[~known], clusters=clusters),
        "label_agreement": Estimate.null(why) if why else block.rate(truth == verdict, known),
    }


def macro(parts: Sequence[Estimate]) -> Estimate:
    """The plain mean over tasks; its interval from theirs, which are independent (MOVER: Zou and Donner 2008)."""
    count = len(parts)
    without = next((part for part in parts if part.value is None), None)
    if without is not None:
        return Estimate.null(without.why or "a task has no value", method="MOVER")
    values = [float(part.value or 0.0) for part in parts]
    value = sum_of(values) / count
    if any(part.low is None or part.high is None for part in parts):
        return Estimate(value=value, n=sum(part.n for part in parts), method="mean over tasks, no interval")
    low = sum((v - float(part.low or 0.0)) ** 2 for v, part in zip(values, parts, strict=True)) ** 0.5 / count
    high = sum((float(part.high or 0.0) - v) ** 2 for v, part in zip(values, parts, strict=True)) ** 0.5 / count
    return Estimate(
        value=value,
        low=value - low,
        high=value + high,
        n=sum(part.n for part in parts),
        method=f"mean over {count} tasks, MOVER",
    )
