"""The declared metrics of a check run, and how counts of batches become them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.evidence.layout import Layout
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, FAIL, OUTCOMES, PASS
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.check import charts
from adjudge.protocols.check.batch import CheckBatch, labels_of
from adjudge.protocols.check.comparable import comparable, dataset_columns
from adjudge.protocols.check.compiled import Compiled
from adjudge.protocols.check.config import CheckConfig
from adjudge.protocols.check.judge import rule_positions
from adjudge.protocols.check.rows import ANSWERED
from adjudge.protocols.check.rulefile import Field
from adjudge.protocols.check.sections import sections
from adjudge.protocols.common.columns import codes
from adjudge.stats import bootstrap
from adjudge.stats.estimate import Estimate
from adjudge.stats.metric import Metric, share
from adjudge.stats.proportions import cluster_wilson, wilson

MOST_SLICES = 40
SAME = 1e-9
"""Two numbers that differ by less than this share of the larger are the same."""
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

Ints = NDArray[np.int64]


@dataclass
class Cut:
    """Counts over the rows of one slice: how many samples (or clusters) have so many successes in so many trials.

    `cells[measure]` maps (successes, trials) of a sample over the models to a count; with clusters, `clusters[label]` are
    successes and trials of all measures. `scores` are the same with sums of scores.
    """

    cells: list[Counter[tuple[int, int]]]
    scores: list[Counter[tuple[float, int]]]
    clusters: dict[str, tuple[Ints, Ints, NDArray[np.float64], Ints]] = field(default_factory=dict)

    def add(self, other: Cut) -> None:
        """The counts of more rows."""
        for mine, theirs in zip(self.cells, other.cells, strict=True):
            mine.update(theirs)
        for my_scores, their_scores in zip(self.scores, other.scores, strict=True):
            my_scores.update(their_scores)
        for label, theirs_of in other.clusters.items():
            mine_of = self.clusters.get(label)
            if mine_of is None:
                self.clusters[label] = theirs_of
            else:
                self.clusters[label] = tuple(a + b for a, b in zip(mine_of, theirs_of, strict=True))  # type: ignore[assignment]


@dataclass
class Partial:
    """What one batch adds to the numbers."""

    cuts: dict[str, Cut]
    buckets: Counter[tuple[str, str]]
    outcomes: Ints
    repaired: int
    digest: bytes


def measures(compiled: Compiled, layout: Layout) -> list[str]:
    """The names of all shares, in the order of their counts."""
    del layout
    return [
        "pass_rate",
        "answer_rate",
        *(f"{bucket}_rate" for bucket in BUCKETS[2:]),
        *(f"{rule.text.code}.pass_rate" for rule in compiled.rules),
        *(f"{each.name}.accuracy" for each in compiled.fields),
    ]


def partial(samples: pa.Table, evidence: Evidence, batch: CheckBatch) -> Partial:
    """Count one batch, slice by slice."""
    compiled = batch.compiled
    buckets = codes(samples, "bucket", BUCKETS)
    model_column = samples.column("model").combine_chunks()
    kinds, models = model_column.dictionary.to_pylist(), model_column.indices.to_numpy()
    names = samples.column("sample").to_pylist()
    hits, trials = _counted(evidence, batch, buckets)
    scores = np.array(
        [samples.column(f"score.{name}").to_numpy() for name in compiled.file.scores], dtype=np.float64
    ).reshape(len(compiled.file.scores), batch.n)
    width = len(kinds)
    whole = _Rows(hits, trials, scores, width, _clusters(batch, names))
    cuts = {"": whole.cut(None)}
    if width > 1:
        cuts |= {f"model={name}": whole.cut(models == code) for code, name in enumerate(kinds)}
    for source, labels in labels_of(batch, compiled.file.slices).items():
        for label in sorted({"(none)" if each is None else each for each in labels}):
            mask = np.array([("(none)" if each is None else each) == label for each in labels])
            cuts[f"{source}={label}"] = whole.cut(mask)
    outcomes = np.stack([(evidence.outcome == code).sum(axis=1) for code in range(len(OUTCOMES))], axis=1)
    return Partial(
        cuts=cuts,
        buckets=_bucket_counts(kinds, models, buckets),
        outcomes=outcomes.astype(np.int64),
        repaired=samples.num_rows - samples.column("repairs").null_count,
        digest=hashlib.sha256("\n".join(names).encode()).digest(),
    )


def _bucket_counts(kinds: Sequence[str], models: Ints, buckets: NDArray[np.int8]) -> Counter[tuple[str, str]]:
    counts = np.bincount(models.astype(np.int64) * len(BUCKETS) + buckets, minlength=len(kinds) * len(BUCKETS))
    return Counter(
        {
            (kinds[place // len(BUCKETS)], BUCKETS[place % len(BUCKETS)]): int(counts[place])
            for place in np.flatnonzero(counts).tolist()
        }
    )


def _counted(
    evidence: Evidence, batch: CheckBatch, buckets: NDArray[np.int8]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Success and trial of every measure on every row."""
    n, everywhere = batch.n, np.ones(batch.n, dtype=bool)
    hits = [buckets == 0, batch.status == ANSWERED, *(buckets == code for code in range(2, len(BUCKETS)))]
    trials = [everywhere] * len(hits)
    for position in rule_positions(evidence, batch.compiled).values():
        outcome = evidence.outcome[position]
        hits.append(outcome == PASS)
        trials.append((outcome == PASS) | (outcome == FAIL))
    for each in batch.compiled.fields:
        gold = batch.columns[batch.compiled.names.known[("gold", each.name)].column]
        known: NDArray[np.bool_] = pc.is_valid(gold).to_numpy()
        trials.append(known)
        hits.append(known & same_values(batch.column(each), gold, each) if known.any() else np.zeros(n, dtype=bool))
    return np.stack(hits), np.stack(trials)


