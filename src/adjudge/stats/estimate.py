"""What a statistic takes and gives: checked columns and counts; an Estimate, a number with its interval or null with the reason.

Metric is what an estimate is, declared beside the code that computes it. Reports, gates, baselines, comparisons and exports read the
declaration; none of them infers a unit, a range or a direction from words in a name.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Estimate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """A value with its interval, or null with `why`. It has no arithmetic: sums of estimates are not estimates.

    `n` is the number of units the value rests on, `method` names the interval, `seed` the resampling behind it,
    `warnings` what a reader must know before trusting it (too few clusters, …).
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: int = 0
    method: str = ""
    seed: int | None = None
    why: str | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise ValueError(f"Estimate.{name} is {number}; a number that does not exist is None with a reason")
        if self.value is None and not self.why:
            raise ValueError("an Estimate without a value must say why")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"Estimate interval is upside down: {self.low} > {self.high}")

    @classmethod
    def null(cls, why: str, *, n: int = 0, level: float = 0.95, method: str = "") -> Estimate:
        """An estimate that could not be made, and the reason."""
        return cls(value=None, why=why, n=n, level=level, method=method)

    def mapped(self, rising: Callable[[float], float]) -> Estimate:
        """The estimate of a rising function of the value: its interval has the function of both ends."""
        ends = {name: getattr(self, name) for name in ("value", "low", "high")}
        return msgspec.structs.replace(
            self, **{name: None if end is None else rising(end) for name, end in ends.items()}
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, full precision."""
        return {**msgspec.structs.asdict(self), "warnings": list(self.warnings)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Estimate:
        """The estimate that `to_dict` wrote; unknown keys (name, slice) are left to the caller."""
        known = {key: data[key] for key in cls.__struct_fields__ if key in data}
        known["warnings"] = tuple(known.get("warnings") or ())
        return cls(**known)


SHARE = "%"
"""The unit of a share: a number between 0 and 1 that is shown in percent."""
Better = Literal["higher", "lower"]
_STORED = ("title", "unit", "low", "high", "better")


class Metric(msgspec.Struct, frozen=True):
    """One metric, or a family of them: `recall_*` declares `recall_fake` and `recall_real`.

    `name` is the name of its estimates; the slice that an estimate is about is not part of it. `title` is what people
    read (the name in words where it is empty; `{}` in it is what `*` stands for). `low` and `high` are the least and the
    greatest value it can have, `better` the direction in which it improves (None: neither), `headline` whether it is
    among the first things to show, in the order of the declarations. `formula`, `interval` and `null` say in words how it
    is computed, which interval it has and when it has no value.
    """

    name: str
    title: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    better: Better | None = None
    headline: bool = False
    formula: str = ""
    interval: str = ""
    null: str = ""

    def __post_init__(self) -> None:
        if not self.name or self.name.count("*") > 1:
            raise ValueError(f"a metric has a name with at most one *, not {self.name!r}")
        if self.better not in {"higher", "lower", None}:
            raise ValueError(f"metric {self.name!r}: better is {self.better!r}, expected 'higher', 'lower' or None")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"metric {self.name!r}: its least value {self.low} is not below its greatest {self.high}")

    def declares(self, name: str) -> bool:
        """Whether an estimate of this name is meant."""
        return self._starred(name) is not None

    def named(self, name: str) -> Metric:
        """The declaration of one member of a family; of a single metric, itself with its title written out."""
        title = self.title.replace("{}", in_words(self._starred(name) or "")) if self.title else in_words(name)
        return msgspec.structs.replace(self, name=name, title=title)

    def to_dict(self) -> dict[str, Any]:
        """What is stored with a run: all that a reader of its numbers needs."""
        return {key: getattr(self, key) for key in _STORED}

    def _starred(self, name: str) -> str | None:
        """What `*` stands for in a name; empty for a metric without it, None where the name is not meant."""
        before, star, after = self.name.partition("*")
        if not star:
            return "" if name == before else None
        if len(name) <= len(before) + len(after) or not (name.startswith(before) and name.endswith(after)):
            return None
        return name[len(before) : len(name) - len(after)]


def share(name: str, title: str = "", *, better: Better | None = "higher", **more: Any) -> Metric:
    """The declaration of a share, between 0 and 1 and shown in percent."""
    return Metric(name, title, SHARE, 0.0, 1.0, better, **more)


def count(name: str, title: str = "", *, better: Better | None = "lower", **more: Any) -> Metric:
    """The declaration of a number of things."""
    return Metric(name, title, "", 0.0, None, better, **more)


def in_words(name: str) -> str:
    """A name for people: `mae_p95` is `mae p95`."""
    return re.sub(r"\.", ": ", name.replace("_", " "))


def declaration(metrics: Iterable[Metric], name: str) -> Metric | None:
    """What is declared for one estimate's name: the metric of that name, else the family with the longest name."""
    metric = _family(metrics, name)
    return None if metric is None else metric.named(name)


def stored(metrics: Sequence[Metric], names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The declarations of a run's estimates by name, as metrics.json holds them; names without one are left out."""
    known = ((name, declaration(metrics, name)) for name in dict.fromkeys(names))
    return {name: metric.to_dict() for name, metric in known if metric is not None}


def headline(metrics: Sequence[Metric], names: Iterable[str]) -> list[str]:
    """Which of a run's estimates to show first, in the order of the declarations."""
    by_metric: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        metric = _family(metrics, name)
        if metric is not None and metric.headline:
            by_metric.setdefault(metric.name, []).append(name)
    return [name for metric in metrics for name in by_metric.get(metric.name, ())]


def _family(metrics: Iterable[Metric], name: str) -> Metric | None:
    fitting = [metric for metric in metrics if metric.declares(name)]
    return max(fitting, key=lambda metric: ("*" not in metric.name, len(metric.name)), default=None)


def by_gate_name(estimates: Iterable[tuple[str, str, Estimate]]) -> dict[str, Estimate]:
    """Estimates by the names that gates give them: `slice/name`, and the bare name where one slice, or one model's, has it."""
    named = list(estimates)
    slices = {where for _, where, _ in named if where}
    models = {where for where in slices if where.startswith("model=")}
    alone = {"", *(models if len(models) == 1 else slices if len(slices) == 1 else ())}
    return {f"{where.partition('=')[2]}/{name}": estimate for name, where, estimate in named if where} | {
        name: estimate for name, where, estimate in named if where in alone
    }


def checked_level(value: float) -> float:
    """A confidence level strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise StatsError(f"confidence level {value!r} is not between 0 and 1; 95 % is written 0.95")
    return float(value)


def checked_count(value: int, name: str) -> int:
    """A whole number that is not negative."""
    try:
        number = operator.index(value)
    except TypeError:
        raise StatsError(f"{name} is {value!r}; a count is a whole number") from None
    if number < 0:
        raise StatsError(f"{name} is {number}; a count is not negative")
    return number


def checked_successes(value: int, n: int, name: str = "successes") -> tuple[int, int]:
    """Successes among n trials."""
    hits, trials = checked_count(value, name), checked_count(n, "n")
    if hits > trials:
        raise StatsError(f"{name} is {hits}, more than the {trials} trials")
    return hits, trials


def checked_counts(values: npt.ArrayLike, name: str) -> IntArray:
    """Counts of any shape, as 64-bit integers."""
    array = np.asarray(values)
    if array.dtype.kind not in "iub":
        whole = array.astype(np.float64)
        if array.size and not (np.isfinite(whole).all() and (whole == np.floor(whole)).all()):
            raise StatsError(f"{name} holds values that are not whole numbers")
    integers = array.astype(np.int64)
    if array.size and integers.min() < 0:
        raise StatsError(f"{name} holds a negative count")
    return integers


def checked_column(values: npt.ArrayLike, name: str) -> FloatArray:
    """A one-dimensional column of finite numbers; what is missing has to be left out, and counted, by the caller."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise StatsError(f"{name} has {array.ndim} dimensions; a column has one")
    if array.size and not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        raise StatsError(f"{name}[{place}] is {array[place]}; leave out what is missing and count it, NaN is no number")
    return array


def checked_flags(values: npt.ArrayLike, name: str, n: int) -> BoolArray:
    """A column of n times yes or no: booleans, or numbers that are 0 and 1."""
    array = np.asarray(values)
    if array.ndim != 1 or not (array.dtype.kind == "b" or ((array == 0) | (array == 1)).all()):
        raise StatsError(f"{name} is a column of 0 and 1 (or false and true)")
    check_same_length(n, array.size, name)
    return array.astype(bool, copy=False)


def cluster_codes(clusters: npt.ArrayLike, n: int) -> tuple[IntArray, int]:
    """The clusters of n rows as codes 0 … m − 1, in the order of their labels, and m."""
    labels = np.asarray(clusters)
    check_same_length(n, labels.size, "clusters")
    if labels.dtype.kind in "iu" and labels.size and labels.min() >= 0 and labels.max() < 4 * labels.size:
        # Small whole numbers need no sorting to be counted.
        used = np.bincount(labels.astype(np.int64)) > 0
        return (np.cumsum(used) - 1)[labels], int(used.sum())
    names, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64, copy=False), names.size


def check_same_length(n: int, other: int, name: str) -> None:
    """Two columns over the same rows."""
    if n != other:
        raise StatsError(f"{name} has {other} rows where {n} are expected")
