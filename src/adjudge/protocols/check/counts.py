"""Counts of batches, slice by slice: what each batch adds to the numbers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, FAIL, OUTCOMES, PASS
from adjudge.protocols.check.batch import CheckBatch, labels_of
from adjudge.protocols.check.compiled import Compiled
from adjudge.protocols.check.judge import rule_outcomes
from adjudge.protocols.check.model_counts import ByModel, Clusters, by_model
from adjudge.protocols.check.rows import ANSWERED
from adjudge.protocols.check.rulefile import Field
from adjudge.protocols.common.columns import codes
from adjudge.readers.sources import refuse_many_slices

Ints = NDArray[np.int64]
SAME = 1e-9
"""Two numbers that differ by less than this share of the larger are the same."""


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
    """What one batch adds to the numbers: of all and of every slice in `cuts`, and of each model."""

    cuts: dict[str, Cut]
    models: ByModel | None
    buckets: Counter[tuple[str, str]]
    outcomes: Ints
    repaired: int
    digest: bytes


def measures(compiled: Compiled) -> list[str]:
    """The names of all shares, in the order of their counts."""
    return [
        "pass_rate",
        "answer_rate",
        *(f"{bucket}_rate" for bucket in BUCKETS[2:]),
        *(f"{code}.pass_rate" for code in compiled.file.rated),
        *(f"{each.name}.accuracy" for each in compiled.fields),
    ]


def partial(samples: pa.Table, evidence: Evidence, batch: CheckBatch) -> Partial:
    """Count one batch, slice by slice."""
    compiled = batch.compiled
    buckets = codes(samples, "bucket", BUCKETS)
    model_column = samples.column("model").combine_chunks()
    kinds, models = model_column.dictionary.to_pylist(), model_column.indices.to_numpy()
    hits, trials = _counted(evidence, batch, buckets)
    scores = np.array(
        [samples.column(f"score.{name}").to_numpy() for name in compiled.file.scores], dtype=np.float64
    ).reshape(len(compiled.file.scores), batch.n)
    width = len(kinds)
    whole = _Rows(hits, trials, scores, width, _clusters(batch, samples))
    cuts = {"": whole.cut(None)}
    for source, labels in labels_of(batch, compiled.file.slices).items():
        values, place = np.unique(["(none)" if each is None else each for each in labels], return_inverse=True)
        refuse_many_slices(source, len(values))
        for code, label in enumerate(values.tolist()):
            cuts[f"{source}={label}"] = whole.cut(place == code)
    outcomes = [np.count_nonzero(evidence.outcome == code, axis=1) for code in range(len(OUTCOMES))]
    return Partial(
        cuts=cuts,
        models=by_model(kinds, models, hits, trials, scores, whole.clusters) if width > 1 else None,
        buckets=_bucket_counts(kinds, models, buckets),
        outcomes=np.stack(outcomes, axis=1).astype(np.int64),
        repaired=samples.num_rows - samples.column("repairs").null_count,
        digest=_digest(samples.column("sample").combine_chunks()),
    )


def _digest(names: pa.StringArray) -> bytes:
    """The SHA-256 of names, one a line."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(names)], pa.int32()), names)
    return hashlib.sha256(pc.binary_join(whole, "\n")[0].as_buffer()).digest()


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
    for outcome in rule_outcomes(evidence, batch.compiled).values():
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


def _clusters(batch: CheckBatch, samples: pa.Table) -> Clusters | None:
    source = batch.compiled.file.cluster
    if not source:
        return None
    labels, names = labels_of(batch, [source])[source], samples.column("sample").to_pylist()
    texts = [f"={name}" if label is None else f"{label}" for label, name in zip(labels, names, strict=True)]
    values, place = np.unique(np.array(texts), return_inverse=True)
    return values, place


@dataclass
class _Rows:
    """The measures of a batch, row by row; every sample has `width` rows, one a model."""

    hits: NDArray[np.bool_]
    trials: NDArray[np.bool_]
    scores: NDArray[np.float64]
    width: int
    clusters: Clusters | None

    def cut(self, mask: NDArray[np.bool_] | None) -> Cut:
        """The counts over some rows."""
        trials = self.trials if mask is None else self.trials & mask
        hits = self.hits & trials
        scored = ~np.isnan(self.scores) if mask is None else ~np.isnan(self.scores) & mask
        if self.clusters is not None:
            return self._by_cluster(hits, trials, scored, mask)
        cells = [self._cells(*rows) for rows in zip(hits, trials, strict=True)]
        return Cut(cells, self._score_cells(scored))

    def _cells(self, hits: NDArray[np.bool_], trials: NDArray[np.bool_]) -> Counter[tuple[int, int]]:
        """How many samples have so many successes in so many trials, over their models; those without any trial are left."""
        if self.width == 1:
            won, tried = int(np.count_nonzero(hits)), int(np.count_nonzero(trials))
            return +Counter({(0, 1): tried - won, (1, 1): won})
        sums = [rows.reshape(-1, self.width).sum(axis=1) for rows in (hits, trials)]
        counts = np.bincount(sums[0] * (self.width + 1) + sums[1])
        cells = {divmod(each, self.width + 1): int(counts[each]) for each in np.flatnonzero(counts).tolist()}
        return Counter({cell: count for cell, count in cells.items() if cell[1]})

    def _score_cells(self, scored: NDArray[np.bool_]) -> list[Counter[tuple[float, int]]]:
        cells = []
        for values, has_score in zip(self.scores, scored, strict=True):
            sums = np.where(has_score, values, 0.0).reshape(-1, self.width).sum(axis=1)
            counts = has_score.reshape(-1, self.width).sum(axis=1)
            pairs, times = np.unique(np.stack([sums, counts]), axis=1, return_counts=True)
            cells.append(
                Counter(
                    {
                        (float(total), int(count)): int(time)
                        for total, count, time in zip(*pairs, times, strict=True)
                        if count
                    }
                )
            )
        return cells

    def _by_cluster(
        self,
        hits: NDArray[np.bool_],
        trials: NDArray[np.bool_],
        scored: NDArray[np.bool_],
        mask: NDArray[np.bool_] | None,
    ) -> Cut:
        assert self.clusters is not None  # noqa: S101 -- the caller looked
        labels, place = self.clusters
        size = len(labels)
        sums = [np.stack([np.bincount(place, row, size) for row in rows]).astype(np.int64) for rows in (hits, trials)]
        values = [np.where(has_score, row, 0.0) for row, has_score in zip(self.scores, scored, strict=True)]
        totals = np.array([np.bincount(place, row, size) for row in values]).reshape(len(values), size)
        counts = np.array([np.bincount(place, row, size) for row in scored]).reshape(len(values), size).astype(np.int64)
        has_score = np.ones(size, dtype=bool) if mask is None else np.bincount(place, mask, size) > 0
        return Cut(
            [Counter() for _ in hits],
            [Counter() for _ in self.scores],
            {
                str(labels[each]): (sums[0][:, each], sums[1][:, each], totals[:, each], counts[:, each])
                for each in np.flatnonzero(has_score)
            },
        )
