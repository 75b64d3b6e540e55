"""Estimates that need no resampling: shares with their intervals, everything else by its value alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from adjudge.protocols.base import Named
from adjudge.protocols.triage.batch import CACHE_STATES
from adjudge.protocols.triage.counts import Configuration
from adjudge.protocols.triage.latency import QUANTILES, TYPE
from adjudge.protocols.triage.metrics import (
    CONFIDENCE_MEASURES,
    FN,
    FP,
    NO_CONFIDENCE,
    OTHER_BINS,
    TN,
    TP,
    Numbers,
    Rate,
    rates,
    value_alone,
)
from adjudge.protocols.triage.words import Classes
from adjudge.stats import calibration, exact, ranking
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import quantile_values, wilson
from adjudge.stats.ranking import ONE_CLASS


def values(numbers: Numbers) -> dict[str, Estimate]:
    """The estimates of a block by name, in the order in which `Numbers.measure` has them."""
    return _rates(numbers) | _tables(numbers) | _confidence(numbers)


def _rates(numbers: Numbers) -> dict[str, Estimate]:
    """Shares; those of many small blocks are mostly the same few."""
    if numbers.clusters is not None:
        return {name: numbers.rate(rate) for name, rate in _rates_of(numbers.classes).items()}
    counts = numbers.counts.tolist()
    estimates = {}
    for name, rate in _rates_of(numbers.classes).items():
        base = sum(counts[cell] for cell in rate.base)
        estimates[name] = _wilson(sum(counts[cell] for cell in rate.hits), base, rate.why)
    return estimates


@lru_cache(maxsize=4)
def _rates_of(classes: Classes) -> dict[str, Rate]:
    return rates(classes)


@lru_cache(maxsize=1 << 14)
def _wilson(hits: int, base: int, why: str) -> Estimate:
    return wilson(hits, base) if base else Estimate.null(why, method="wilson")


def _tables(numbers: Numbers) -> dict[str, Estimate]:
    """Measures of the table of labels and answers."""
    p, n = numbers.classes
    tp, fn, fp, tn = (int(numbers.counts[cell]) for cell in (TP, FN, FP, TN))
    of_p, of_n = (int(half.sum()) for half in np.split(numbers.counts, 2))
    answered, samples = tp + fn + fp + tn, of_p + of_n
    spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    cross = (tp * tn - fp * fn) / math.sqrt(spread) if spread else None
    constant = "truth or answer is the same on every row among the answered"
    return {
        f"f1_{p}": value_alone(_share(2 * tp, 2 * tp + fp + fn), answered, f"nothing is or was called {p!r}"),
        f"f1_{n}": value_alone(_share(2 * tn, 2 * tn + fp + fn), answered, f"nothing is or was called {n!r}"),
        "balanced_accuracy": value_alone(
            _mean(_share(tp, tp + fn), _share(tn, tn + fp)), answered, "a class has no answered row"
        ),
        "balanced_accuracy_all": value_alone(_mean(_share(tp, of_p), _share(tn, of_n)), samples, "a class has no row"),
        "mcc": value_alone(cross, answered, constant),
    }


def _confidence(numbers: Numbers) -> dict[str, Estimate]:
    """Measures of the confidences."""
    scores = numbers.scores
    c, right, bins, tally = scores.confidence, scores.correct, numbers.bins, scores.tally
    if not c.size:
        return dict.fromkeys(CONFIDENCE_MEASURES, Estimate.null(NO_CONFIDENCE, method="value, no interval"))
    areas = scores.blocks.finish()
    values = {
        name: calibration.ece_value(c, right, bins=bins, tally=tally, **way) for name, way in OTHER_BINS.items()
    } | {
        "ece": calibration.ece_value(c, right, bins=bins, tally=tally),
        "brier": calibration.brier_value(c, right),
        "log_loss": calibration.log_loss_value(c, right),
        "aurc": None if areas is None else areas.aurc,
        "e_aurc": None if areas is None else areas.e_aurc,
        "auroc_confidence": ranking.auroc_value(c, right),
    }
    why = {"log_loss": "infinite: rows were wrong at full confidence"}
    return {name: value_alone(value, c.size, why.get(name, ONE_CLASS)) for name, value in values.items()}


def latencies(name: str, configuration: Configuration) -> Iterator[Named]:
    """Mean and quantiles of the time to an answer in each cache state."""
    for state, waits in sorted(configuration.waits.items()):
        where = f"latency={name},cache={CACHE_STATES[state]}"
        seconds = np.concatenate([part for part, _ in waits])
        yield Named("latency_mean", where, value_alone(exact.mean_of(seconds), seconds.size))
        seconds_by_share = quantile_values(seconds, [share / 100 for share in QUANTILES])
        for share, value in zip(QUANTILES, seconds_by_share, strict=True):
            estimate = Estimate(value=value, n=seconds.size, method=f"value, no interval; {TYPE}")
            yield Named(f"latency_p{share}", where, estimate)


def _share(hits: int, base: int) -> float | None:
    return hits / base if base else None


def _mean(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else (a + b) / 2
