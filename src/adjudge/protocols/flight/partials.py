"""What one batch of flight samples adds to the numbers: counts and sums by model and flight, mergeable in order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, CRITICAL, ERROR, FAIL, NOT_APPLICABLE, PASS
from adjudge.protocols.flight.batch import difference
from adjudge.protocols.flight.fields import FIELDS, Task
from adjudge.protocols.flight.rules import FAMILIES
from adjudge.protocols.flight.scores import DIMENSIONS, GRADES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SCORES = ("availability", "constraint", "error", "total")
EXCEEDANCE = (50, 70, 90)
BINS = 2000
ATOM_KINDS = ("pass", "warning", "critical", "not_applicable", "error")

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
    "sum.persistence",
)
PLACE = {name: index for index, name in enumerate(COLUMNS)}


@dataclass
class Partial:
    """Counts and sums of some samples. `columns` holds the values that quantiles need: 16 bytes a sample."""

    models: tuple[str, ...]
    flights: tuple[str | None, ...]
    sums: Floats
    atoms: Ints
    codes: Ints
    fields: Floats
    histogram: Floats
    only: Ints
    both: Ints
    pair_sums: Floats
    columns: list[tuple[Floats, Floats, Floats, Floats]]
    samples_digest: bytes
    matched: int
    unmatched: dict[str, list[str]] = field(default_factory=dict)


def partial(samples: pa.Table, evidence: Evidence, task: Task) -> Partial:
    """The partial of one batch."""
    found, code = _dictionary(samples, "model")
    flights, flight = _dictionary(samples, "flight")
    order = np.argsort(np.array([str(name) for name in found]), kind="stable")
    models = tuple(str(found[i]) for i in order)
    model = np.argsort(order, kind="stable")[code]
    n_models, n_flights = len(models), len(flights)
    columns, eligible = _columns(samples, evidence)
    cell = model * n_flights + flight
    counted = [np.bincount(cell, weights=column, minlength=n_models * n_flights) for column in columns]
    sums = np.stack(counted, axis=-1).astype(float).reshape(n_models, n_flights, len(COLUMNS))
    chosen = [model == index for index in range(n_models)]
    mae, rmse = _floats(samples, "mae"), _floats(samples, "rmse")
    known = ~np.isnan(mae)
    total = np.where(eligible, np.nan_to_num(_floats(samples, "total")), 0.0)
    only, both, pair_sums = _pairs(eligible, total, flight, n_models, n_flights, ordered=model)
    return Partial(
        models=models,
        flights=tuple(flights),
        sums=sums,
        atoms=np.stack([_atoms(evidence, mask) for mask in chosen]),
        codes=np.stack(
            [
                np.bincount(
                    evidence.code[:, mask][evidence.outcome[:, mask] == FAIL],
                    minlength=len(evidence.layout.codes),
                )
                for mask in chosen
            ]
        ),
        fields=np.stack([_fields(samples, mask & eligible, task) for mask in chosen]),
        histogram=np.stack([_histogram(samples, mask, eligible) for mask in chosen]),
        only=only,
        both=both,
        pair_sums=pair_sums,
        columns=[
            (
                mae[m & known & eligible],
                rmse[m & known & eligible],
                mae[m & known & ~eligible],
                rmse[m & known & ~eligible],
            )
            for m in chosen
        ],
        samples_digest=_digest(samples),
        matched=int((samples.column("has_reference").to_numpy() & (_words(samples, "status") != "missing")).sum()),
        unmatched=_unmatched(samples, n_models),
    )


def merge(partials: Sequence[Partial]) -> Partial:
    """All partials as one, in their order."""
    models = partials[0].models
    flights = tuple(
        sorted({name for part in partials for name in part.flights}, key=lambda name: (name is None, name or ""))
    )
    where = {name: index for index, name in enumerate(flights)}
    first = partials[0]
    sums = np.zeros((len(models), len(flights), len(COLUMNS)))
    pair_sums = np.zeros((len(models), len(models), len(flights)))
    merged = Partial(
        models,
        flights,
        sums,
        np.zeros_like(first.atoms),
        np.zeros_like(first.codes),
        np.zeros_like(first.fields),
        np.zeros_like(first.histogram),
        np.zeros_like(first.only),
        np.zeros_like(first.both),
        pair_sums,
        [],
        b"",
        sum(part.matched for part in partials),
    )
    whole = hashlib.sha256()
    unmatched: dict[str, list[str]] = {}
    for part in partials:
        rows = [where[name] for name in part.flights]
        sums[:, rows] += part.sums
        pair_sums[:, :, rows] += part.pair_sums
        for name in ("atoms", "codes", "fields", "histogram", "only", "both"):
            total = getattr(merged, name)
            total += getattr(part, name)
        whole.update(part.samples_digest)
        for kind, names in part.unmatched.items():
            unmatched.setdefault(kind, []).extend(names[: 20 - len(unmatched.get(kind, []))])
    merged.columns = [
        (
            np.concatenate([part.columns[index][0] for part in partials]),
            np.concatenate([part.columns[index][1] for part in partials]),
            np.concatenate([part.columns[index][2] for part in partials]),
            np.concatenate([part.columns[index][3] for part in partials]),
        )
        for index in range(len(models))
    ]
    merged.samples_digest = whole.digest()
    merged.unmatched = unmatched
    return merged


def _columns(samples: pa.Table, evidence: Evidence) -> tuple[list[Floats], NDArray[np.bool_]]:
    n = samples.num_rows
    bucket = _words(samples, "bucket")
    eligible = _words(samples, "verdict") == "eligible"
    answered = _words(samples, "status") == "answered"
    values: dict[str, Any] = {
        "n": np.ones(n),
        "eligible": eligible,
        "answered": answered,
        "with_reference": samples.column("has_reference").to_numpy(),
        "repaired": samples.column("repairs").combine_chunks().is_valid().to_numpy(zero_copy_only=False),
        "extra_keys": samples.column("extra_keys").to_numpy(),
        "completeness": _floats(samples, "completeness"),
    }
    values |= {f"bucket.{name}": bucket == name for name in BUCKETS}
    for family in FAMILIES:
        outcome = evidence.outcome[_span(evidence, family)]
        failed = (outcome == FAIL).any(axis=0)
        checked = failed | (outcome == PASS).any(axis=0)
        values[f"checked.{family}"] = checked
        values[f"clean.{family}"] = checked & ~failed
    for name in SCORES:
        column = _floats(samples, name)
        values[f"sum.{name}"] = np.nan_to_num(column)
        values[f"count.{name}"] = ~np.isnan(column)
    values["sum.rubric"] = _floats(samples, "rubric")
    for dimension in DIMENSIONS:
        grades = _words(samples, dimension)
        values |= {f"grade.{dimension}.{grade}": grades == grade for grade in GRADES}
    error = _floats(samples, "error")
    values |= {f"under.{limit}": error < limit for limit in EXCEEDANCE}
    for name in ("mae", "rmse", "normalised_mae"):
        column = _floats(samples, name)
        values[f"sum.{name}"] = np.where(eligible & np.isfinite(column), column, 0.0)
    persistence = _floats(samples, "persistence_mae")
    values["sum.persistence"] = np.where(eligible & np.isfinite(persistence), persistence, 0.0)
    return [np.asarray(values[name], dtype=float) for name in COLUMNS], eligible


def _span(evidence: Evidence, family: str) -> slice:
    """Rows of a family; a plug-in may add some further down, so the slice is only used when they are together."""
    rows = evidence.layout.positions_of(family)
    if rows.size and rows[-1] - rows[0] + 1 == rows.size:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows  # type: ignore[return-value]


def _atoms(evidence: Evidence, mask: NDArray[np.bool_]) -> Ints:
    """Atoms by position and kind."""
    outcome, severity = evidence.outcome[:, mask], evidence.severity[:, mask]
    failed = outcome == FAIL
    critical = failed & (severity == CRITICAL)
    kinds = (
        outcome == PASS,
        failed & ~critical,
        critical,
        outcome == NOT_APPLICABLE,
        outcome == ERROR,
    )
    return np.stack([kind.sum(axis=1) for kind in kinds], axis=1).astype(np.int64)


def _fields(samples: pa.Table, mask: NDArray[np.bool_], task: Task) -> Floats:
    """(19, 4): sums of |error|, error², the same for persistence, and the count, over eligible samples."""
    picked = samples.filter(pa.array(mask))
    if not picked.num_rows:
        return np.zeros((len(FIELDS), 4))
    answer, gold = (_cells(picked, name, task.steps) for name in ("answer", "gold"))
    shown = _cells(picked, "shown", 1)
    error = difference(answer, gold)
    known = ~np.isnan(error)
    still = np.where(known, np.nan_to_num(difference(np.broadcast_to(shown, gold.shape).copy(), gold)), 0.0)
    error = np.where(known, error, 0.0)
    return np.stack(
        [error.sum(axis=(0, 2)), (error * error).sum(axis=(0, 2)), still.sum(axis=(0, 2)), known.sum(axis=(0, 2))],
        axis=1,
    )


def _histogram(samples: pa.Table, mask: NDArray[np.bool_], eligible: NDArray[np.bool_]) -> Floats:
    """(scores, bins, 2): counts and sums of each score over the eligible samples that have it, by value."""
    found = np.zeros((len(SCORES) + 1, BINS + 1, 2))
    for index, name in enumerate((*SCORES, "rubric")):
        column = _floats(samples, name)
        use = mask & ~np.isnan(column) & (eligible if name != "rubric" else True)
        values = column[use]
        bins = np.clip((values * (BINS / 100.0)).astype(np.int64), 0, BINS)
        found[index, :, 0] = np.bincount(bins, minlength=BINS + 1)
        found[index, :, 1] = np.bincount(bins, weights=values, minlength=BINS + 1)
    return found


def _pairs(
    eligible: NDArray[np.bool_], total: Floats, flight: Ints, n_models: int, n_flights: int, *, ordered: Ints
) -> tuple[Ints, Ints, Floats]:
    """How often one model is eligible where another is not, and the sums of total-score differences by flight."""
    rows = np.argsort(ordered, kind="stable").reshape(n_models, -1)
    passed, scored, flights = eligible[rows], total[rows], flight[rows[0]]
    wide = passed.astype(np.int64)
    both = wide @ wide.T
    only = wide @ (1 - wide).T
    pair_sums = np.zeros((n_models, n_models, n_flights))
    for a in range(n_models):
        for b in range(a + 1, n_models):
            pair_sums[a, b] = np.bincount(flights, weights=scored[a] - scored[b], minlength=n_flights)
    return only, both, pair_sums


def _unmatched(samples: pa.Table, n_models: int) -> dict[str, list[str]]:
    """Ids that stand only in the outputs, or only in the reference; a sample's models stand together."""
    has_reference = samples.column("has_reference").to_numpy()[::n_models]
    given = (_words(samples, "status") != "missing").reshape(-1, n_models).any(axis=1)
    names = samples.column("sample").take(np.arange(0, samples.num_rows, n_models))
    found = {}
    for kind, mask in (("outputs", given & ~has_reference), ("reference", ~given & has_reference)):
        found[kind] = [names[int(index)].as_py() for index in np.flatnonzero(mask)[:20]]
    return found


