"""Does a confidence of 0.8 mean right in 80 % of the cases? ECE, Brier score, log loss, reliability.

Every function takes the confidence in the answer given and whether that answer was correct. Sums are exact, so row
order and partition change no bit of a value. Where rows are independent they are counted first (`confidence_bins.Tally`); a caller
who asks for several measures of the same rows counts them once and passes the `tally`.
"""

from __future__ import annotations

from typing import Any, Unpack

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.stats import exact
from adjudge.stats.bootstrap import Drawing, level_of, mean, means_of_counts, statistic_of_counts
from adjudge.stats.cells import multinomial_cells
from adjudge.stats.confidence_bins import Closed, Scheme, Tally, assign, columns, cut, edges, equal_width
from adjudge.stats.estimate import Estimate, FloatArray, IntArray, cluster_codes
from adjudge.stats.proportions import cluster_wilson, wilson
from adjudge.stats.replicates import quotient
from adjudge.stats.resampling import generator

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
    for b in range(bins):
        if groups is not None and size[b]:
            inside = where == b
            of = groups[inside]
            accuracy = cluster_wilson(np.bincount(of, weights=y[inside]).astype(np.int64), np.bincount(of))
        else:
            accuracy = wilson(hits[b], size[b])
        table.append(
            ReliabilityRow(
                low=bounds[b],
                high=bounds[b + 1],
                n=size[b],
                mean_confidence=exact.rounded(promised[b], size[b]) if size[b] else None,
                accuracy=accuracy,
            )
        )
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
