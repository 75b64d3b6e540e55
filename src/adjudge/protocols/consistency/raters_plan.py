"""The plan for any number of raters over a declared label space, and its numbers: agreement alone, without a policy.

Pairwise agreement, Fleiss' κ, Krippendorff's α, and judges against a reference.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import ConfigError
from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, Outcome
from adjudge.protocols.base import Input, Judged, Measured, Named, Partition
from adjudge.protocols.common.columns import coded
from adjudge.protocols.common.plan import BatchPlan
from adjudge.protocols.consistency import charts
from adjudge.protocols.consistency import raters as r
from adjudge.protocols.consistency.config import PATHS, ConsistencyConfig
from adjudge.protocols.consistency.counts import dataset_digest
from adjudge.protocols.consistency.metrics import confusion_table, two_raters
from adjudge.protocols.consistency.policy import LABELS
from adjudge.protocols.consistency.rows import Rating
from adjudge.protocols.consistency.sections import rater_sections
from adjudge.stats.agreement import fleiss_kappa, krippendorff_alpha, pair_counts
from adjudge.stats.prevalence import rogan_gladen
from adjudge.stats.proportions import wilson
from adjudge.verdict.gates import Gate

MOST = 20
MOST_COMPARED = 64
"""Raters; pairs grow with their square."""


@dataclass
class RatersPartial:
    """Counts of one batch: pairs[r, s] is a confusion matrix, patterns are the label counts of items.

    `judges` are the matrices of all raters with the reference; of more than `MOST_COMPARED` raters there are no pairs.
    """

    raters: tuple[str, ...]
    pairs: NDArray[np.int64]
    judges: NDArray[np.int64]
    label_counts: NDArray[np.int64]
    patterns: Counter[tuple[int, ...]]
    verdicts: NDArray[np.int64]
    worst: list[dict[str, Any]]
    bad: list[str]
    digest: bytes


class RatersPlan(BatchPlan):
    """One configured evaluation of raters."""

    source = "the ratings give"
    unread = ""

    def __init__(self, config: ConsistencyConfig) -> None:
        self.settings = config
        self.labels = tuple(config.labels or LABELS)
        self.positive = config.positive or self.labels[0]
        if self.positive not in self.labels:
            raise ConfigError(f"positive label {self.positive!r} is not one of {', '.join(self.labels)}")
        self.config = msgspec.to_builtins(config)
        self.use_rules("consistency", r.RatersContext(config.reference), config.rules)
        self.use_digests(without=PATHS, rules=self.rules, labels=list(self.labels))

    def default_gates(self) -> Sequence[Gate]:
        """Only the gates that were asked for: raters of one's own have no bounds of ours."""
        config = self.settings
        gates = []
        if config.pa_gate is not None:
            gates.append(Gate("pa", "percent_agreement", ">=", config.pa_gate))
        if config.kappa_gate is not None:
            gates.append(Gate("kappa", "kappa", ">=", config.kappa_gate, undefined=config.kappa_undefined))
        return gates

    def inputs(self) -> Sequence[Input]:
        """The raters' files."""
        reader = r.RatingReader(self.labels, skip_bad=self.settings.on_bad_row == "skip")
        paths = tuple(self.settings.raters)
        return [Input("raters", paths, None, r.EXPECTED, read=reader.read, keys=Rating)]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of items with their evidence."""
        settings, names = self.settings, partition.groups
        if len(names) < 2:
            raise ConfigError(f"there is one rater, {names[0]}; agreement needs two (a file each, or a column `rater`)")
        if settings.reference is not None and settings.reference not in names:
            raise ConfigError(f"reference {settings.reference!r} is not one of the raters {', '.join(names)}")
        for batch, items in r.batches(partition, settings.reference, skip_bad=settings.on_bad_row == "skip"):
            evidence = self.graph.evaluate(batch)
            table = r.table(batch, items, names, self.labels, self.decided(batch, evidence))
            yield Judged(table, evidence, pa.table({"ratings": pa.array(batch.rated())}), batch)

    def restore(self, samples: pa.Table) -> r.RatingBatch:
        """The ratings as they were."""
        return r.restore(samples, self.labels, self.settings.reference)

    def decided(self, batch: r.RatingBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """A verdict on too few ratings rests on their number, any other on whether they agree."""
        verdicts = batch.verdicts()
        cites = np.zeros(evidence.outcome.shape, dtype=bool)
        cites[evidence.layout.positions_of("rating.too_few")] = verdicts >= r.TOO_FEW
        cites[evidence.layout.positions_of("rating.disagreement")] = verdicts < r.TOO_FEW
        return {
            "bucket": coded(r.BUCKET_OF[verdicts], BUCKETS),
            "verdict": coded(verdicts, r.VERDICTS),
            "cites": pack_citations(cites & (evidence.outcome <= Outcome.FAIL)),
        }

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """There are no texts, but the number of ratings an item."""
        same = outputs.column("ratings").to_pylist() == self.restore(samples).rated().tolist()
        return [] if same else ["ratings are not those of samples.parquet"]

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> RatersPartial:
        """What one batch adds to the numbers."""
        del evidence
        return partial(samples, self.restore(samples) if batch is None else batch, self.labels)

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Pairwise agreement, agreement of all, and judges against the reference."""
        return finish(partials, self.labels, self.positive, self.settings)


