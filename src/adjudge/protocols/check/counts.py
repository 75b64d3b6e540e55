"""Counts of batches: what each batch adds to the numbers of all samples, of every slice and of every model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.evidence.rule import Floats, Mask
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, FAIL, OUTCOMES, PASS
from adjudge.protocols.check.batch import CheckBatch
from adjudge.protocols.check.judge import rule_outcomes
from adjudge.protocols.check.rulefile import Field, RuleFile
from adjudge.protocols.common.columns import codes
from adjudge.readers.sources import refuse_many_slices

Ints = NDArray[np.int64]
Sums = dict[str, dict[int, tuple[Floats, Ints]]]
"""By slice and measure: what every sample (or cluster) won, and in how many rows that were tried."""
SAME = 1e-9
"""Two numbers that differ by less than this share of the larger are the same."""


@dataclass
class Partial:
    """What one batch adds to the numbers.

    A row of `counts` says of a slice and a measure how often (`times`) a sample over its models, or a cluster, `won` so
    much in so many rows that were `tried`. The measures are those of `measures`, then the scores, whose sum is won.
    """

    counts: pa.Table
    models: list[str]
    outcomes: Ints
    repaired: int
    digest: bytes


def measures(file: RuleFile) -> list[str]:
    """The names of all shares, in the order of their counts."""
    rates = ["pass_rate", "answer_rate", *(f"{bucket}_rate" for bucket in BUCKETS[2:])]
    return [*rates, *(f"{code}.pass_rate" for code in file.rated), *(f"{name}.accuracy" for name in file.fields)]


def partial(samples: pa.Table, evidence: Evidence, batch: CheckBatch) -> Partial:
    """Count one batch, slice by slice."""
    compiled = batch.compiled
    buckets = codes(samples, "bucket", BUCKETS)
    model_column = samples.column("model").combine_chunks()
    kinds, models = model_column.dictionary.to_pylist(), model_column.indices.to_numpy().astype(np.int64)
    scores = [samples.column(f"score.{name}").to_numpy() for name in compiled.file.scores]
    rows = _Rows(
        [*_shares(evidence, batch, buckets), *((score, ~np.isnan(score)) for score in scores)],
        _clusters(batch, samples),
    )
    counts = [rows.counts([""], np.zeros(batch.n, dtype=np.int64), len(kinds))]
    if len(kinds) > 1:
        counts.append(rows.counts([f"model={kind}" for kind in kinds], models, 1))
    for source in compiled.file.slices:
        labels = ["(none)" if each is None else each for each in batch.labels(source)]
        values, place = np.unique(labels, return_inverse=True)
        refuse_many_slices(source, len(values))
        counts.append(rows.counts([f"{source}={label}" for label in values.tolist()], place, len(kinds)))
    outcomes = [np.count_nonzero(evidence.outcome == code, axis=1) for code in range(len(OUTCOMES))]
    return Partial(
        counts=pa.concat_tables(counts),
        models=kinds,
        outcomes=np.stack(outcomes, axis=1).astype(np.int64),
        repaired=samples.num_rows - samples.column("repairs").null_count,
        digest=_digest(samples.column("sample").combine_chunks()),
    )


def merged(partials: Sequence[Partial], *, clustered: bool) -> Sums:
    """The counts of all batches; those of a cluster are added in the order of the batches."""
    keys = ["slice", "measure", *(["cluster"] if clustered else ["won", "tried"])]
    added = ["won", "tried"] if clustered else ["times"]
    rows = pa.concat_tables([each.counts for each in partials]).group_by(keys, use_threads=False)
    table = rows.aggregate([(name, "sum") for name in added]).rename_columns([*keys, *added])
    table = table.sort_by([(name, "ascending") for name in keys]).combine_chunks()
    labels, measure, won, tried = (table.column(name).to_numpy() for name in ("slice", "measure", "won", "tried"))
    times = np.ones(len(won), dtype=np.int64) if clustered else table.column("times").to_numpy()
    begins = (labels[1:] != labels[:-1]) | (measure[1:] != measure[:-1])
    sums: Sums = {}
    for start, end in pairwise([0, *(np.flatnonzero(begins) + 1).tolist(), len(won)]):
        of_measure = (np.repeat(column[start:end], times[start:end]) for column in (won, tried))
        sums.setdefault(labels[start], {})[int(measure[start])] = tuple(of_measure)  # type: ignore[assignment]
    return sums


def _digest(names: pa.StringArray) -> bytes:
    """The SHA-256 of names, one a line."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(names)], pa.int32()), names)
    return hashlib.sha256(pc.binary_join(whole, "\n")[0].as_buffer()).digest()


