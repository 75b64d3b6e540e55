"""What one batch of flight samples adds to the numbers: counts and sums by model and flight, mergeable in order."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.common.columns import distinct_words, floats, holds, known, places_in
from adjudge.protocols.flight.batch import FlightBatch
from adjudge.protocols.flight.fields import FIELDS
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES, Ceiling, ceiling_of
from adjudge.protocols.flight.model_values import (
    COUNTED,
    BatchValues,
    RareAtoms,
    merge_values,
    pool_values,
    rows_by_model,
    values_of,
)
from adjudge.protocols.flight.rules import FAMILIES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

SCORES = ("availability", "constraint", "error", "total")
EXCEEDANCE = (50, 70, 90)
NAMED_IDS = 20
MOST_COMPARED = 64
"""Models; pairs grow with their square."""

# Columns summed by model and flight.
COLUMNS = (
    "n",
    "eligible",
    "answered",
    "with_reference",
    "repaired",
    "extra_keys",
    "completeness",
    *(f"bucket.{name}" for name in BUCKETS),
    *(f"checked.{family}" for family in FAMILIES),
    *(f"clean.{family}" for family in FAMILIES),
    *(f"{kind}.{score}" for kind in ("sum", "count") for score in SCORES),
    "sum.rubric",
    *(f"grade.{dimension}.{grade}" for dimension in DIMENSIONS for grade in GRADES),
    *(f"under.{limit}" for limit in EXCEEDANCE),
    "sum.mae",
    "sum.rmse",
    "sum.normalised_mae",
    "sum.beside_persistence",
    "sum.persistence",
    "count.persistence",
)
ATOM_FAMILIES = (*FAMILIES, "protocol")
PLACE = {name: index for index, name in enumerate(COLUMNS)}
FIELD_SUMS = ("absolute", "squared", "count", "persistence", "persistence_count")
PAIR_SUMS = ("only_first", "only_second", "both", "total", "total_squared")
"""What is summed of two models on the same samples; `total` is the difference of their total scores, ineligible as 0."""
_STORED = ("completeness", *SCORES, "rubric", "mae", "rmse", "normalised_mae", "beside_persistence", "persistence_mae")


@dataclass
class Partial:
    """Counts and sums of some samples of one task. Arrays start with the models; sums and pairs have flights too."""

    task: str
    models: tuple[str, ...]
    flights: tuple[str | None, ...]
    sums: Floats
    atoms: NDArray[np.integer[Any]]
    codes: NDArray[np.integer[Any]]
    fields: Floats
    pairs: Floats
    values: BatchValues
    ceiling: Ceiling
    samples_digests: bytes
    matched: int
    only_in: dict[str, int]
    named_ids: dict[str, list[str]]
    faults: list[str]
    faulty: int
    shown: Counter[str] = field(default_factory=Counter)

    @property
    def clustered(self) -> bool:
        """Whether the data says which flight a sample is of."""
        return any(name is not None for name in self.flights)

    def unmatched(self) -> dict[str, Any]:
        """Which ids stand on one side alone: how many, and the first of them."""
        counts = {kind: count for kind, count in self.only_in.items() if count}
        return {kind: {"count": count, "first": self.named_ids[kind]} for kind, count in counts.items()}


@dataclass(frozen=True)
class Batch:
    """A judged batch with the codes of its models and flights."""

    samples: pa.Table
    columns: dict[str, Floats]
    eligible: Mask
    has_reference: Mask
    model: Ints
    models: int
    flight: Ints
    flights: int


def partial(
    samples: pa.Table, evidence: Evidence, batch: FlightBatch, judge_gold: Callable[[FlightBatch], Evidence]
) -> Partial:
    """The partial of one batch; `judge_gold` evaluates the rules on a batch that has gold for answers."""
    models, code = distinct_words(samples, "model")
    flights, flight = distinct_words(samples, "flight")
    order = np.argsort(np.array([str(name) for name in models]), kind="stable")
    judged = Batch(
        samples=samples,
        columns={name: floats(samples, name) for name in _STORED},
        eligible=holds(samples, "verdict", "eligible"),
        has_reference=np.asarray(samples.column("has_reference").to_numpy()),
        model=np.argsort(order, kind="stable")[code],
        models=len(models),
        flight=flight,
        flights=len(flights),
    )
    rare = RareAtoms(evidence)
    answered_rows = ~holds(samples, "status", "missing")
    faults = samples.column("reference_fault")
    only_in, named = _unmatched(judged, answered_rows, known(samples, "reference_fault"))
    return Partial(
        task=batch.task.name,
        models=tuple(str(models[i]) for i in order),
        flights=tuple(flights),
        sums=_sums(judged, _columns(judged, rare)),
        atoms=rare.atoms(judged.model, judged.models, ATOM_FAMILIES),
        codes=rare.codes(judged.model, judged.models),
        fields=_fields(batch, judged),
        pairs=_pairs(judged),
        values=_values(judged, len(flights) == 1 and flights[0] is None),
        ceiling=ceiling_of(batch, judged.flight, judged.flights, judge_gold),
        samples_digests=_digest(samples),
        matched=int((judged.has_reference & answered_rows).sum()),
        only_in=only_in,
        named_ids=named,
        faults=sorted(set(faults.drop_null().to_pylist()))[:NAMED_IDS],
        faulty=len(faults) - faults.null_count,
        shown=Counter(
            {str(pair["values"]): pair["counts"] for pair in samples.column("shown_from").value_counts().to_pylist()}
        ),
    )


def merge(partials: Sequence[Partial]) -> Partial:
    """All partials of one task as one, in their order; those that were merged before may stand first among them."""
    first = partials[0]
    flights = tuple(
        sorted({name for part in partials for name in part.flights}, key=lambda name: (name is None, name or ""))
    )
    where = {name: index for index, name in enumerate(flights)}
    places = [np.array([where[name] for name in part.flights]) for part in partials]
    sums = np.zeros((len(first.models), len(flights), len(COLUMNS)))
    compared = compared_models(len(first.models))
    pairs = np.zeros((compared, compared, len(flights), len(PAIR_SUMS)))
    ceiling = Ceiling.of_flights(len(flights))
    only_in, shown = Counter[str](), Counter[str]()
    named: dict[str, list[str]] = {}
    for part, rows in zip(partials, places, strict=True):
        sums[:, rows] += part.sums
        pairs[:, :, rows] += part.pairs
        ceiling.add(part.ceiling, rows)
        only_in.update(part.only_in)
        shown.update(part.shown)
        for kind, ids in part.named_ids.items():
            named[kind] = (named.get(kind, []) + ids)[:NAMED_IDS]
    return Partial(
        task=first.task,
        models=first.models,
        flights=flights,
        sums=sums,
        atoms=sum((part.atoms for part in partials), start=np.zeros_like(first.atoms, dtype=np.int64)),
        codes=sum((part.codes for part in partials), start=np.zeros_like(first.codes, dtype=np.int64)),
        fields=sum((part.fields for part in partials), start=np.zeros_like(first.fields)),
        pairs=pairs,
        values=merge_values([part.values for part in partials], places),
        ceiling=ceiling,
        samples_digests=b"".join(part.samples_digests for part in partials),
        matched=sum(part.matched for part in partials),
        only_in=dict(only_in),
        named_ids=named,
        faults=sorted({text for part in partials for text in part.faults})[:NAMED_IDS],
        faulty=sum(part.faulty for part in partials),
        shown=shown,
    )


def pooled(whole: Partial) -> Partial:
    """All models of a task as one, for what is said of the task as a whole."""
    sums = {name: getattr(whole, name).sum(axis=0, keepdims=True) for name in ("sums", "atoms", "codes", "fields")}
    return replace(whole, models=("all",), values=pool_values(whole.values), **sums)


def _columns(judged: Batch, rare: RareAtoms) -> dict[str, NDArray[Any]]:
    """What is summed by model and flight, but for the columns of words."""
    samples, stored, eligible = judged.samples, judged.columns, judged.eligible
    values: dict[str, NDArray[Any]] = {
        "eligible": eligible,
        "answered": holds(samples, "status", "answered"),
        "with_reference": judged.has_reference,
        "repaired": known(samples, "repairs"),
        "extra_keys": samples.column("extra_keys").to_numpy(),
        "completeness": stored["completeness"],
    }
    for family in FAMILIES:
        checked, failed = rare.family(family)
        values[f"checked.{family}"] = checked
        values[f"clean.{family}"] = checked & ~failed
    for name in SCORES:
        values[f"sum.{name}"] = np.nan_to_num(stored[name])
        values[f"count.{name}"] = ~np.isnan(stored[name])
    values["sum.rubric"] = stored["rubric"]
    values |= {f"under.{limit}": stored["error"] < limit for limit in EXCEEDANCE}
    for name in ("mae", "rmse", "normalised_mae"):
        values[f"sum.{name}"] = np.where(eligible & np.isfinite(stored[name]), stored[name], 0.0)
    paired = eligible & np.isfinite(stored["persistence_mae"])
    values["count.persistence"] = paired
    values["sum.persistence"] = np.where(paired, stored["persistence_mae"], 0.0)
    values["sum.beside_persistence"] = np.where(paired, stored["beside_persistence"], 0.0)
    return values


def _sums(judged: Batch, columns: dict[str, NDArray[Any]]) -> Floats:
    """(models, flights, COLUMNS): every column summed; a column of words is counted word by word in one go."""
    cell, cells = judged.model * judged.flights + judged.flight, judged.models * judged.flights
    sums = np.zeros((cells, len(COLUMNS)))
    everything = np.bincount(cell, minlength=cells)
    sums[:, PLACE["n"]] = everything
    for name, column in columns.items():
        if column.dtype == bool:  # nearly all hold, or nearly none: the fewer are counted
            most = 2 * np.count_nonzero(column) > column.size
            counts = np.bincount(cell[~column if most else column], minlength=cells)
            sums[:, PLACE[name]] = everything - counts if most else counts
        elif column.any():
            sums[:, PLACE[name]] = np.bincount(cell, weights=column, minlength=cells)
    words = [("bucket", "bucket", BUCKETS), *((name, f"grade.{name}", GRADES) for name in DIMENSIONS)]
    for name, prefix, words_known in words:
        code = places_in(judged.samples, name, words_known)
        size = len(words_known) + 1
        counts = np.bincount(cell * size + code, minlength=cells * size).reshape(cells, size)
        start = PLACE[f"{prefix}.{words_known[0]}"]
        sums[:, start : start + len(words_known)] = counts[:, :-1]
    return sums.reshape(judged.models, judged.flights, -1)


def _values(judged: Batch, keep_rows: bool) -> BatchValues:
    """The values of all models; those of every sample's normalised errors only where no flights can be resampled."""
    stored = judged.columns
    of_rows = ("normalised_mae", "beside_persistence", "persistence_mae") if keep_rows else ()
    columns: dict[str, NDArray[Any]] = {name: stored[name] for name in ("mae", "rmse", "total", *of_rows)}
    columns |= {"eligible": judged.eligible, "flight": judged.flight.astype(np.int32)}
    return values_of(judged.model, ~np.isnan(stored["mae"]), columns, {name: stored[name] for name in COUNTED})