def partial(samples: pa.Table, batch: r.RatingBatch, labels: Sequence[str]) -> RatersPartial:
    """What one batch adds to the numbers."""
    names = r.raters_of(samples)
    k, m = len(labels), len(names)
    ratings = batch.ratings.astype(np.int64)
    compared = m if m <= MOST_COMPARED else 0
    pairs = np.zeros((compared, compared, k, k), dtype=np.int64)
    for a, b in np.ndindex(compared, compared):
        pairs[a, b] = _pair(ratings[a], ratings[b], k)
    judges = np.zeros((0 if batch.reference is None else m, k, k), dtype=np.int64)
    for judge in range(len(judges)):
        judges[judge] = _pair(ratings[batch.reference or 0], ratings[judge], k)
    counts = batch.counts(k)
    rows, repeats = np.unique(counts, axis=0, return_counts=True)
    label_counts = np.stack([(ratings == code).sum(axis=1) for code in range(k)], axis=1)
    items = samples.column("sample").to_pylist()
    split = batch.minority()
    worst = sorted(np.flatnonzero((split > 0) & (batch.rated() > 1)).tolist(), key=lambda i: (-split[i], items[i]))
    return RatersPartial(
        raters=names,
        pairs=pairs,
        judges=judges,
        label_counts=label_counts,
        patterns=Counter({tuple(row): int(count) for row, count in zip(rows.tolist(), repeats, strict=True)}),
        verdicts=np.bincount(batch.verdicts().astype(np.int64), minlength=len(r.VERDICTS)),
        worst=[
            {
                "item": items[i],
                "share": float(split[i]),
                "labels": {name: labels[c] for name, c in zip(names, ratings[:, i], strict=True) if c >= 0},
            }
            for i in worst[:MOST]
        ],
        bad=[line for note in batch.notes.values() for line in note.split("\n")],
        digest=hashlib.sha256("\n".join(items).encode()).digest(),
    )


