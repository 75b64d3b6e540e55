"""The declared metrics of a check run, and how counts of batches become them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.rule import Layout
from adjudge.evidence.vocabulary import BUCKETS, OUTCOMES
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.check import charts
from adjudge.protocols.check.comparable import comparable, dataset_columns
from adjudge.protocols.check.compiled import Compiled
from adjudge.protocols.check.config import CheckConfig
from adjudge.protocols.check.counts import Cut, Ints, Partial, measures
from adjudge.protocols.check.model_counts import Floats, OfModel, merged
from adjudge.protocols.check.sections import sections
from adjudge.protocols.common.many import MANY_MODELS, MOST_DETAILED, note
from adjudge.stats import bootstrap
from adjudge.stats.estimate import Estimate, Metric, share
from adjudge.stats.proportions import cluster_wilson, wilson

MOST_SLICES = 40
_INTERVAL = "Wilson; with the design effect of the clusters, or of samples that several models answered"


def _share(name: str, formula: str, null: str = "without samples", **more: Any) -> Metric:
    return share(name, formula=formula, interval=_INTERVAL, null=null, **more)


METRICS = (
    _share("pass_rate", "samples that no critical rule speaks against ÷ all samples, answered or not", headline=True),
    Metric(
        "score.*",
        "score {}",
        low=0.0,
        high=1.0,
        better="higher",
        headline=True,
        formula="weight of the rules that pass ÷ weight of the rules that count, mean over samples",
        interval="bootstrap over clusters, or over samples",
        null="no rule of the score counts on any sample",
    ),
    _share(
        "*.pass_rate",
        "samples on which the rule passes ÷ samples on which it passes or fails",
        "the rule could be applied nowhere",
    ),
    _share(
        "*.accuracy",
        "samples whose value is that of the reference ÷ samples with a gold value, answered or not",
        "no sample has a gold value",
    ),
    _share("answer_rate", "samples with a readable answer ÷ all samples"),
    *(_share(f"{word}_rate", f"samples that ended {word} ÷ all samples", better="lower") for word in BUCKETS[2:]),
)


def finish(partials: Sequence[Partial], compiled: Compiled, layout: Layout, config: CheckConfig) -> Measured:
    """All numbers, from the partials in order."""
    cuts: dict[str, Cut] = {}
    buckets: Counter[tuple[str, str]] = Counter()
    for each in partials:
        buckets.update(each.buckets)
        for label, cut in each.cuts.items():
            if label in cuts:
                cuts[label].add(cut)
            else:
                cuts[label] = cut
    names, notes = measures(compiled), list[str]()
    counted = [each.models for each in partials if each.models is not None]
    of_models = merged(counted) if counted else []
    estimates = _estimates("", cuts[""], names, compiled, config)
    for of_model in of_models:
        estimates += _model_estimates(of_model, names, compiled, config, many=len(of_models) > MOST_DETAILED)
    for label in _kept(cuts, compiled, notes):
        estimates += _estimates(label, cuts[label], names, compiled, config)
    by_key = {(named.slice, named.name): named.estimate for named in estimates}
    outcomes = np.sum([np.zeros((layout.width, 4), dtype=np.int64), *(each.outcomes for each in partials)], axis=0)
    repaired = sum(each.repaired for each in partials)
    if repaired:
        notes.append(
            f"{repaired:,} answers had to be repaired before they could be read (column `repairs` of the samples)"
        )
    models = sorted({model for model, _ in buckets})
    if len(models) > MOST_DETAILED:
        notes.append(note(len(models), MOST_DETAILED, "sections and charts"))
    shown = models[:MOST_DETAILED]
    return Measured(
        estimates=estimates,
        buckets=_buckets(buckets, models),
        metrics={
            f"{named.slice.partition('=')[2]}/{named.name}" if named.slice else named.name: named.estimate.value
            for named in estimates
        },
        top={
            "rule_file": compiled.file.name,
            "comparable": comparable(compiled),
            "dataset_columns": dataset_columns(compiled, gold=bool(config.reference)),
            "rules": _rule_counts(outcomes, layout),
        },
        charts=charts.build(by_key, compiled, shown),
        notes=notes,
        sections=sections(by_key, outcomes, layout, compiled, shown),
        digests={"dataset": hashlib.sha256(b"".join(each.digest for each in partials)).hexdigest()},
    )


def _kept(cuts: Mapping[str, Cut], compiled: Compiled, notes: list[str]) -> list[str]:
    """The slices that are measured beside all and each model: the largest of each kind."""
    labels: list[str] = []
    for source in compiled.file.slices:
        of_source = [label for label in cuts if label.startswith(f"{source}=")]
        largest = sorted(of_source, key=lambda label: (-_size(cuts[label]), label))
        if len(largest) > MOST_SLICES:
            notes.append(
                f"slice {source} has {len(largest):,} values; the {MOST_SLICES} with most samples are measured"
            )
        labels += sorted(largest[:MOST_SLICES])
    return labels


def _size(cut: Cut) -> int:
    if cut.clusters:
        return int(sum(trials[0] for _, trials, *_ in cut.clusters.values()))
    return sum(tried * count for (_, tried), count in cut.cells[0].items())


def _estimates(label: str, cut: Cut, names: Sequence[str], compiled: Compiled, config: CheckConfig) -> list[Named]:
    labels = sorted(cut.clusters)
    estimates = []
    for place, name in enumerate(names):
        if labels:
            won, tried = (np.array([cut.clusters[each][part][place] for each in labels]) for part in (0, 1))
        else:
            won, tried = _repeated(cut.cells[place], np.int64)
        if name.endswith(".accuracy") and not tried.sum():
            continue
        estimates.append(Named(name, label, _rate(won, tried, clustered=bool(labels))))
    for place, name in enumerate(compiled.file.scores):
        estimates.append(Named(f"score.{name}", label, _score(cut, place, labels, name, label, config)))
    return estimates


def _repeated(cells: Mapping[tuple[Any, int], int], kind: type[np.generic]) -> tuple[Any, Any]:
    """The two parts of every cell, as often as it was counted, in their order."""
    pairs = np.array(sorted(cells), dtype=kind).reshape(-1, 2)
    times = [cells[pair] for pair in sorted(cells)]
    return np.repeat(pairs[:, 0], times), np.repeat(pairs[:, 1], times)


def _model_estimates(
    counts: OfModel, names: Sequence[str], compiled: Compiled, config: CheckConfig, *, many: bool
) -> list[Named]:
    """Those of one model; beyond `MOST_DETAILED` all models share the random numbers of their scores."""
    label = f"model={counts.name}"
    measured = []
    for name, won, tried in zip(names, counts.hits, counts.trials, strict=True):
        if name.endswith(".accuracy") and not tried.sum():
            continue
        share = _rate(won, tried, clustered=True) if counts.clustered else wilson(int(won.sum()), int(tried.sum()))
        measured.append(Named(name, label, share))
    for name, (totals, rows) in zip(compiled.file.scores, counts.scores, strict=True):
        stream = f"score.{name}|{MANY_MODELS if many else label}"
        measured.append(Named(f"score.{name}", label, _ratio(totals, rows, counts.clustered, stream, config)))
    return measured


def _rate(won: Ints, tried: Ints, *, clustered: bool) -> Estimate:
    won, tried = won[tried > 0], tried[tried > 0]
    if clustered or tried.max(initial=0) > 1:
        return cluster_wilson(won, tried)
    return wilson(int(won.sum()), int(tried.sum()))


def _score(cut: Cut, place: int, labels: Sequence[str], name: str, label: str, config: CheckConfig) -> Estimate:
    if labels:
        totals, counts = (np.array([cut.clusters[each][part][place] for each in labels]) for part in (2, 3))
    else:
        totals, counts = _repeated(cut.scores[place], np.float64)
    return _ratio(totals, counts, bool(labels), f"score.{name}|{label}", config)


def _ratio(totals: Floats, counts: NDArray[Any], clustered: bool, stream: str, config: CheckConfig) -> Estimate:
    """The mean of a score, by cluster or by sample."""
    totals, counts = totals[counts > 0], counts[counts > 0]
    if not counts.size:
        return Estimate.null("no rule of the score counts on any sample")
    unit = "cluster" if clustered else "sample"
    return bootstrap.ratio_of_sums(
        totals, counts, seed=config.seed, stream=stream, resamples=config.resamples, unit=unit
    )


def _buckets(counts: Counter[tuple[str, str]], models: Sequence[str]) -> dict[str, Any]:
    def row(chosen: Sequence[str]) -> dict[str, int]:
        words = {bucket: sum(counts[model, bucket] for model in chosen) for bucket in BUCKETS}
        return {**words, "n": sum(words.values())}

    return {"all": row(models), **{model: row([model]) for model in models}}


def _rule_counts(outcomes: Ints, layout: Layout) -> dict[str, dict[str, int]]:
    """Atoms by rule and outcome."""
    counts: dict[str, Ints] = {}
    for position, place in enumerate(layout.positions):
        code = str(place.rule["code"])
        counts[code] = counts.get(code, np.zeros(len(OUTCOMES), dtype=np.int64)) + outcomes[position]
    return {code: dict(zip(OUTCOMES, row.tolist(), strict=True)) for code, row in counts.items()}