def _fields(batch: FlightBatch, judged: Batch) -> Floats:
    """(models, 19, FIELD_SUMS) over eligible samples; persistence over the cells where a state was shown."""
    sums = np.zeros((judged.models, len(FIELDS), len(FIELD_SUMS)))
    one_by_one = judged.models <= MOST_COMPARED
    of_models: list[Any] = [slice(None)]
    if one_by_one and judged.models > 1:
        of_models = list(rows_by_model(judged.model, judged.models))
    errors, still = batch.errors, batch.persistence_errors
    for step, place in np.ndindex(len(errors), len(FIELDS)):  # one field at a time stays in the cache
        measured = ~np.isnan(errors[step, place]) & judged.eligible
        error = np.where(measured, errors[step, place], 0.0)
        shown = measured & np.isfinite(still[step, place])
        persistence = np.where(shown, still[step, place], 0.0)
        columns = (error, error * error, measured, persistence, shown)
        if one_by_one:
            for index, rows in enumerate(of_models):
                sums[index, place] += [values[rows].sum() for values in columns]
        else:
            for kind, values in enumerate(columns):
                sums[:, place, kind] += np.bincount(judged.model, weights=values, minlength=judged.models)
    return sums


def compared_models(models: int) -> int:
    """How many models are compared with each other: all, or none where there are more than anybody reads."""
    return models if models <= MOST_COMPARED else 0