def _digest(samples: pa.Table) -> bytes:
    """Over ids and gold values: the same data set whatever the models."""
    whole = hashlib.sha256()
    for name in ("sample", "gold"):
        column = samples.column(name).combine_chunks()
        if name == "sample":
            whole.update("\x00".join(column.to_pylist()).encode())
        else:
            whole.update(np.ascontiguousarray(column.flatten().to_numpy(zero_copy_only=False)).tobytes())
    return whole.digest()


def _dictionary(samples: pa.Table, name: str) -> tuple[list[Any], Ints]:
    """Distinct words (None last) and the code of each row; only words that occur."""
    column = samples.column(name).combine_chunks()
    words = column.dictionary.to_pylist()
    codes = column.indices.fill_null(len(words)).to_numpy()
    used, dense = np.unique(codes, return_inverse=True)
    return [words[i] if i < len(words) else None for i in used], dense.astype(np.int64)


def _words(samples: pa.Table, name: str) -> NDArray[np.object_]:
    column = samples.column(name).combine_chunks()
    words = np.array([*column.dictionary.to_pylist(), None], dtype=object)
    found: NDArray[np.object_] = words[column.indices.fill_null(len(words) - 1).to_numpy()]
    return found


def _floats(samples: pa.Table, name: str) -> Floats:
    return np.asarray(samples.column(name).to_numpy(), dtype=float)


def _cells(samples: pa.Table, name: str, steps: int) -> Floats:
    flat = samples.column(name).combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(flat.reshape(samples.num_rows, steps, len(FIELDS)).transpose(1, 2, 0))
