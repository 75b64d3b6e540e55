"""Counts of every model at once, in columns: a run may have as many models as samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Clusters = tuple[NDArray[np.str_], Ints]
"""The names of the clusters, and the place of every row's among them."""


@dataclass(frozen=True)
class Scored:
    """Sums of one score, and how many rows they are of: `times` cells of a model (or its cluster) have the same."""

    model: Ints
    total: Floats
    rows: Ints
    times: Ints


@dataclass(frozen=True)
class ByModel:
    """The counts of some rows by model, or with clusters by model and cluster; a column each.

    `hits` and `trials` are shaped (measures, columns). Scores of rows without clusters are counted by their value.
    """

    models: Sequence[str]
    model: Ints
    cluster: NDArray[np.str_] | None
    hits: Ints
    trials: Ints
    scores: list[Scored]


@dataclass(frozen=True)
class OfModel:
    """The counts of one model: a column a cluster, or a single one."""

    name: str
    clustered: bool
    hits: Ints
    trials: Ints
    scores: list[tuple[Floats, Ints]]


def by_model(
    models: Sequence[str],
    model: NDArray[np.integer],
    hits: NDArray[np.bool_],
    trials: NDArray[np.bool_],
    scores: Floats,
    clusters: Clusters | None,
) -> ByModel:
    """Count the rows of a batch; each has a model, and hits and trials of every measure."""
    labels, place = (None, np.zeros(len(model), dtype=np.int64)) if clusters is None else clusters
    width = 1 if labels is None else len(labels)
    used, column = np.unique(model.astype(np.int64) * width + place, return_inverse=True)
    won, tried = (_sums(rows, column, len(used)) for rows in (hits & trials, trials))
    scored = []
    for values in scores:
        has_score = ~np.isnan(values)
        if labels is None:
            pairs = np.stack([model[has_score].astype(np.float64), values[has_score]])
            (of, value), times = np.unique(pairs, axis=1, return_counts=True)
            scored.append(Scored(of.astype(np.int64), value, np.ones(len(of), dtype=np.int64), times))
        else:
            totals: Floats = np.bincount(column, np.where(has_score, values, 0.0), len(used)).astype(np.float64)
            rows = np.bincount(column, has_score, len(used)).astype(np.int64)
            scored.append(Scored(used // width, totals, rows, np.ones(len(used), dtype=np.int64)))
    cluster = None if labels is None else labels[used % width]
    return ByModel(models, used // width, cluster, won, tried, scored)


def _sums(rows: NDArray[np.bool_], column: Ints, size: int) -> Ints:
    return np.stack([np.bincount(column, row, size) for row in rows]).astype(np.int64)


def merged(parts: Sequence[ByModel]) -> list[OfModel]:
    """The counts of every model over all batches, in the order of their names."""
    models = sorted({name for part in parts for name in part.models})
    code_of = {name: code for code, name in enumerate(models)}
    codes = [np.array([code_of[name] for name in part.models], dtype=np.int64) for part in parts]
    model = np.concatenate([code[part.model] for code, part in zip(codes, parts, strict=True)])
    labels = None
    place = np.zeros(len(model), dtype=np.int64)
    if parts[0].cluster is not None:
        names = np.concatenate([part.cluster for part in parts if part.cluster is not None])
        labels, place = np.unique(names, return_inverse=True)
    width = 1 if labels is None else len(labels)
    used, column = np.unique(model * width + place, return_inverse=True)
    sums = [
        np.stack([np.bincount(column, row, len(used)) for row in np.concatenate(tables, axis=1)]).astype(np.int64)
        for tables in ([part.hits for part in parts], [part.trials for part in parts])
    ]
    scores = [
        _by_value(each, codes) if labels is None else _by_cluster(each, column, used // width)
        for each in zip(*(part.scores for part in parts), strict=True)
    ]
    edges = np.searchsorted(used // width, np.arange(len(models) + 1))
    score_edges = [np.searchsorted(each.model, np.arange(len(models) + 1)) for each in scores]
    rows = []
    for code, name in enumerate(models):
        mine = slice(edges[code], edges[code + 1])
        cells = []
        for each, at in zip(scores, score_edges, strict=True):
            of_model = slice(at[code], at[code + 1])
            cells.append(
                (
                    np.repeat(each.total[of_model], each.times[of_model]),
                    np.repeat(each.rows[of_model], each.times[of_model]),
                )
            )
        rows.append(OfModel(name, labels is not None, sums[0][:, mine], sums[1][:, mine], cells))
    return rows


def _by_value(parts: Sequence[Scored], codes: Sequence[Ints]) -> Scored:
    """One score over all batches, equal values of a model counted together."""
    model = np.concatenate([code[part.model] for code, part in zip(codes, parts, strict=True)])
    value = np.concatenate([part.total for part in parts])
    pairs, place = np.unique(np.stack([model.astype(np.float64), value]), axis=1, return_inverse=True)
    times = np.bincount(place.ravel(), np.concatenate([part.times for part in parts]), pairs.shape[1])
    return Scored(pairs[0].astype(np.int64), pairs[1], np.ones(pairs.shape[1], dtype=np.int64), times.astype(np.int64))


def _by_cluster(parts: Sequence[Scored], column: Ints, models: Ints) -> Scored:
    """One score over all batches, added by model and cluster in the order of the batches."""
    total, rows = (np.concatenate([getattr(part, name) for part in parts]) for name in ("total", "rows"))
    sums: Floats = np.bincount(column, total, len(models)).astype(np.float64)
    counts = np.bincount(column, rows, len(models)).astype(np.int64)
    return Scored(models, sums, counts, np.ones(len(models), dtype=np.int64))
