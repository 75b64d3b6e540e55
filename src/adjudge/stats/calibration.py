"""Does a confidence of 0.8 mean right in 80 % of the cases? ECE, Brier score, log loss, reliability.

Every function takes the confidence in the answer given and whether that answer was correct. Sums are exact, so row
order and partition change no bit of a value. Where rows are independent they are counted first (`Tally`); a caller
who asks for several measures of the same rows counts them once and passes the `tally`. Bins have equal width (exact
decimal edges) or equal mass (ties kept together).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal, NamedTuple, Unpack

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import exact
from adjudge.stats.bootstrap import Drawing, level_of, mean, means_of_counts, multinomial_cells, statistic_of_counts
from adjudge.stats.estimate import Estimate, FloatArray, IntArray, checked_column, checked_flags, cluster_codes
from adjudge.stats.proportions import cluster_wilson, wilson
from adjudge.stats.resampling import cut, generator, quotient

Closed = Literal["left", "right"]
Scheme = Literal["equal_width", "equal_mass"]


def columns(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[FloatArray, npt.NDArray[Any]]:
    """A column of confidences in [0, 1] and a column of whole 0 and 1, checked."""
    c = np.asarray(confidence, dtype=np.float64)
    # NaN fails both comparisons.
    if c.ndim != 1 or (c.size and not (c.min() >= 0.0 and c.max() <= 1.0)):
        c = checked_column(c, "confidence")
        place = int(np.flatnonzero((c < 0.0) | (c > 1.0))[0])
        raise StatsError(f"confidence[{place}] is {c[place]}; a confidence lies between 0 and 1")
    return c, checked_flags(correct, "correct", c.size).view(np.int8)


def edges(bins: int, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """The edges 0, 1/bins, …, 1, each the number of `dtype` nearest to the exact fraction.

    A confidence written as a decimal is the nearest number too, so 0.3 meets the edge 3/10 exactly, in float64 and in
    float32 alike; multiples of a step (3·0.1 = 0.30000000000000004) would miss it.
    """
    if bins < 1:
        raise StatsError(f"{bins} bins; at least one is needed")
    return np.array([k / bins for k in range(bins + 1)]).astype(dtype)


def equal_width(confidence: npt.ArrayLike, bins: int = 10, closed: Closed = "left") -> IntArray:
    """The bin of each confidence: [0, .1) … [.9, 1] when closed on the left, [0, .1] … (.9, 1] when on the right."""
    raw = np.asarray(confidence)
    values = raw if raw.dtype in {np.dtype(np.float32), np.dtype(np.float16)} else raw.astype(np.float64)
    inner = edges(bins, values.dtype)[1:-1]
    if closed not in {"left", "right"}:
        raise StatsError(f"bins are closed on the left or on the right, not {closed!r}")
    return np.searchsorted(inner, values, side="right" if closed == "left" else "left").astype(np.int64)


def equal_mass(confidence: npt.ArrayLike, bins: int = 10, counts: IntArray | None = None) -> IntArray:
    """The bin of each confidence when every bin shall hold as many rows; equal confidences stay together.

    A block of equal confidences on the places s … e−1 of n goes to the bin of its middle, ⌊bins·(s + e)/(2n)⌋, so
    bins may differ in size, or be empty, where ties are many. A confidence stands for `counts` rows, or for one.
    """
    values = np.asarray(confidence)
    edges(bins)
    if counts is None:
        distinct, size = np.unique(values, return_counts=True)
    else:
        distinct, place = np.unique(values, return_inverse=True)
        size = np.bincount(place, weights=counts).astype(np.int64)
    end = np.cumsum(size)
    bin_of = ((bins * (2 * end - size)) // (2 * max(int(size.sum()), 1))).astype(np.int64)
    # Bins rise with the confidence, so the least confidence of each tells where a row belongs.
    first = np.flatnonzero(np.diff(bin_of, prepend=-1))
    return bin_of[first][np.searchsorted(distinct[first], values, side="right") - 1]


def assign(
    confidence: npt.ArrayLike, bins: int, scheme: Scheme, closed: Closed, counts: IntArray | None = None
) -> IntArray:
    """The bin of each confidence, which stands for `counts` rows or for one, under the named scheme."""
    if scheme == "equal_width":
        return equal_width(confidence, bins, closed)
    if scheme == "equal_mass":
        return equal_mass(confidence, bins, counts)
    raise StatsError(f"bin scheme {scheme!r} is not one of equal_width, equal_mass")


class Tally(NamedTuple):
    """How often each pair of a confidence and right (1) or wrong (0) stands there: the wrong first, each by rising confidence.

    Rows that have clusters stand there one by one instead. Confidences keep the precision they came in, since the edges of bins depend on it.
    """

    confidence: npt.NDArray[Any]
    correct: npt.NDArray[Any]
    counts: IntArray

    @classmethod
    def of(cls, confidence: npt.ArrayLike, correct: npt.ArrayLike) -> Tally:
        """The rows counted, checked as every calibration measure asks for it."""
        c, y, _ = cls.one_by_one(confidence, correct)
        wrong, right = (np.unique(c[np.flatnonzero(y == code)], return_counts=True) for code in (0, 1))
        codes = np.repeat(np.array([0, 1], dtype=np.int8), [wrong[0].size, right[0].size])
        return cls(np.concatenate([wrong[0], right[0]]), codes, np.concatenate([wrong[1], right[1]]))

    @classmethod
    def one_by_one(cls, confidence: npt.ArrayLike, correct: npt.ArrayLike) -> Tally:
        """The rows checked, in their order, each standing for itself."""
        c, y = columns(confidence, correct)
        raw = np.asarray(confidence)
        return cls(raw if raw.dtype.kind == "f" else c, y, np.ones(c.size, dtype=np.int64))

    @property
    def n(self) -> int:
        """How many rows."""
        return int(self.counts.sum())

    def doubles(self) -> FloatArray:
        """The confidences as numbers to count with."""
        return self.confidence.astype(np.float64)


_EXACT_CELLS = 1024  # up to so many distinct (confidence, correct) pairs the bootstrap cells are exact
_BLOCKS = 32  # above, each bin's right and wrong rows are cut into so many blocks of neighbouring confidences
_CALIBRATED_DRAWS = 4000
NO_ROWS = "no rows with a confidence"
MAY_BE_CALIBRATED = "perfectly calibrated answers could give this value too; the interval reaches down to 0"


class ReliabilityRow(msgspec.Struct, frozen=True, kw_only=True):
    """One bin: its edges, its rows, what they keep."""

    low: float
    high: float
    n: int
    mean_confidence: float | None
    accuracy: Estimate


def ece_value(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    bins: int = 10,
    scheme: Scheme = "equal_width",
    closed: Closed = "left",
    tally: Tally | None = None,
) -> float | None:
    """The expected calibration error alone: Σ over bins of |Σ correct − Σ confidence| / n, correctly rounded."""
    rows = tally or Tally.of(confidence, correct)
    return _ece_value(rows, assign(rows.confidence, bins, scheme, closed, rows.counts), bins)


def ece(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    bins: int = 10,
    clusters: npt.ArrayLike | None = None,
    tally: Tally | None = None,
    **drawing: Unpack[Drawing],
) -> Estimate:
    """The expected calibration error with a bootstrap interval (by cluster when given); null without rows.

    ECE = Σ (n_b/n)·|accuracy_b − mean confidence_b| (Naeini, Cooper, Hauskrecht 2015, AAAI). The absolute value makes
    it too high on small samples, and no resample falls to 0 though the truth may be 0. Where the value is one that
    perfectly calibrated answers would give with probability 1 − level or more, the interval therefore reaches down to
    0, and a warning says so.
    """
    level = level_of(drawing)
    rows = _rows(confidence, correct, clusters, tally)
    where = equal_width(rows.confidence, bins)
    value = _ece_value(rows, where, bins)
    if value is None:
        return Estimate.null(NO_ROWS, level=level)
    if clusters is None:
        estimate, covariance = _ece_of_cells(rows, where, bins, value, drawing)
    else:
        counts = _cluster_counts(rows, where, bins, clusters)
        estimate = statistic_of_counts(counts, ece_of_sums, n=rows.n, value=value, **drawing)
        covariance = counts[:, :bins].T @ counts[:, :bins]
    if value > _calibrated_quantile(covariance, rows.n, drawing):
        return estimate
    return msgspec.structs.replace(estimate, low=0.0, warnings=(*estimate.warnings, MAY_BE_CALIBRATED))


def brier_value(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float | None:
    """The Brier score alone: the mean of (confidence − correct)², correctly rounded over the rounded squares."""
    c, y = columns(confidence, correct)
    return None if c.size == 0 else exact.rounded(exact.total((c - y) ** 2), c.size)


def brier(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    tally: Tally | None = None,
    **drawing: Unpack[Drawing],
) -> Estimate:
    """The Brier score, mean (confidence − correct)², with a bootstrap interval; null without rows (Brier 1950)."""
    rows = _rows(confidence, correct, clusters, tally)
    if rows.counts.size == 0:
        return Estimate.null(NO_ROWS, level=level_of(drawing))
    errors = rows.doubles() - rows.correct
    return mean(errors**2, clusters=clusters, counts=rows.counts, **drawing)


def log_loss(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    tally: Tally | None = None,
    **drawing: Unpack[Drawing],
) -> Estimate:
    """The mean of −ln(probability given to what happened), with a bootstrap interval; null where one is infinite."""
    rows, level = _rows(confidence, correct, clusters, tally), level_of(drawing)
    if rows.counts.size == 0:
        return Estimate.null(NO_ROWS, level=level)
    c = rows.doubles()
    certain = int(rows.counts[c == 1.0 - rows.correct].sum())
    if certain:
        return Estimate.null(f"infinite: {certain} rows were wrong at full confidence", n=rows.n, level=level)
    return mean(_losses(c, rows.correct), clusters=clusters, counts=rows.counts, **drawing)


def brier_and_log_loss(tally: Tally, **drawing: Unpack[Drawing]) -> tuple[Estimate, Estimate]:
    """Both of independent rows and from the same resamples, since both fall with the probability given to what happened."""
    c, y = tally.doubles(), tally.correct
    if not c.size or ((c == 1.0 - y) & (tally.counts > 0)).any():  # one of them is null
        first, second = (measure([], [], tally=tally, **drawing) for measure in (brier, log_loss))
        return first, second
    first, second = means_of_counts([(c - y) ** 2, _losses(c, y)], tally.counts, **drawing)
    return first, second


def log_loss_value(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float | None:
    """The mean of −ln(probability given to what happened); None without rows, or where it is infinite."""
    c, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct)
    return None if c.size == 0 or (c == 1.0 - y).any() else exact.mean_of(_losses(c, y))


def _losses(c: FloatArray, y: npt.NDArray[Any]) -> FloatArray:
    """−ln(probability given to what happened), finite.

    log1p keeps the digits of confidences near 0 in wrong answers and near 1 in right ones.
    """
    right = y == 1
    losses = np.empty(c.size)
    losses[right], losses[~right] = -np.log(c[right]), -np.log1p(-c[~right])
    return losses


def reliability_table(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    bins: int = 10,
    clusters: npt.ArrayLike | None = None,
    tally: Tally | None = None,
) -> list[ReliabilityRow]:
    """What each bin promises and keeps: rows, mean confidence, accuracy with Wilson's interval; nulls in empty bins."""
    rows = _rows(confidence, correct, clusters, tally)
    c, y = rows.doubles(), rows.correct
    where = equal_width(rows.confidence, bins)
    size, hits = (_in_bins(where, bins, part).tolist() for part in (rows.counts, rows.counts * y))
    promised = exact.group_totals(c, where, bins, rows.counts)
    groups = None if clusters is None else cluster_codes(clusters, c.size)[0]
    bounds = edges(bins).tolist()
    table: list[ReliabilityRow] = []
    for b, (low, high) in enumerate(pairwise(bounds)):
        mean_confidence = exact.rounded(promised[b], size[b]) if size[b] else None
        accuracy = wilson(hits[b], size[b])
        if groups is not None and size[b]:
            of = groups[where == b]
            hits_of = np.bincount(of, weights=y[where == b]).astype(np.int64)
            accuracy = cluster_wilson(hits_of, np.bincount(of))
        n = size[b]
        table.append(ReliabilityRow(low=low, high=high, n=n, mean_confidence=mean_confidence, accuracy=accuracy))
    return table


