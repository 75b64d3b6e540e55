"""The declared metrics of a check run, and how counts of batches become them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjudge.evidence.layout import Layout
from adjudge.evidence.vocabulary import BUCKETS, OUTCOMES
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.check import charts
from adjudge.protocols.check.comparable import comparable, dataset_columns
from adjudge.protocols.check.compiled import Compiled
from adjudge.protocols.check.config import CheckConfig
from adjudge.protocols.check.counts import Cut, Ints, Partial, measures
from adjudge.protocols.check.sections import sections
from adjudge.stats import bootstrap
from adjudge.stats.estimate import Estimate
from adjudge.stats.metric import Metric, share
from adjudge.stats.proportions import cluster_wilson, wilson

MOST_SLICES = 40
_INTERVAL = "Wilson; with the design effect of the clusters, or of samples that several models answered"
METRICS = (
    share(
        "pass_rate",
        headline=True,
        formula="samples that no critical rule speaks against ÷ all samples, answered or not",
        interval=_INTERVAL,
        null="without samples",
    ),
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
    share(
        "*.pass_rate",
        formula="samples on which the rule passes ÷ samples on which it passes or fails",
        interval=_INTERVAL,
        null="the rule could be applied nowhere",
    ),
    share(
        "*.accuracy",
        formula="samples whose value is that of the reference ÷ samples with a gold value, answered or not",
        interval=_INTERVAL,
        null="no sample has a gold value",
    ),
    share(
        "answer_rate",
        formula="samples with a readable answer ÷ all samples",
        interval=_INTERVAL,
        null="without samples",
    ),
    *(
        share(
            f"{bucket}_rate",
            better="lower",
            formula=f"samples that ended {bucket} ÷ all samples",
            interval=_INTERVAL,
            null="without samples",
        )
        for bucket in BUCKETS[2:]
    ),
)


def finish(partials: Sequence[Partial], compiled: Compiled, layout: Layout, config: CheckConfig) -> Measured:
    """All numbers, from the partials in order."""
    cuts: dict[str, Cut] = {}
    for each in partials:
        for label, cut in each.cuts.items():
            if label in cuts:
                cuts[label].add(cut)
            else:
                cuts[label] = cut
    buckets: Counter[tuple[str, str]] = Counter()
    for each in partials:
        buckets.update(each.buckets)
    names, notes = measures(compiled), list[str]()
    kept = _kept(cuts, compiled, notes)
    estimates: list[Named] = []
    for label in kept:
        estimates += _estimates(label, cuts[label], names, compiled, config)
    by_key = {(named.slice, named.name): named.estimate for named in estimates}
    outcomes = (
        np.sum([each.outcomes for each in partials], axis=0)
        if partials
        else np.zeros((layout.width, 4), dtype=np.int64)
    )
    repaired = sum(each.repaired for each in partials)
    if repaired:
        notes.append(
            f"{repaired:,} answers had to be repaired before they could be read (column `repairs` of the samples)"
        )
    models = sorted({model for model, _ in buckets})
    return Measured(
        estimates=estimates,
        buckets=_buckets(buckets, models),
        metrics=_flat(estimates),
        top={
            "rule_file": compiled.file.name,
            "comparable": comparable(compiled),
            "dataset_columns": dataset_columns(compiled, gold=bool(config.reference)),
            "rules": _rule_counts(outcomes, layout),
        },
        charts=charts.build(by_key, compiled, models),
        notes=notes,
        sections=sections(by_key, outcomes, layout, compiled, models),
        digests={"dataset": hashlib.sha256(b"".join(each.digest for each in partials)).hexdigest()},
    )


def _kept(cuts: Mapping[str, Cut], compiled: Compiled, notes: list[str]) -> list[str]:
    """The slices that are measured, in order: all, each model, and the largest of each kind of slice."""
    labels = ["", *sorted(label for label in cuts if label.startswith("model="))]
    for source in compiled.file.slices:
        own = [label for label in cuts if label.startswith(f"{source}=")]
        largest = sorted(own, key=lambda label: (-_size(cuts[label]), label))
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
    found = []
    for place, name in enumerate(names):
        if labels:
            won = np.array([cut.clusters[each][0][place] for each in labels])
            tried = np.array([cut.clusters[each][1][place] for each in labels])
        else:
            cells = sorted(cut.cells[place].items())
            won = (
                np.repeat([pair[0] for pair, _ in cells], [count for _, count in cells])
                if cells
                else np.zeros(0, dtype=int)
            )
            tried = np.repeat([pair[1] for pair, _ in cells], [count for _, count in cells]) if cells else won
        if name.endswith(".accuracy") and not tried.sum():
            continue
        found.append(Named(name, label, _share(won, tried, clustered=bool(labels))))
    for place, name in enumerate(compiled.file.scores):
        found.append(Named(f"score.{name}", label, _score(cut, place, labels, name, label, config)))
    return found


def _share(won: Ints, tried: Ints, *, clustered: bool) -> Estimate:
    won, tried = won[tried > 0], tried[tried > 0]
    if clustered or tried.max(initial=0) > 1:
        return cluster_wilson(won, tried)
    return wilson(int(won.sum()), int(tried.sum()))


def _score(cut: Cut, place: int, labels: Sequence[str], name: str, label: str, config: CheckConfig) -> Estimate:
    if labels:
        totals = np.array([cut.clusters[each][2][place] for each in labels])
        counts = np.array([cut.clusters[each][3][place] for each in labels])
    else:
        cells = sorted(cut.scores[place].items())
        times = [count for _, count in cells]
        totals = np.repeat(np.array([pair[0] for pair, _ in cells]), times) if cells else np.zeros(0)
        counts = np.repeat(np.array([pair[1] for pair, _ in cells]), times) if cells else np.zeros(0)
    totals, counts = totals[counts > 0], counts[counts > 0]
    if not counts.size:
        return Estimate.null("no rule of the score counts on any sample")
    unit = "cluster" if labels else "sample"
    stream = f"score.{name}|{label}"
    return bootstrap.ratio_of_sums(
        totals, counts, seed=config.seed, stream=stream, resamples=config.resamples, unit=unit
    )


def _buckets(counts: Counter[tuple[str, str]], models: Sequence[str]) -> dict[str, Any]:
    def row(chosen: Sequence[str]) -> dict[str, int]:
        words = {bucket: sum(counts[model, bucket] for model in chosen) for bucket in BUCKETS}
        return {**words, "n": sum(words.values())}

    return {"all": row(models), **{model: row([model]) for model in models}}


def _flat(estimates: Sequence[Named]) -> dict[str, float | int | None]:
    return {
        f"{named.slice.partition('=')[2]}/{named.name}" if named.slice else named.name: named.estimate.value
        for named in estimates
    }


def _rule_counts(outcomes: Ints, layout: Layout) -> dict[str, dict[str, int]]:
    """Atoms by rule and outcome."""
    counts: dict[str, Ints] = {}
    for position, place in enumerate(layout.positions):
        code = str(place.rule["code"])
        counts[code] = counts.get(code, np.zeros(len(OUTCOMES), dtype=np.int64)) + outcomes[position]
    return {code: dict(zip(OUTCOMES, row.tolist(), strict=True)) for code, row in counts.items()}
