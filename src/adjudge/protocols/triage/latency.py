"""How long answers took: by cache state and component, and as estimates of the whole.

A quantile is the inverse of the empirical distribution (type 1 of Hyndman and Fan 1996, The American Statistician 50:361-365): the
smallest time that at least this share of the records did not exceed, so it is always one of the measured times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from adjudge.protocols.base import Named
from adjudge.protocols.triage.batch import CACHE_STATES, COMPONENTS
from adjudge.protocols.triage.counts import Configuration
from adjudge.protocols.triage.measure import Draw, value_alone
from adjudge.stats import bootstrap, exact
from adjudge.stats.proportions import quantile, quantile_values

QUANTILES = (50, 90, 95, 99)
WHOLE = ("total_seconds", "latency_seconds")
"""The times of a whole answer; where there are both, the first."""
_TYPE = "quantile type 1, the inverse of the empirical distribution"


def latency(configuration: Configuration) -> dict[str, Any]:
    """Times by cache state. Only records that say whether the cache answered can be compared."""
    states = {name: int(count) for name, count in zip(CACHE_STATES, configuration.cache, strict=True)}
    by_cache: dict[str, Any] = {}
    for state, name in enumerate(CACHE_STATES):
        if states[name]:
            times = {time: _times(configuration.times.get((state, place), [])) for place, time in enumerate(COMPONENTS)}
            by_cache[name] = {"n": states[name], **times}
    received, unknown = configuration.received, configuration.answers_of_unknown_cache
    why = None
    if unknown:
        why = f"the cache state of {unknown} of {received} records is unknown"
    elif states["hit"] and states["miss"]:
        why = f"{states['hit']} records came from a cache and {states['miss']} did not"
    elif not received:
        why = "there are no records"
    possibly = configuration.possibly_cached
    return {"by_cache": by_cache, "comparable": why is None, "why": why, "possibly_cached": possibly}


def times_by_cache(configurations: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Of the blocks of configurations: configuration, cache state, and the times by component."""
    for name, block in configurations.items():
        for state, times in block["latency"]["by_cache"].items():
            yield name, state, times


def in_words(component: str) -> str:
    """The name of a time for people."""
    return component.removesuffix("_seconds").replace("_", " ")


def latency_estimates(name: str, configuration: Configuration, draw: Draw | None, *, several: bool) -> Iterator[Named]:
    """Mean and quantiles of the time to an answer in each cache state, without a `draw` as values alone.

    Samples are clusters over several trials.
    """
    for state, waits in sorted(configuration.waits.items()):
        cache = CACHE_STATES[state]
        where = f"latency={name},cache={cache}"
        seconds, sample = (np.concatenate(parts) for parts in zip(*waits, strict=True))
        shares = [share / 100 for share in QUANTILES]
        if draw is None:
            mean = value_alone(exact.mean_of(seconds), seconds.size)
            quantiles = [value_alone(value, seconds.size) for value in quantile_values(seconds, shares)]
        else:
            clusters, resamples = sample if several else None, draw.over(seconds.size)
            stream = f"{draw.stream}/{cache}"
            mean = bootstrap.mean(seconds, clusters=clusters, seed=draw.seed, stream=stream, resamples=resamples)
            quantiles = [quantile(seconds, share, clusters=clusters) for share in shares]
        yield Named("latency_mean", where, mean)
        for share, estimate in zip(QUANTILES, quantiles, strict=True):
            method = f"{estimate.method}; {_TYPE}"
            yield Named(f"latency_p{share}", where, msgspec.structs.replace(estimate, method=method))


def _times(columns: list[Any]) -> dict[str, Any]:
    if not columns:
        return {"n": 0, "mean": None, **{f"p{share}": None for share in QUANTILES}}
    values = np.concatenate(columns)
    at_shares = quantile_values(values, [share / 100 for share in QUANTILES])
    quantiles = {f"p{share}": value for share, value in zip(QUANTILES, at_shares, strict=True)}
    return {"n": int(values.size), "mean": exact.mean_of(values), **quantiles}
