"""What is counted of every model: the values that quantiles and distributions need, and the atoms that did not pass.

Values are columns of all models in a batch, and of each model after merging.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import CRITICAL, FAIL, OUTCOMES, PASS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

COUNTED = ("completeness", "availability", "constraint", "rubric")
"""Scores with few distinct values, which are counted by value."""


@dataclass
class Values:
    """The values of one model.

    `columns` have a row a sample with a reference, `flight` is its place among the partial's flights. Scores with few
    distinct values are counted by value.
    """

    columns: dict[str, NDArray[Any]]
    counted: dict[str, Counter[float]]


@dataclass
class BatchValues:
    """The values of all models of a batch, each row with the place of its model: nothing is made a model at a time."""

    model: NDArray[Any]
    columns: dict[str, NDArray[Any]]
    counted: dict[str, tuple[Ints, Floats, Ints]]
    """By name of a score: models, values and how often a model has the value."""


def values_of(
    model: Ints, with_error: NDArray[np.bool_], columns: Mapping[str, NDArray[Any]], counted: Mapping[str, Floats]
) -> BatchValues:
    """The values of a batch: columns of the rows `with_error`, and counts over all rows."""
    return BatchValues(
        _narrow(model[with_error]),
        {name: column[with_error] for name, column in columns.items()},
        {name: _count(model, values, np.ones(values.size, dtype=np.int64)) for name, values in counted.items()},
    )


def merge_values(parts: Sequence[BatchValues], places: Sequence[NDArray[Any]]) -> BatchValues:
    """The values of all batches in the order of the models; `places` numbers the flights of each batch anew."""
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    columns["flight"] = np.concatenate(
        [place[part.columns["flight"]] for part, place in zip(parts, places, strict=True)]
    )
    model = np.concatenate([part.model for part in parts])
    if model.any():
        order = np.argsort(model, kind="stable")
        model, columns = model[order], {name: column[order] for name, column in columns.items()}
    counted = {name: _joined([part.counted[name] for part in parts]) for name in parts[0].counted}
    return BatchValues(model, columns, counted)


def pool_values(whole: BatchValues) -> BatchValues:
    """The values of all models as those of one."""
    counted = {name: (np.zeros_like(counts[0]), *counts[1:]) for name, counts in whole.counted.items()}
    return BatchValues(
        np.zeros_like(whole.model), whole.columns, {name: _joined([counts]) for name, counts in counted.items()}
    )


def split_values(whole: BatchValues, models: int) -> list[Values]:
    """The values of every model, from merged ones."""
    ends = np.concatenate([[0], np.cumsum(np.bincount(whole.model, minlength=models))]).tolist()
    counters = {name: _counters(*counts, models) for name, counts in whole.counted.items()}
    return [
        Values(
            {name: column[start:end] for name, column in whole.columns.items()},
            {name: of_models[index] for name, of_models in counters.items()},
        )
        for index, (start, end) in enumerate(pairwise(ends))
    ]


def rows_by_model(model: Ints, models: int) -> Iterator[NDArray[np.intp]]:
    """The rows of every model, in their order."""
    ends = np.cumsum(np.bincount(model, minlength=models))[:-1]
    yield from np.split(np.argsort(_narrow(model), kind="stable"), ends)


def _count(model: Ints, values: Floats, counts: Ints) -> tuple[Ints, Floats, Ints]:
    """How often each model has each value, in the order of models and values; NaN is no value."""
    known = ~np.isnan(values)
    model, counts = model[known], counts[known]
    distinct, code = np.unique(values[known], return_inverse=True)
    cells, place = np.unique(model * max(1, distinct.size) + code, return_inverse=True)
    totals = np.bincount(place, weights=counts, minlength=cells.size).astype(np.int64)
    of_model, of_value = np.divmod(cells, max(1, distinct.size))
    return of_model, distinct[of_value], totals


def _joined(parts: Sequence[tuple[Ints, Floats, Ints]]) -> tuple[Ints, Floats, Ints]:
    return _count(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _counters(model: Ints, values: Floats, counts: Ints, models: int) -> list[Counter[float]]:
    counters: list[Counter[float]] = [Counter() for _ in range(models)]
    for index, value, count in zip(model.tolist(), values.tolist(), counts.tolist(), strict=True):
        counters[index][value] = count
    return counters


def _narrow(model: Ints) -> NDArray[Any]:
    """Places of models in as few bytes as hold them, which sort quicker."""
    return model.astype(np.uint16 if model.max(initial=0) < 1 << 16 else np.int64)


ATOM_KINDS = ("pass", "warning", "critical", "not_applicable", "error")
_KIND_OF_OUTCOME = np.array([ATOM_KINDS.index("warning" if word == "fail" else word) for word in OUTCOMES])


class RareAtoms:
    """The atoms of a batch that did not pass: few, so they are counted one by one and the rest by difference."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.n = evidence, evidence.n
        flat = np.flatnonzero(evidence.outcome != PASS)
        self.position, self.sample = np.divmod(flat, max(1, evidence.n))
        self.outcome = evidence.outcome.ravel()[flat]
        self.severity = evidence.severity.ravel()[flat]
        self.code = evidence.code.ravel()[flat]

    def atoms(self, model: Ints, n_models: int, families: Sequence[str]) -> NDArray[np.int32]:
        """(models, families, kinds): how many atoms are of each kind; rules of other families, a plugin's, are left out."""
        layout, width = self.evidence.layout, len(families) + 1
        places = {name: place for place, name in enumerate(families)}
        family = np.array([places.get(position.rule["family"], len(families)) for position in layout.positions])
        critical = (self.outcome == FAIL) & (self.severity == CRITICAL)
        kind = np.where(critical, ATOM_KINDS.index("critical"), _KIND_OF_OUTCOME[self.outcome])
        place = (model[self.sample] * width + family[self.position]) * len(ATOM_KINDS) + kind
        counts = np.bincount(place, minlength=n_models * width * len(ATOM_KINDS))
        counts = counts.reshape(n_models, width, len(ATOM_KINDS))
        atoms = np.bincount(model, minlength=n_models)[:, None] * np.bincount(family, minlength=width)
        counts[:, :, 0] = atoms - counts.sum(axis=2)
        return counts[:, : len(families)].astype(np.int32)

    def codes(self, model: Ints, n_models: int) -> NDArray[np.int32]:
        """(models, codes): how many atoms failed under each code."""
        failed, n_codes = self.outcome == FAIL, len(self.evidence.layout.codes)
        place = model[self.sample[failed]] * n_codes + self.code[failed]
        return np.bincount(place, minlength=n_models * n_codes).reshape(n_models, n_codes).astype(np.int32)

    def family(self, name: str) -> tuple[Mask, Mask]:
        """Per sample: whether an atom of the family passed or failed, and whether any failed."""
        rows = self.evidence.layout.positions_of(name)
        in_family = np.zeros(self.evidence.layout.width, dtype=bool)
        in_family[rows] = True
        of_family = in_family[self.position]
        others = np.bincount(self.sample[of_family], minlength=self.n)
        failed = np.zeros(self.n, dtype=bool)
        failed[self.sample[of_family & (self.outcome == FAIL)]] = True
        return failed | (others < rows.size), failed