def _pairs(judged: Batch) -> Floats:
    """(models, models, flights, PAIR_SUMS): first against second on the same samples."""
    models = compared_models(judged.models)
    if not models:
        return np.zeros((0, 0, judged.flights, len(PAIR_SUMS)))
    rows = np.argsort(judged.model, kind="stable").reshape(judged.models, -1)
    total = np.where(judged.eligible, np.nan_to_num(judged.columns["total"]), 0.0)[rows]
    passed, flight = judged.eligible[rows], judged.flight[rows[0]]
    sums = np.zeros((judged.models, judged.models, judged.flights, len(PAIR_SUMS)))
    for a in range(judged.models):
        for b in range(a + 1, judged.models):
            gap = total[a] - total[b]
            columns = (passed[a] & ~passed[b], passed[b] & ~passed[a], passed[a] & passed[b], gap, gap * gap)
            for place, column in enumerate(columns):
                sums[a, b, :, place] = np.bincount(flight, weights=column, minlength=judged.flights)
    return sums


def _unmatched(judged: Batch, answered: Mask, faulty: Mask) -> tuple[dict[str, int], dict[str, list[str]]]:
    """How many ids stand only in the outputs, or only in the reference, and the first of them; models stand together."""
    models = judged.models
    in_reference, in_outputs = (judged.has_reference | faulty)[::models], answered.reshape(-1, models).any(axis=1)
    names = judged.samples.column("sample")
    only_in, named = {}, {}
    for kind, mask in (("outputs", in_outputs & ~in_reference), ("reference", ~in_outputs & in_reference)):
        places = np.flatnonzero(mask)
        only_in[kind] = int(places.size)
        named[kind] = [names[int(place) * models].as_py() for place in places[:NAMED_IDS]]
    return only_in, named


def _digest(samples: pa.Table) -> bytes:
    """Over ids and gold values: the same data set whatever the models."""
    whole = hashlib.sha256("\x00".join(samples.column("sample").to_pylist()).encode())
    gold = samples.column("gold").combine_chunks()
    whole.update(np.ascontiguousarray(gold.flatten().to_numpy(zero_copy_only=False)).data)
    return whole.digest()