def _pair(a: NDArray[np.int64], b: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The confusion matrix of two raters over the items that both labelled."""
    both = (a >= 0) & (b >= 0)
    return pair_counts(a[both], b[both], k)


def finish(
    partials: Sequence[RatersPartial], labels: Sequence[str], positive: str, config: ConsistencyConfig
) -> Measured:
    """All numbers, from the partials in order."""
    ordered, reference = config.ordered, config.reference
    seeded: dict[str, Any] = {"seed": config.seed, "resamples": config.resamples}
    names = partials[0].raters
    pairs, label_counts, verdicts = (
        np.sum([getattr(p, name) for p in partials], axis=0) for name in ("pairs", "label_counts", "verdicts")
    )
    patterns = sorted(sum((p.patterns for p in partials), Counter()).items())
    counts = np.repeat([pattern for pattern, _ in patterns], [count for _, count in patterns], axis=0)
    rated = counts[counts.sum(axis=1) >= 2]
    whole = rated[rated.sum(axis=1) == len(names)]
    n = len(rated)
    unanimous = int((rated.max(axis=1, initial=0) == rated.sum(axis=1)).sum())
    named = [Named("unanimous_rate", "", wilson(unanimous, n))]
    if len(names) > 2:
        named.append(Named("fleiss_kappa", "", fleiss_kappa(whole, **seeded)))
    alpha = krippendorff_alpha(rated, metric="ordinal" if ordered else "nominal", **seeded)
    named.append(Named("krippendorff_alpha", "", alpha))
    cells: dict[tuple[str, str], float | None] = {}
    pairwise: list[dict[str, Any]] = []
    for a, b in combinations(range(len(pairs)), 2):
        where = "" if len(names) == 2 else f"raters={names[a]}~{names[b]}"
        of_pair = two_raters(pairs[a, b], labels, ordered=ordered, where=where, **seeded)
        named += of_pair
        values = {name: estimate.value for name, place, estimate in of_pair if place == where}
        cells[names[a], names[b]] = cells[names[b], names[a]] = values["kappa"]
        pairwise.append({"first": names[a], "second": names[b], "n": int(pairs[a, b].sum()), **values})
    notes = [] if len(pairs) else [f"{len(names):,} raters are not compared in pairs; at most {MOST_COMPARED} are"]
    bad = sorted(line for p in partials for line in p.bad)
    worst = sorted((entry for p in partials for entry in p.worst), key=lambda entry: (-entry["share"], entry["item"]))
    top: dict[str, Any] = {
        "n": n,
        "raters": list(names),
        "labels": list(labels),
        "ordered": ordered,
        "pairwise": pairwise,
        "label_counts": {
            name: {label: int(label_counts[r, c]) for c, label in enumerate(labels)} for r, name in enumerate(names)
        },
        "most_disagreement": worst[:MOST],
        "bad_rows": {
            "count": len(bad),
            "listed": [{"at": at, "what": what} for at, _, what in (line.partition(": ") for line in bad[:1000])],
        },
    }
    drawn = [charts.raters(names, cells, "Cohen's κ")] if len(pairs) else []
    if len(names) == 2:
        value = {name: estimate.value for name, where, estimate in named if not where}
        top |= {
            **{name: value[name] for name in ("percent_agreement", "kappa")},
            "disagreements": int(pairs[0, 1].sum() - np.trace(pairs[0, 1])),
            "confusion": confusion_table(pairs[0, 1], labels),
        }
        drawn += [charts.confusion(pairs[0, 1], labels, *names), charts.by_label(named, labels)]
    if len(whole) < n:
        notes.append(f"{n - len(whole)} of {n} items lack a rating; Fleiss' κ rests on the {len(whole)} with all")
    if reference is not None:
        judges = np.sum([p.judges for p in partials], axis=0)
        named += _judges(names, judges, label_counts, labels, reference, positive)
        top |= {"reference": reference, "positive": positive}
        notes.append(
            f"the pass rate of each judge is corrected for its errors against {reference}, {positive!r} being the pass"
        )
    if few := int(verdicts[r.TOO_FEW]):
        notes.append(f"{few} items have fewer than two ratings; they are in no share")
    return Measured(
        estimates=named,
        metrics={"n": n} | {name: estimate.value for name, where, estimate in named if not where},
        top=top,
        charts=drawn,
        notes=notes,
        sections=rater_sections(
            names if len(pairs) else (),
            {(name, where): e for name, where, e in named},
            reference,
            worst[:MOST],
        ),
        digests={"dataset": dataset_digest([p.digest for p in partials])},
        one_model=True,
    )


def _judges(
    names: Sequence[str],
    judges: NDArray[np.int64],
    label_counts: NDArray[np.int64],
    labels: Sequence[str],
    reference: str,
    positive: str,
) -> list[Named]:
    """Each other rater against the reference, the labels cut into the positive one and the rest."""
    truth, p = names.index(reference), labels.index(positive)
    named = []
    for judge, name in enumerate(names):
        if judge == truth:
            continue
        matrix = judges[judge]
        tp = int(matrix[p, p])
        fn, fp = int(matrix[p].sum()) - tp, int(matrix[:, p].sum()) - tp
        tn = int(matrix.sum()) - tp - fn - fp
        hits, total = int(label_counts[judge, p]), int(label_counts[judge].sum())
        estimates = {
            "sensitivity": wilson(tp, tp + fn),
            "specificity": wilson(tn, tn + fp),
            "apparent_pass_rate": wilson(hits, total),
            "corrected_pass_rate": rogan_gladen(
                hits, total, true_positive=tp, false_negative=fn, true_negative=tn, false_positive=fp
            ),
        }
        named += [Named(measure, f"judge={name}", estimate) for measure, estimate in estimates.items()]
    return named