def _shares(evidence: Evidence, batch: CheckBatch, buckets: NDArray[np.int8]) -> Iterator[tuple[Mask, Mask]]:
    """Success and trial of every share on every row."""
    everywhere = np.ones(batch.n, dtype=bool)
    for hits in (buckets == 0, batch.answered, *(buckets == code for code in range(2, len(BUCKETS)))):
        yield hits, everywhere
    for outcome in rule_outcomes(evidence, batch.compiled).values():
        yield outcome == PASS, (outcome == PASS) | (outcome == FAIL)
    for each in batch.compiled.fields:
        gold = batch.columns[batch.compiled.names.known[("gold", each.name)].column]
        known: Mask = pc.is_valid(gold).to_numpy()
        yield (same_values(batch.column(each), gold, each) if known.any() else known), known


def same_values(answers: pa.ChunkedArray, gold: pa.ChunkedArray, each: Field) -> NDArray[np.bool_]:
    """Where an answer is the gold value: numbers but for rounding, everything else exactly; a missing one is not."""
    if each.type.kind == "number" and not each.path.many:
        a, b = (pc.fill_null(column, np.nan).to_numpy() for column in (answers, gold))
        close: NDArray[np.bool_] = np.abs(a - b) <= SAME * np.maximum(np.abs(a), np.abs(b))
        return close
    if each.type.kind in {"text", "boolean", "date"} and not each.path.many:
        return np.asarray(pc.fill_null(pc.equal(answers, gold), False))
    pairs = zip(answers.to_pylist(), gold.to_pylist(), strict=True)
    return np.array([a is not None and a == b for a, b in pairs], dtype=bool)


def _clusters(batch: CheckBatch, samples: pa.Table) -> tuple[NDArray[np.str_], Ints] | None:
    """The names of the clusters, and the place of every row's among them."""
    source = batch.compiled.file.cluster
    if not source:
        return None
    labels, names = batch.labels(source), samples.column("sample").to_pylist()
    texts = [f"={name}" if label is None else f"{label}" for label, name in zip(labels, names, strict=True)]
    values, place = np.unique(np.array(texts), return_inverse=True)
    return values, place


@dataclass
class _Rows:
    """What every row of a batch adds to each measure (0, 1 or a score) and where it counts; and its cluster."""

    measures: list[tuple[NDArray[Any], Mask]]
    clusters: tuple[NDArray[np.str_], Ints] | None

    def counts(self, slices: Sequence[str], place: Ints, width: int) -> pa.Table:
        """The counts of some slices; `place` is that of each row's slice, `width` how many rows are one sample."""
        cells = self._of_clusters(place) if self.clusters is not None else self._of_samples(len(slices), place, width)
        labels = pa.array(slices, pa.string()).take(cells.column("slice"))
        return cells.set_column(cells.column_names.index("slice"), "slice", labels)

    def _of_clusters(self, place: Ints) -> pa.Table:
        assert self.clusters is not None  # noqa: S101 -- the caller looked
        names, cluster = self.clusters
        groups, column = np.unique(place * len(names) + cluster, return_inverse=True)
        won = [np.bincount(column, np.where(counted, values, 0), len(groups)) for values, counted in self.measures]
        tried = [np.bincount(column, counted, len(groups)).astype(np.int64) for _, counted in self.measures]
        every, measure = np.tile(groups, len(won)), np.repeat(np.arange(len(won)), len(groups))
        cells = {"slice": every // len(names), "measure": measure, "cluster": names[every % len(names)]}
        return pa.table({**cells, "won": np.concatenate(won), "tried": np.concatenate(tried)})

    def _of_samples(self, slices: int, place: Ints, width: int) -> pa.Table:
        counts = []
        for measure, (values, counted) in enumerate(self.measures):
            cells = []
            for code in range(slices) if width > 1 else (place,):  # a row alone is in one slice
                mask = counted & (place == code)
                won, tried = (rows.reshape(-1, width).sum(axis=1) for rows in (np.where(mask, values, 0), mask))
                columns = {"slice": np.full(len(won), code), "won": won.astype(np.float64), "tried": tried}
                cells.append(pa.table({"measure": np.full(len(won), measure), **columns}).filter(tried > 0))
            rows = pa.concat_tables(cells)
            counts.append(rows.group_by(rows.column_names, use_threads=False).aggregate([([], "count_all")]))
        return pa.concat_tables(counts).rename_columns({"count_all": "times"})
