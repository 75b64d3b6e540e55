"""The declared metrics of a check run, and how counts of batches become them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from adjudge.evidence.rule import Floats, Layout
from adjudge.evidence.vocabulary import BUCKETS, OUTCOMES
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.check import charts
from adjudge.protocols.check.comparable import comparable
from adjudge.protocols.check.compiled import Compiled
from adjudge.protocols.check.config import CheckConfig
from adjudge.protocols.check.counts import Ints, Partial, Sums, measures, merged
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
    models = sorted({model for each in partials for model in each.models})
    sums, notes = merged(partials, clustered=bool(compiled.file.cluster)), list[str]()
    labels = ["", *(f"model={model}" for model in models if len(models) > 1), *_kept(sums, compiled, notes)]
    estimates = [
        estimate
        for label in labels
        for estimate in _estimates(label, sums[label], compiled, config, many=len(models) > MOST_DETAILED)
    ]
    by_key = {(named.slice, named.name): named.estimate for named in estimates}
    outcomes = np.sum([np.zeros((layout.width, 4), dtype=np.int64), *(each.outcomes for each in partials)], axis=0)
    repaired = sum(each.repaired for each in partials)
    mended = f"{repaired:,} answers had to be repaired before they could be read (column `repairs` of the samples)"
    notes += [mended] if repaired else []
    if len(models) > MOST_DETAILED:
        notes.append(note(len(models), MOST_DETAILED, "sections and charts"))
    shown = models[:MOST_DETAILED]
    return Measured(
        estimates=estimates,
        metrics={
            f"{named.slice.partition('=')[2]}/{named.name}" if named.slice else named.name: named.estimate.value
            for named in estimates
        },
        top={
            "rule_file": compiled.file.name,
            "comparable": comparable(compiled),
            "dataset_columns": [f"gold.{name}" for name in compiled.file.fields] if config.reference else [],
            "rules": _rule_counts(outcomes, layout),
        },
        charts=charts.build(by_key, compiled, shown),
        notes=notes,
        sections=sections(by_key, outcomes, layout, compiled, shown),
        digests={"dataset": hashlib.sha256(b"".join(each.digest for each in partials)).hexdigest()},
    )


def _kept(sums: Sums, compiled: Compiled, notes: list[str]) -> list[str]:
    """The slices that are measured beside all and each model: the largest of each kind."""
    labels: list[str] = []
    for source in compiled.file.slices:
        sizes = {label: of_slice[0][1].sum() for label, of_slice in sums.items() if label.startswith(f"{source}=")}
        largest = sorted(sizes, key=lambda label: (-sizes[label], label))
        if len(largest) > MOST_SLICES:
            notes.append(
                f"slice {source} has {len(largest):,} values; the {MOST_SLICES} with most samples are measured"
            )
        labels += sorted(largest[:MOST_SLICES])
    return labels


def _estimates(
    label: str, sums: Mapping[int, tuple[Floats, Ints]], compiled: Compiled, config: CheckConfig, *, many: bool
) -> Iterator[Named]:
    """The numbers of one slice; of very many models all share the random numbers of their scores."""
    clustered, names = bool(compiled.file.cluster), measures(compiled.file)
    unit = "cluster" if clustered else "sample"
    mean = partial(bootstrap.ratio_of_sums, seed=config.seed, resamples=config.resamples, unit=unit)
    for place, name in enumerate([*names, *(f"score.{name}" for name in compiled.file.scores)]):
        won, tried = sums.get(place, (np.zeros(0), np.zeros(0, dtype=np.int64)))
        won, tried = won[tried > 0], tried[tried > 0]
        if place >= len(names) and not tried.size:
            yield Named(name, label, Estimate.null("no rule of the score counts on any sample"))
        elif place >= len(names):
            stream = f"{name}|{MANY_MODELS if many and label.startswith('model=') else label}"
            yield Named(name, label, mean(won, tried, stream=stream))
        elif tried.size or not name.endswith(".accuracy"):
            several = clustered or tried.max(initial=0) > 1
            share_of = cluster_wilson(won, tried) if several else wilson(int(won.sum()), int(tried.sum()))
            yield Named(name, label, share_of)


def _rule_counts(outcomes: Ints, layout: Layout) -> dict[str, dict[str, int]]:
    """Atoms by rule and outcome."""
    counts = {rule["code"]: outcomes[layout.positions_of(rule["code"])].sum(axis=0) for rule in layout.rules}
    return {code: dict(zip(OUTCOMES, row.tolist(), strict=True)) for code, row in counts.items()}
