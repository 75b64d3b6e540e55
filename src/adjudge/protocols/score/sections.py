"""Tables beside the estimates: several attempts at one item, every score of the log, its conditions, and the models in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from adjudge.protocols.base import Measured
from adjudge.protocols.score.attempts import Attempts, Floats, Ints
from adjudge.protocols.score.comparable import FACTORS, MUST, Facts
from adjudge.protocols.score.config import ScoreConfig
from adjudge.runs.section import Column, Section
from adjudge.stats.paired import mcnemar_midp, sign_flip
from adjudge.stats.ties import holm, ranking

_USE = {**dict.fromkeys(MUST, "must be equal"), **dict.fromkeys(FACTORS, "one may differ")}
_MOST_RANKED = 20
_SHARED_AT_LEAST = 0.5


def of_trials(measured: Measured, models: Sequence[str]) -> Section | None:
    """pass@k and pass^k side by side."""
    estimates = {(named.name, named.slice): named.estimate for named in measured.estimates}
    ks = sorted({int(name.rpartition("_")[2]) for name, _ in estimates if name.startswith("pass_hat_")})
    if not ks:
        return None
    return Section(
        name="attempts",
        title="Several attempts at one item",
        columns=["model", "k", Column("pass@k: one of k passes", "%"), Column("pass^k: all of k pass", "%")],
        rows=[
            [model, k, *(estimates.get((f"{name}_{k}", f"model={model}")) for name in ("pass_at", "pass_hat"))]
            for model in models
            for k in ks
        ],
        note="Averaged over items, intervals by item; an attempt without a score did not pass.",
        terminal=12,
    )


def of_labels(measured: Measured, models: Sequence[str]) -> Section | None:
    """The pass rate by people's labels beside the log's own, where there are labels."""
    estimates = {(named.name, named.slice): named.estimate for named in measured.estimates}
    names = ("pass_rate", "pass_rate_labelled", "pass_rate_ppi", "label_agreement")
    labelled = [model for model in models if (names[1], f"model={model}") in estimates]
    if not labelled:
        return None
    rows: list[Sequence[Any]] = [
        [model, estimates[names[1], f"model={model}"].n, *(estimates[name, f"model={model}"] for name in names)]
        for model in labelled
    ]
    return Section(
        name="labels",
        title="With labels by people",
        columns=[
            "model",
            "labelled",
            Column("pass rate of the log", "%"),
            Column("by labels alone", "%"),
            Column("prediction-powered", "%"),
            Column("agreement", "%"),
        ],
        rows=rows,
        note="Labels of samples that no log has are not counted. Prediction-powered: the log's verdicts, corrected by the labels (PPI++).",
        terminal=12,
    )


def of_checks(measured: Measured, models: Sequence[str], checks: Sequence[str]) -> Section | None:
    """Every score by name, where the log has several."""
    if len(checks) < 2:
        return None
    estimates = {(named.name, named.slice): named.estimate for named in measured.estimates}
    names = ("mean_score", "pass_rate", "coverage")
    rows = [
        [model, check, *(estimates.get((name, f"slice={model},check={check}")) for name in names)]
        for model in models
        for check in checks
        if ("mean_score", f"slice={model},check={check}") in estimates
    ]
    return Section(
        name="checks",
        title="Every score of the log, as reported",
        columns=["model", "score", "mean over all", Column("passed", "%"), Column("coverage", "%")],
        rows=rows,
        note=f"{checks[0]} is the one that is judged (--scorer). What has no such score counts 0.",
        terminal=8,
    )


def of_conditions(facts: Facts) -> Section | None:
    """Under which conditions every model did every task."""
    rows = [
        [model, task or "–", name, _brief(value), _USE.get(name, "noted")]
        for model, tasks in facts.items()
        for task, stated in tasks.items()
        for name, value in sorted(stated.items())
    ]
    if not rows:
        return None
    return Section(
        name="conditions",
        title="Conditions, as the logs state them",
        columns=["model", "task", "fact", "value", "for a comparison"],
        rows=rows,
        place="more",
        terminal=0,
    )


def _brief(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 100 else text[:99] + "…"


def of_ranking(
    attempts: Attempts, config: ScoreConfig, conditions: Mapping[str, Any]
) -> tuple[Section | None, list[str]]:
    """The models in order of the mean score, with ties by paired tests, and why there is none where there should be one."""
    models = list(attempts.by_model)
    if len(models) < 2:
        return None, []
    if len(models) > _MOST_RANKED:
        return None, [f"{len(models)} models are not ranked; the tests of all pairs are for at most {_MOST_RANKED}"]
    unlike = _unlike(models, conditions)
    if attempts.unlike:
        unlike = f"{attempts.unlike:,} attempts have another input or target than another model's at the same sample"
    if unlike:
        return None, [f"the models are not ranked: {unlike}"]
    keys, rows = _shared(attempts, models)
    largest = max(of_model.size for of_model in attempts.by_model.values())
    if keys.size < _SHARED_AT_LEAST * largest:
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
    section = Section(
        name="ranking",
        title="Ranking by mean score",
        columns=["rank", "model", Column("mean score"), "tie group", "attempts"],
        rows=table,
        note="Models that share a letter were not told apart by paired tests at 5 % (Holm), on the attempts that all made.",
        terminal=_MOST_RANKED,
    )
    return section, []


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