def same_values(answers: pa.ChunkedArray, gold: pa.ChunkedArray, each: Field) -> NDArray[np.bool_]:
    """Where an answer is the gold value: numbers but for rounding, everything else exactly; a missing one is not."""
    if each.type.kind == "number" and not each.path.many:
        a, b = (pc.fill_null(column, np.nan).to_numpy() for column in (answers, gold))
        close: NDArray[np.bool_] = np.abs(a - b) <= SAME * np.maximum(np.abs(a), np.abs(b))
        return close
    if each.type.kind in {"text", "boolean", "date"} and not each.path.many:
        equal: NDArray[np.bool_] = pc.fill_null(pc.equal(answers, gold), False).to_numpy()
        return equal
    pairs = zip(answers.to_pylist(), gold.to_pylist(), strict=True)
    return np.array([a is not None and a == b for a, b in pairs], dtype=bool)


def _clusters(batch: CheckBatch, names: Sequence[str]) -> list[str] | None:
    source = batch.compiled.file.cluster
    if not source:
        return None
    labels = labels_of(batch, [source])[source]
    return [f"={name}" if label is None else f"{label}" for label, name in zip(labels, names, strict=True)]


@dataclass
class _Rows:
    """The measures of a batch, row by row; every sample has `width` rows, one a model."""

    hits: NDArray[np.bool_]
    trials: NDArray[np.bool_]
    scores: NDArray[np.float64]
    width: int
    clusters: list[str] | None

    def cut(self, mask: NDArray[np.bool_] | None) -> Cut:
        """The counts over some rows."""
        trials = self.trials if mask is None else self.trials & mask
        hits = self.hits & trials
        scored = ~np.isnan(self.scores) if mask is None else ~np.isnan(self.scores) & mask
        if self.clusters is not None:
            return self._by_cluster(hits, trials, scored, mask)
        won, tried = (self._by_sample(rows) for rows in (hits, trials))
        code = won * (self.width + 1) + tried
        cells: list[Counter[tuple[int, int]]] = []
        for row in code:
            counts = np.bincount(row, minlength=1)
            cells.append(
                Counter({divmod(int(each), self.width + 1): int(counts[each]) for each in np.flatnonzero(counts)})
            )
        return Cut([_without_nothing(cell) for cell in cells], self._score_cells(scored))

    def _by_sample(self, rows: NDArray[np.bool_]) -> Ints:
        """Sums over the models of a sample."""
        counts = rows.view(np.uint8) if self.width == 1 else rows.reshape(len(rows), -1, self.width).sum(axis=2)
        return counts.astype(np.int64)

    def _score_cells(self, scored: NDArray[np.bool_]) -> list[Counter[tuple[float, int]]]:
        found = []
        for values, there in zip(self.scores, scored, strict=True):
            sums = np.where(there, values, 0.0).reshape(-1, self.width).sum(axis=1)
            counts = there.reshape(-1, self.width).sum(axis=1)
            pairs, times = np.unique(np.stack([sums, counts]), axis=1, return_counts=True)
            found.append(
                Counter(
                    {
                        (float(total), int(count)): int(time)
                        for total, count, time in zip(*pairs, times, strict=True)
                        if count
                    }
                )
            )
        return found

    def _by_cluster(
        self,
        hits: NDArray[np.bool_],
        trials: NDArray[np.bool_],
        scored: NDArray[np.bool_],
        mask: NDArray[np.bool_] | None,
    ) -> Cut:
        assert self.clusters is not None  # noqa: S101 -- the caller looked
        labels, place = np.unique(np.array(self.clusters), return_inverse=True)
        size = len(labels)
        sums = [np.stack([np.bincount(place, row, size) for row in rows]).astype(np.int64) for rows in (hits, trials)]
        values = [np.where(there, row, 0.0) for row, there in zip(self.scores, scored, strict=True)]
        totals = np.array([np.bincount(place, row, size) for row in values]).reshape(len(values), size)
        counts = np.array([np.bincount(place, row, size) for row in scored]).reshape(len(values), size).astype(np.int64)
        there = np.ones(size, dtype=bool) if mask is None else np.bincount(place, mask, size) > 0
        return Cut(
            [Counter() for _ in hits],
            [Counter() for _ in self.scores],
            {
                str(labels[each]): (sums[0][:, each], sums[1][:, each], totals[:, each], counts[:, each])
                for each in np.flatnonzero(there)
            },
        )


def _without_nothing(cells: Counter[tuple[int, int]]) -> Counter[tuple[int, int]]:
    return Counter({(won, tried): count for (won, tried), count in cells.items() if tried})


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
    names, notes = measures(compiled, layout), list[str]()
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
