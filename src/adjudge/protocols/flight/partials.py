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
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES
from adjudge.protocols.flight.rules import FAMILIES

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
_FLOATS = ("completeness", *SCORES, "rubric", "mae", "rmse", "normalised_mae", "persistence_mae")
_KIND_OF_OUTCOME = np.zeros(1 + max(PASS, FAIL, NOT_APPLICABLE, ERROR), dtype=np.int64)
_KIND_OF_OUTCOME[[PASS, FAIL, NOT_APPLICABLE, ERROR]] = [
    ATOM_KINDS.index(kind) for kind in ("pass", "warning", "not_applicable", "error")
]
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


@dataclass
class Errors:
    """What answers, and the last shown state, are off by, shaped (steps, 19, n); angles by shortest arc, NaN for none."""

    answered: Floats
    persistence: Floats

    @classmethod
    def stored(cls, samples: pa.Table, task: Task) -> Errors:
        """From the columns of the samples."""
        answer, gold = (_cells(samples, name, task.steps) for name in ("answer", "gold"))
        return cls(difference(answer, gold), difference(_cells(samples, "shown", 1), gold))


def partial(samples: pa.Table, evidence: Evidence, task: Task, errors: Errors | None = None) -> Partial:
    """The partial of one batch; `errors`, where they are known already, are those of the samples."""
    found, code = _dictionary(samples, "model")
    flights, flight = _dictionary(samples, "flight")
    order = np.argsort(np.array([str(name) for name in found]), kind="stable")
    models = tuple(str(found[i]) for i in order)
    model = np.argsort(order, kind="stable")[code]
    n_models, n_flights = len(models), len(flights)
    floats = {name: _floats(samples, name) for name in _FLOATS}
    eligible, given = _is(samples, "verdict", "eligible"), ~_is(samples, "status", "missing")
    has_reference = np.asarray(samples.column("has_reference").to_numpy())
    rare = _Rare(evidence)
    columns = _columns(samples, floats, eligible, has_reference, rare)
    total = np.where(eligible, np.nan_to_num(floats["total"]), 0.0)
    only, both, pair_sums = _pairs(eligible, total, flight, n_models, n_flights, ordered=model)
    return Partial(
        models=models,
        flights=tuple(flights),
        sums=_sums(samples, columns, model * n_flights + flight, n_models * n_flights).reshape(n_models, n_flights, -1),
        atoms=rare.atoms(model, n_models),
        codes=rare.codes(model, n_models),
        fields=_fields(errors or Errors.stored(samples, task), eligible, model, n_models),
        histogram=_histogram(floats, eligible, model, n_models),
        only=only,
        both=both,
        pair_sums=pair_sums,
        columns=[_values(floats, eligible, model == index) for index in range(n_models)],
        samples_digest=_digest(samples),
        matched=int((has_reference & given).sum()),
        unmatched=_unmatched(samples, has_reference, given, n_models),
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


class _Rare:
    """The atoms of a batch that did not pass: few, so they are counted one by one and the rest by difference."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.n = evidence, evidence.n
        flat = np.flatnonzero(evidence.outcome != PASS)
        self.position, self.sample = np.divmod(flat, max(1, evidence.n))
        self.outcome = evidence.outcome.ravel()[flat]
        self.severity = evidence.severity.ravel()[flat]
        self.code = evidence.code.ravel()[flat]

    def atoms(self, model: Ints, n_models: int) -> Ints:
        """(models, positions, kinds): how many atoms are of each kind."""
        width = self.evidence.layout.width
        critical = (self.outcome == FAIL) & (self.severity == CRITICAL)
        kind = np.where(critical, ATOM_KINDS.index("critical"), _KIND_OF_OUTCOME[self.outcome])
        place = (model[self.sample] * width + self.position) * len(ATOM_KINDS) + kind
        counts = np.bincount(place, minlength=n_models * width * len(ATOM_KINDS))
        counts = counts.reshape(n_models, width, len(ATOM_KINDS))
        counts[:, :, 0] = np.bincount(model, minlength=n_models)[:, None] - counts.sum(axis=2)
        return counts

    def codes(self, model: Ints, n_models: int) -> Ints:
        """(models, codes): how many atoms failed under each code."""
        failed, n_codes = self.outcome == FAIL, len(self.evidence.layout.codes)
        place = model[self.sample[failed]] * n_codes + self.code[failed]
        return np.bincount(place, minlength=n_models * n_codes).reshape(n_models, n_codes)

    def family(self, name: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Per sample: whether an atom of the family passed or failed, and whether any failed."""
        rows = self.evidence.layout.positions_of(name)
        in_family = np.zeros(self.evidence.layout.width, dtype=bool)
        in_family[rows] = True
        own = in_family[self.position]
        others = np.bincount(self.sample[own], minlength=self.n)
        failed = np.zeros(self.n, dtype=bool)
        failed[self.sample[own & (self.outcome == FAIL)]] = True
        return failed | (others < rows.size), failed


def _columns(
    samples: pa.Table,
    floats: dict[str, Floats],
    eligible: NDArray[np.bool_],
    has_reference: NDArray[np.bool_],
    rare: _Rare,
) -> dict[str, NDArray[Any]]:
    """What is summed by model and flight, but for the columns of words."""
    repairs = samples.column("repairs").combine_chunks()
    values: dict[str, NDArray[Any]] = {
        "eligible": eligible,
        "answered": _is(samples, "status", "answered"),
        "with_reference": has_reference,
        "repaired": _valid(repairs),
        "extra_keys": samples.column("extra_keys").to_numpy(),
        "completeness": floats["completeness"],
    }
    for family in FAMILIES:
        checked, failed = rare.family(family)
        values[f"checked.{family}"] = checked
        values[f"clean.{family}"] = checked & ~failed
    for name in SCORES:
        values[f"sum.{name}"] = np.nan_to_num(floats[name])
        values[f"count.{name}"] = ~np.isnan(floats[name])
    values["sum.rubric"] = floats["rubric"]
    values |= {f"under.{limit}": floats["error"] < limit for limit in EXCEEDANCE}
    for name in ("mae", "rmse", "normalised_mae"):
        values[f"sum.{name}"] = np.where(eligible & np.isfinite(floats[name]), floats[name], 0.0)
    persistence = floats["persistence_mae"]
    values["sum.persistence"] = np.where(eligible & np.isfinite(persistence), persistence, 0.0)
    return values


def _sums(samples: pa.Table, columns: dict[str, NDArray[Any]], cell: Ints, cells: int) -> Floats:
    """(cells, COLUMNS): every column summed by cell; a column of words is counted word by word in one go."""
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
    for name, prefix, known in words:
        code = _codes(samples, name, known)
        size = len(known) + 1
        counts = np.bincount(cell * size + code, minlength=cells * size).reshape(cells, size)
        start = PLACE[f"{prefix}.{known[0]}"]
        sums[:, start : start + len(known)] = counts[:, :-1]
    return sums


def _values(
    floats: dict[str, Floats], eligible: NDArray[np.bool_], mask: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Errors of the eligible and of the ineligible samples of a model, where there are any."""
    mae, rmse = floats["mae"], floats["rmse"]
    known = mask & ~np.isnan(mae)
    good, bad = known & eligible, known & ~eligible
    return mae[good], rmse[good], mae[bad], rmse[bad]


def _fields(errors: Errors, eligible: NDArray[np.bool_], model: Ints, n_models: int) -> Floats:
    """(models, 19, 4): sums of |error|, error², the same for persistence, and the count, over eligible samples."""
    sums = np.zeros((n_models, len(FIELDS), 4))
    of_models = [slice(None) if n_models == 1 else model == index for index in range(n_models)]
    for step, place in np.ndindex(len(errors.answered), len(FIELDS)):  # one field at a time stays in the cache
        own = errors.answered[step, place]
        known = ~np.isnan(own) & eligible
        error = np.where(known, own, 0.0)
        persistence = np.where(known, errors.persistence[step, place], 0.0)
        if not np.isfinite(persistence.sum()):  # no state was shown, or a number so large that sums of it have no end
            persistence = np.nan_to_num(persistence)
        for index, rows in enumerate(of_models):
            sums[index, place] += [values[rows].sum() for values in (error, error * error, persistence, known)]
    return sums


def _histogram(floats: dict[str, Floats], eligible: NDArray[np.bool_], model: Ints, n_models: int) -> Floats:
    """(models, scores, bins, 2): counts and sums of each score over the eligible samples that have it, by value."""
    found = np.zeros((n_models, len(SCORES) + 1, BINS + 1, 2))
    size = n_models * (BINS + 1)
    for index, name in enumerate((*SCORES, "rubric")):
        use = ~np.isnan(floats[name]) & (eligible if name != "rubric" else True)
        values = floats[name][use]
        bins = np.clip((values * (BINS / 100.0)).astype(np.int64), 0, BINS) + model[use] * (BINS + 1)
        found[:, index, :, 0] = np.bincount(bins, minlength=size).reshape(n_models, -1)
        found[:, index, :, 1] = np.bincount(bins, weights=values, minlength=size).reshape(n_models, -1)
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


def _unmatched(
    samples: pa.Table, has_reference: NDArray[np.bool_], given: NDArray[np.bool_], n_models: int
) -> dict[str, list[str]]:
    """Ids that stand only in the outputs, or only in the reference; a sample's models stand together."""
    known, answered = has_reference[::n_models], given.reshape(-1, n_models).any(axis=1)
    names = samples.column("sample")
    found = {}
    for kind, mask in (("outputs", answered & ~known), ("reference", ~answered & known)):
        found[kind] = [names[int(index) * n_models].as_py() for index in np.flatnonzero(mask)[:20]]
    return found


def _digest(samples: pa.Table) -> bytes:
    """Over ids and gold values: the same data set whatever the models."""
    whole = hashlib.sha256()
    for name in ("sample", "gold"):
        column = samples.column(name).combine_chunks()
        if name == "sample":
            whole.update("\x00".join(column.to_pylist()).encode())
        else:
            whole.update(np.ascontiguousarray(column.flatten().to_numpy(zero_copy_only=False)).data)
    return whole.digest()


def _dictionary(samples: pa.Table, name: str) -> tuple[list[Any], Ints]:
    """Distinct words (None last) and the code of each row; only words that occur."""
    column = samples.column(name).combine_chunks()
    words = column.dictionary.to_pylist()
    used, dense = np.unique(_indices(column), return_inverse=True)
    return [words[i] if i < len(words) else None for i in used], dense.astype(np.int64)


def _codes(samples: pa.Table, name: str, words: Sequence[str]) -> Ints:
    """A column of words as indices into `words`; what is not there, and null, is one past the last."""
    column = samples.column(name).combine_chunks()
    where = {word: index for index, word in enumerate(words)}
    translate = [where.get(word, len(words)) for word in column.dictionary.to_pylist()]
    return np.array([*translate, len(words)], dtype=np.int64)[_indices(column)]


def _is(samples: pa.Table, name: str, word: str) -> NDArray[np.bool_]:
    """Which rows of a column of words hold this one."""
    return np.equal(_codes(samples, name, (word,)), 0)


def _indices(column: pa.DictionaryArray) -> Ints:
    """Codes of a dictionary column; null is one past the last word."""
    indices = column.indices
    codes: Ints = (indices.fill_null(len(column.dictionary)) if indices.null_count else indices).to_numpy()
    return codes


def _valid(column: pa.Array) -> NDArray[np.bool_]:
    if column.null_count == len(column):
        return np.zeros(len(column), dtype=bool)
    valid: NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _floats(samples: pa.Table, name: str) -> Floats:
    return np.asarray(samples.column(name).to_numpy(), dtype=float)


def _cells(samples: pa.Table, name: str, steps: int) -> Floats:
    flat = samples.column(name).combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(flat.reshape(samples.num_rows, -1).T).reshape(steps, len(FIELDS), samples.num_rows)
