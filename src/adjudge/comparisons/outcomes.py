"""Outcome: what can be paired between two runs, as a protocol declares it, and the column of values behind it.

A protocol lists its outcomes in metrics.json under `comparable`, the one that matters most first. Without the list the
only outcome is whether a sample passed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import ConfigError, RunError
from adjudge.runs.run import Run
from adjudge.stats.exact import mean_of

PASSED = "passed"
EVERY = "all"
"""In place of a metric's name: all that the runs have."""
CLUSTER_COLUMNS = ("cluster", "flight", "episode", "sequence")
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Kind = Literal["binary", "mean", "ratio", "mcc", "balanced", "ece", "brier", "log_loss", "aurc", "e_aurc", "auroc"]


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """Rows whose columns hold these words, each counted `weight` times."""

    where: dict[str, str | list[str]]
    weight: float = 1.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One outcome of a sample: a yes or no (`binary`), a number whose mean is compared (`mean`), or what it adds to sums.

    Of sums are the `ratio` of `hits` over `base`; `mcc` of the `cells` TP, FN, FP, TN; `balanced`, the mean of ratios whose hits and
    bases are the `cells` in turn; and of the confidence in `column`, where the columns hold the `usable` words and `right` says that
    the answer was: `ece` (in `bins`), `brier`, `log_loss`, `aurc`, `e_aurc`, `auroc`.

    `equals` are the words of the column that mean yes (left out for a column of booleans), `same_as` another column that
    must hold the same; `null` is the value of a sample without one (left out: the pair is not counted); a ratio has `hits`
    over `base` instead of a column; `where` keeps the samples whose columns hold these words; `on_request` leaves it to
    somebody who asks for it by name;
    `span` is the width of the number's range, of which a plain margin is a share; `phrases` say "better" and "worse"
    in words that follow the name of a system.
    """

    name: str
    column: str = ""
    kind: Kind
    higher_is_better: bool = True
    cluster: str | None = None
    equals: str | list[str] | None = None
    same_as: str | None = None
    null: float | None = None
    hits: list[Cells] = []
    base: list[Cells] = []
    cells: list[Cells] = []
    usable: dict[str, str | list[str]] = {}
    right: dict[str, str | list[str]] = {}
    bins: int = 10
    where: dict[str, str | list[str]] = {}
    on_request: bool = False
    span: float | None = None
    unit: str = ""
    title: str | None = None
    phrases: dict[str, str] = {}

    @property
    def words(self) -> str:
        """Its name for people."""
        return self.title or self.name.replace("_", " ")

    def __post_init__(self) -> None:
        if self.kind == "ratio" and not (self.hits and self.base):
            raise ValueError(f"outcome {self.name!r} is a ratio and needs `hits` and `base`")
        if self.kind in {"mcc", "balanced"} and (len(self.cells) % 2 or not self.cells):
            raise ValueError(f"outcome {self.name!r} needs an even number of `cells`")
        if self.kind not in {"ratio", "mcc", "balanced"} and not self.column:
            raise ValueError(f"outcome {self.name!r} needs a `column`")

    def columns(self) -> set[str]:
        """The columns of samples.parquet that it reads."""
        named = {self.column, self.same_as, self.cluster} - {"", None}
        cells = (name for cell in (*self.hits, *self.base, *self.cells) for name in cell.where)
        return {str(name) for name in named} | {*self.where, *self.usable, *self.right, *cells}

    @property
    def is_summed(self) -> bool:
        """Whether it is a statistic of sums, and not of each sample."""
        return self.kind not in {"binary", "mean"}

    def values(self, rows: pa.Table) -> Floats:
        """One number a row (1 and 0 for yes and no), NaN where there is none."""
        column = plain(rows.column(self.column))
        if self.same_as is not None:
            column = pc.equal(column.cast(pa.string()), plain(rows.column(self.same_as)).cast(pa.string()))
        if self.equals is not None:
            wanted = [self.equals] if isinstance(self.equals, str) else self.equals
            column = pc.if_else(pc.is_null(column), pa.scalar(None, pa.bool_()), pc.is_in(column, pa.array(wanted)))
        try:
            values = np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise RunError(f"outcome {self.name!r} reads column {self.column!r}, which holds no numbers") from None
        if self.kind == "binary" and not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
            raise RunError(f"outcome {self.name!r} is binary, but column {self.column!r} holds more than yes and no")
        if self.null is not None:
            values[np.isnan(values)] = self.null
        return values

    def inside(self, rows: pa.Table) -> Flags:
        """Which rows it is about."""
        return all_hold(self.where, rows)

    def weights(self, cells: Sequence[Cells], rows: pa.Table) -> Floats:
        """How often each row counts among some cells."""
        total = np.zeros(rows.num_rows)
        for cell in cells:
            total += cell.weight * all_hold(cell.where, rows)
        return total

    def whole(self, values: Floats) -> float | None:
        """The mean over all rows; None where there is nothing."""
        return mean_of(values) if values.size else None


def declared(run: Run) -> list[Outcome]:
    """The outcomes that a run's protocol declares, or whether a sample passed."""
    listed = run.metrics.get("comparable")
    if listed is None:
        cluster = next((name for name in CLUSTER_COLUMNS if name in run.column_names), None)
        return [Outcome(name="pass_rate", column="bucket", kind="binary", equals=PASSED, cluster=cluster)]
    try:
        outcomes = msgspec.convert(listed, list[Outcome])
    except msgspec.ValidationError as error:
        raise RunError(f"{run.path}: metrics.json: `comparable`: {error}") from None
    for outcome in outcomes:
        absent = sorted(outcome.columns() - set(run.column_names))
        if absent:
            what = f"outcome {outcome.name!r} reads {', '.join(absent)}, which samples.parquet does not have"
            raise RunError(f"{run.path}: metrics.json: {what}")
    return outcomes


