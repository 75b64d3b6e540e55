"""What every statistic asks of its arguments, said once and with one message each."""

from __future__ import annotations

import operator

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def level(value: float) -> float:
    """A confidence level strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise StatsError(f"confidence level {value!r} is not between 0 and 1; 95 % is written 0.95")
    return float(value)


def count(value: int, name: str) -> int:
    """A whole number that is not negative."""
    try:
        number = operator.index(value)
    except TypeError:
        raise StatsError(f"{name} is {value!r}; a count is a whole number") from None
    if number < 0:
        raise StatsError(f"{name} is {number}; a count is not negative")
    return number


def successes(value: int, n: int, name: str = "successes") -> tuple[int, int]:
    """Successes among n trials."""
    hits, trials = count(value, name), count(n, "n")
    if hits > trials:
        raise StatsError(f"{name} is {hits}, more than the {trials} trials")
    return hits, trials


def counts(values: npt.ArrayLike, name: str) -> IntArray:
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


def column(values: npt.ArrayLike, name: str) -> FloatArray:
    """A one-dimensional column of finite numbers; what is missing has to be left out, and counted, by the caller."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise StatsError(f"{name} has {array.ndim} dimensions; a column has one")
    if array.size and not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        raise StatsError(f"{name}[{place}] is {array[place]}; leave out what is missing and count it, NaN is no number")
    return array


def flags(values: npt.ArrayLike, name: str, n: int) -> BoolArray:
    """A column of n times yes or no: booleans, or numbers that are 0 and 1."""
    array = np.asarray(values)
    if array.ndim != 1 or not (array.dtype.kind == "b" or ((array == 0) | (array == 1)).all()):
        raise StatsError(f"{name} is a column of 0 and 1 (or false and true)")
    same_length(n, array.size, name)
    return array.astype(bool, copy=False)


def groups(clusters: npt.ArrayLike, n: int) -> tuple[IntArray, int]:
    """The clusters of n rows as codes 0 … m − 1, in the order of their labels, and m."""
    labels = np.asarray(clusters)
    same_length(n, labels.size, "clusters")
    if labels.dtype.kind in "iu" and labels.size and labels.min() >= 0 and labels.max() < 4 * labels.size:
        # Small whole numbers need no sorting to be counted.
        used = np.bincount(labels.astype(np.int64)) > 0
        return (np.cumsum(used) - 1)[labels], int(used.sum())
    names, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64, copy=False), names.size


def same_length(n: int, other: int, name: str) -> None:
    """Two columns over the same rows."""
    if n != other:
        raise StatsError(f"{name} has {other} rows where {n} are expected")
