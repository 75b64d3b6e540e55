"""The models of a run in order, with ties: paired tests on the attempts that all of them made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from adjudge.protocols.score.attempts import Attempts, Floats, Ints
from adjudge.protocols.score.config import ScoreConfig
from adjudge.runs.section import Column, Section
from adjudge.stats.paired import mcnemar_midp, sign_flip
from adjudge.stats.ties import holm, ranking

MOST_RANKED = 20
SHARED_AT_LEAST = 0.5


def section(attempts: Attempts, config: ScoreConfig, conditions: Mapping[str, Any]) -> tuple[Section | None, list[str]]:
    """The ranking by mean score, and why there is none where there should be one."""
    models = list(attempts.by_model)
    if len(models) < 2:
        return None, []
    if len(models) > MOST_RANKED:
        return None, [f"{len(models)} models are not ranked; the tests of all pairs are for at most {MOST_RANKED}"]
    unlike = _unlike(models, conditions)
    if unlike:
        return None, [f"the models are not ranked: {unlike}"]
    keys, rows = _shared(attempts, models)
    largest = max(of_model.size for of_model in attempts.by_model.values())
    if keys.size < SHARED_AT_LEAST * largest:
        return None, [f"the models are not ranked: {keys.size:,} attempts are shared by all, of up to {largest:,}"]
    values = {model: attempts.value[rows[model]] for model in models}
    clusters = attempts.clusters(rows[models[0]])
    pairs = list(combinations(models, 2))
    p_values = [_p(values[a], values[b], clusters, config, f"rank/{a}/{b}") for a, b in pairs]
    adjusted = dict(zip(pairs, holm(p_values), strict=True))
    means = [float(values[model].mean()) for model in models]
    table: list[Sequence[Any]] = [
        [place.rank, place.name, place.score, " ".join(place.letters), int(keys.size)]
        for place in ranking(models, means, adjusted)
    ]
    return (
        Section(
            name="ranking",
            title="Ranking by mean score",
            columns=["rank", "model", Column("mean score"), "tie group", "attempts"],
            rows=table,
            note="Models that share a letter were not told apart by paired tests at 5 % (Holm), on the attempts that all made.",
            terminal=MOST_RANKED,
        ),
        [],
    )


def _unlike(models: Sequence[str], conditions: Mapping[str, Any]) -> str | None:
    """In which fact two models' conditions differ, in words."""
    for first, second in combinations([model for model in models if model in conditions], 2):
        for task in conditions[first].keys() & conditions[second].keys():
            a, b = conditions[first][task], conditions[second][task]
            for name in sorted({*a, *b}):
                if a.get(name) != b.get(name):
                    return f"{first} and {second} differ in {name} of {task or 'the task'}"
    return None


def _shared(attempts: Attempts, models: Sequence[str]) -> tuple[Ints, dict[str, Ints]]:
    """The (item, trial) pairs that every model has, and each model's rows in that order."""
    trials = attempts.columns["trial"].astype(np.int64)
    width = int(trials.max(initial=1)) + 1
    key = attempts.columns["item"].astype(np.int64) * width + trials
    keys: Ints = key[attempts.by_model[models[0]]]
    for model in models[1:]:
        keys = np.intersect1d(keys, key[attempts.by_model[model]], assume_unique=True)
    keys = np.sort(keys)
    rows = {}
    for model in models:
        of_model = attempts.by_model[model]
        order = np.argsort(key[of_model])
        rows[model] = of_model[order[np.searchsorted(key[of_model][order], keys)]]
    return keys, rows


def _p(first: Floats, second: Floats, clusters: Ints | None, config: ScoreConfig, stream: str) -> float | None:
    difference = second - first
    if clusters is None and np.isin(difference, (-1.0, 0.0, 1.0)).all():
        return mcnemar_midp(int((difference > 0).sum()), int((difference < 0).sum())).p
    return sign_flip(difference, seed=config.seed, stream=stream, clusters=clusters, resamples=5000).p