def _rows(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, clusters: npt.ArrayLike | None, tally: Tally | None
) -> Tally:
    """The rows counted; those of clusters one by one, in their order."""
    if clusters is None:
        return tally or Tally.of(confidence, correct)
    return Tally.one_by_one(confidence, correct)


def _ece_value(rows: Tally, where: IntArray, bins: int) -> float | None:
    hits = _in_bins(where, bins, rows.counts * rows.correct).tolist()
    promised = exact.group_totals(rows.doubles(), where, bins, rows.counts)
    gaps = sum(abs((right << exact.UNIT) - sums) for right, sums in zip(hits, promised, strict=True))
    return exact.rounded(gaps, rows.n) if rows.counts.size else None


def _in_bins(where: IntArray, bins: int, counts: IntArray) -> IntArray:
    return np.bincount(where, weights=counts, minlength=bins).astype(np.int64)


def _ece_of_cells(
    tally: Tally, where: IntArray, bins: int, value: float, drawing: Drawing
) -> tuple[Estimate, FloatArray]:
    """The estimate from independent rows, and the covariance of the bins' gaps if the answers were calibrated."""
    cells, gaps, home = _cells(tally, where)
    spread = np.zeros((cells.size, bins))
    spread[np.arange(cells.size), home] = gaps

    def statistic(drawn: FloatArray) -> FloatArray:
        result: FloatArray = np.abs(drawn @ spread).sum(axis=1) / drawn.sum(axis=1)
        return result

    c = tally.doubles()
    variances = exact.group_sums(c * (1.0 - c), where, bins, tally.counts)
    return multinomial_cells(cells, statistic, value=value, **drawing), np.diag(variances)


