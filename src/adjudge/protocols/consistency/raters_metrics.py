"""The numbers of many raters: pairwise agreement, Fleiss' κ, Krippendorff's α, and judges against a reference."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.base import Measured, Named
from adjudge.protocols.consistency import charts
from adjudge.protocols.consistency.config import ConsistencyConfig
from adjudge.protocols.consistency.counts import dataset_digest, sum_of
from adjudge.protocols.consistency.metrics import confusion_table, two_raters
from adjudge.protocols.consistency.raters import VERDICTS, RatingBatch, raters_of
from adjudge.protocols.consistency.sections import rater_sections
from adjudge.stats.agreement import fleiss_kappa, krippendorff_alpha, pair_counts
from adjudge.stats.prevalence import rogan_gladen
from adjudge.stats.proportions import wilson

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
    worst: list[tuple[float, str, dict[str, str]]]
    bad: list[str]
    digest: bytes


def partial(samples: pa.Table, batch: RatingBatch, labels: Sequence[str]) -> RatersPartial:
    """What one batch adds to the numbers."""
    names = raters_of(samples)
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
        verdicts=np.bincount(batch.verdicts().astype(np.int64), minlength=len(VERDICTS)),
        worst=[
            (
                float(split[i]),
                items[i],
                {name: labels[c] for name, c in zip(names, ratings[:, i], strict=True) if c >= 0},
            )
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
    pairs, label_counts = sum_of([p.pairs for p in partials]), sum_of([p.label_counts for p in partials])
    verdicts = sum_of([p.verdicts for p in partials])
    patterns: Counter[tuple[int, ...]] = Counter()
    for one in partials:
        patterns.update(one.patterns)
    counts = np.repeat(np.array(sorted(patterns)), [patterns[key] for key in sorted(patterns)], axis=0)
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
    for a in range(len(pairs)):
        for b in range(a + 1, len(pairs)):
            where = "" if len(names) == 2 else f"raters={names[a]}~{names[b]}"
            of_pair = two_raters(pairs[a, b], labels, ordered=ordered, where=where, **seeded)
            named += of_pair
            values = {name: estimate.value for name, place, estimate in of_pair if place == where}
            cells[names[a], names[b]] = cells[names[b], names[a]] = values["kappa"]
            pairwise.append({"first": names[a], "second": names[b], "n": int(pairs[a, b].sum()), **values})
    notes = []
    if not len(pairs):
        notes.append(f"{len(names):,} raters are not compared in pairs; at most {MOST_COMPARED} are")
    bad = sorted(line for p in partials for line in p.bad)
    top: dict[str, Any] = {
        "n": n,
        "raters": list(names),
        "labels": list(labels),
        "ordered": ordered,
        "pairwise": pairwise,
        "label_counts": {
            name: {label: int(label_counts[r, c]) for c, label in enumerate(labels)} for r, name in enumerate(names)
        },
        "most_disagreement": [
            {"item": item, "share": share, "labels": ratings}
            for share, item, ratings in sorted((w for p in partials for w in p.worst), key=lambda w: (-w[0], w[1]))[
                :MOST
            ]
        ],
        "bad_rows": {
            "count": len(bad),
            "listed": [{"at": at, "what": what} for at, _, what in (line.partition(": ") for line in bad[:1000])],
        },
    }
    drawn = [charts.raters(names, cells, "Cohen's κ")] if len(pairs) else []
    if len(names) == 2:
        value = {name: estimate.value for name, where, estimate in named if not where}
        top |= {
            "percent_agreement": value["percent_agreement"],
            "kappa": value["kappa"],
            "disagreements": int(pairs[0, 1].sum() - np.trace(pairs[0, 1])),
            "confusion": confusion_table(pairs[0, 1], labels),
        }
        drawn += [charts.confusion(pairs[0, 1], labels, *names), charts.by_label(named, labels)]
    if len(whole) < n:
        notes.append(f"{n - len(whole)} of {n} items lack a rating; Fleiss' κ rests on the {len(whole)} with all")
    if reference is not None:
        judges = sum_of([p.judges for p in partials])
        named += _judges(names, judges, label_counts, labels, reference, positive)
        top |= {"reference": reference, "positive": positive}
        notes.append(
            f"the pass rate of each judge is corrected for its errors against {reference}, {positive!r} being the pass"
        )
    few = int(verdicts[VERDICTS.index("TOO_FEW")])
    if few:
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
            top["most_disagreement"],
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
        where = f"judge={name}"
        hits, total = int(label_counts[judge, p]), int(label_counts[judge].sum())
        named += [
            Named("sensitivity", where, wilson(tp, tp + fn)),
            Named("specificity", where, wilson(tn, tn + fp)),
            Named("apparent_pass_rate", where, wilson(hits, total)),
            Named(
                "corrected_pass_rate",
                where,
                rogan_gladen(hits, total, true_positive=tp, false_negative=fn, true_negative=tn, false_positive=fp),
            ),
        ]
    return named