def chosen(runs: Sequence[Run], asked: Sequence[str]) -> tuple[list[Outcome], list[str]]:
    """The outcomes that all runs declare alike, or those asked for; and a note for each that only some declare."""
    lists = [declared(run) for run in runs]
    shared = [outcome for outcome in lists[0] if all(outcome in other for other in lists[1:])]
    notes = [
        f"{name} is not compared: the runs do not declare it alike"
        for name in dict.fromkeys(outcome.name for outcomes in lists for outcome in outcomes if outcome not in shared)
    ]
    if not asked:
        return [outcome for outcome in shared if not outcome.on_request], notes
    if list(asked) == [EVERY]:
        return shared, notes
    known = {outcome.name: outcome for outcome in shared}
    for name in asked:
        if name not in known:
            raise ConfigError(
                f"there is no metric {name!r} to compare{near(name, known)}; these runs have {', '.join(known) or 'none'}"
            )
    return [known[name] for name in dict.fromkeys(asked)], notes


def near(name: str, names: Iterable[str]) -> str:
    """The names that may have been meant, as the end of a message."""
    close = difflib.get_close_matches(name, list(dict.fromkeys(names)), n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""


def plain(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, without its dictionary."""
    array = column.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def holds(column: pa.ChunkedArray, words: str | Sequence[str]) -> Flags:
    """Which rows hold a word, or one of several."""
    array = plain(column).cast(pa.string())
    wanted = pa.array([words] if isinstance(words, str) else list(words), pa.string())
    return np.asarray(pc.is_in(array, wanted).to_numpy(zero_copy_only=False), dtype=bool)


def all_hold(where: Mapping[str, str | list[str]], rows: pa.Table) -> Flags:
    """Which rows hold the words named for each column."""
    flags = np.ones(rows.num_rows, dtype=bool)
    for name, words in where.items():
        flags &= holds(rows.column(name), words)
    return flags


def equal_rows(first: pa.ChunkedArray, second: pa.ChunkedArray) -> Flags:
    """Which rows of two columns hold the same value; null equals null and NaN equals NaN."""
    a, b = plain(first), plain(second)
    if a.type != b.type:
        return np.zeros(len(a), dtype=bool)
    if pa.types.is_fixed_size_list(a.type) and not a.null_count and not b.null_count:
        width = a.type.list_size
        flags: Flags = np.all(_equal(a.flatten(), b.flatten()).reshape(-1, width), axis=1)
        return flags
    return _equal(a, b)


def _equal(a: pa.Array, b: pa.Array) -> Flags:
    if pa.types.is_nested(a.type):
        return np.array([_same(x, y) for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)], dtype=bool)
    same = pc.fill_null(pc.equal(a, b), False)
    both = pc.and_(pc.is_null(a, nan_is_null=True), pc.is_null(b, nan_is_null=True))
    return np.asarray(pc.or_(same, both).to_numpy(zero_copy_only=False), dtype=bool)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)  # noqa: PLR0124 -- NaN
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