def _calibrated_quantile(covariance: FloatArray, n: int, drawing: Drawing) -> float:
    """The quantile, at the interval's level, of the ECE if answers were calibrated: Σ|gap|/n of normal gaps with this covariance."""
    values, vectors = np.linalg.eigh(covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))
    random = generator(drawing["seed"], f"{drawing.get('stream', '')}, if calibrated")
    normal = random.standard_normal((_CALIBRATED_DRAWS, len(roots)))
    return float(np.quantile(np.abs(normal @ roots.T).sum(axis=1) / n, level_of(drawing)))


def ece_of_sums(sums: FloatArray) -> FloatArray:
    """The calibration error from sums: confidence minus right, or the reverse, in each bin, then the number of rows."""
    return quotient(np.abs(sums[:, :-1]).sum(axis=1), sums[:, -1])


def _cluster_counts(rows: Tally, where: IntArray, bins: int, clusters: npt.ArrayLike) -> FloatArray:
    """For each cluster: Σ (correct − confidence) in each bin, and its rows."""
    cluster, m = cluster_codes(clusters, rows.n)
    gaps = exact.group_sums(rows.correct - rows.doubles(), cluster * bins + where, m * bins)
    return np.column_stack([gaps.reshape(m, bins), np.bincount(cluster)])


def _cells(tally: Tally, where: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Rows gathered into cells that a resample draws as one: their counts, mean gap (correct − confidence), bin."""
    # By bin, then right or wrong, then confidence.
    order = np.argsort(where, kind="stable")
    counts, where = tally.counts[order], where[order]
    gaps = (tally.correct - tally.doubles())[order]
    if counts.size <= _EXACT_CELLS:
        return counts, gaps, where
    group = where * 2 + tally.correct[order]
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    edge = np.append(0, np.cumsum(counts))[np.append(first, counts.size)]
    # Block k of a group of m rows begins with its row ⌈k·m/_BLOCKS⌉; where m is small some are empty.
    starts = edge[:-1, None] - (-np.arange(_BLOCKS) * np.diff(edge)[:, None]) // _BLOCKS
    edges = np.unique(np.append(starts.ravel(), edge[-1]))
    run, size, part = cut(counts, edges)
    rows = np.diff(edges)
    home = where[run[np.searchsorted(part, np.arange(rows.size))]]
    return rows, np.bincount(part, weights=size * gaps[run]) / rows, home
