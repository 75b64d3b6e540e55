"""Does a confidence of 0.8 mean right in 80 % of the cases? ECE, Brier score and its parts, log loss, reliability.

Every function takes the confidence in the answer given and whether that answer was correct. Sums are exact, so row
order and partition change no bit of a value.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import _checks, _fast_pairs, exact
from adjudge.stats._checks import FloatArray, IntArray
from adjudge.stats.bin_sums import BinSums, BrierParts, ece_of
from adjudge.stats.bootstrap import RESAMPLES, Method, generator, mean, multinomial_cells, statistic_of_counts
from adjudge.stats.confidence_bins import Closed, Scheme, assign, columns, edges
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import cluster_wilson, wilson

_EXACT_CELLS = 1024  # up to so many distinct (confidence, correct) pairs the bootstrap cells are exact
_BLOCKS = 32  # above, each bin's right and wrong rows are cut into so many blocks of neighbouring confidences
_CALIBRATED_DRAWS = 4000
MAY_BE_CALIBRATED = "perfectly calibrated answers could give this value too; the interval reaches down to 0"


class ReliabilityRow(msgspec.Struct, frozen=True, kw_only=True):
    """One bin: its edges (for equal mass the least and largest confidence in it), its rows, what they keep."""

    low: float | None
    high: float | None
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
) -> float | None:
    """The expected calibration error alone: Σ over bins of |Σ correct − Σ confidence| / n, correctly rounded."""
    c, y = columns(confidence, correct)
    if c.size == 0:
        return None
    return _ece_exact(c, y, assign(confidence, bins, scheme, closed), bins)


def ece(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    bins: int = 10,
    scheme: Scheme = "equal_width",
    closed: Closed = "left",
    clusters: npt.ArrayLike | None = None,
    seed: int,
    stream: str = "ece",
    resamples: int = RESAMPLES,
    level: float = 0.95,
    method: Method = "expanded",
) -> Estimate:
    """The expected calibration error with a bootstrap interval (by cluster when given); null without rows.

    ECE = Σ (n_b/n)·|accuracy_b − mean confidence_b| (Naeini, Cooper, Hauskrecht 2015, AAAI). The absolute value makes
    it too high on small samples, and no resample falls to 0 though the truth may be 0. Where the value is one that
    perfectly calibrated answers would give with probability 1 − level or more, the interval therefore reaches down to
    0, and a warning says so. Equal-mass bins stay those of the whole sample.
    """
    c, y = columns(confidence, correct)
    level = _checks.level(level)
    if c.size == 0:
        return Estimate.null("no rows with a confidence", level=level)
    where = assign(confidence, bins, scheme, closed)
    value = _ece_exact(c, y, where, bins)
    if clusters is not None:
        counts = _cluster_counts(c, y, where, bins, np.asarray(clusters))
        estimate = statistic_of_counts(
            counts,
            lambda sums: _ece_of_sums(sums, bins),
            seed=seed,
            stream=stream,
            resamples=resamples,
            level=level,
            method=method,
            n=c.size,
            value=value,
        )
        covariance = counts[:, :bins].T @ counts[:, :bins]
    else:
        cells, gaps, home = _cells(c, y, where)
        spread = np.zeros((cells.size, bins))
        spread[np.arange(cells.size), home] = gaps

        def statistic(drawn: FloatArray) -> FloatArray:
            result: FloatArray = np.abs(drawn @ spread).sum(axis=1) / drawn.sum(axis=1)
            return result

        estimate = multinomial_cells(
            cells, statistic, seed=seed, stream=stream, resamples=resamples, level=level, method=method, value=value
        )
        covariance = np.diag(exact.group_sums(c * (1.0 - c), where, bins))
    if value > _calibrated_quantile(covariance, c.size, level, seed, stream):
        return estimate
    return msgspec.structs.replace(estimate, low=0.0, warnings=(*estimate.warnings, MAY_BE_CALIBRATED))


def brier_value(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float | None:
    """The Brier score alone: the mean of (confidence − correct)², correctly rounded over the rounded squares."""
    c, y = columns(confidence, correct)
    return None if c.size == 0 else exact.rounded(_fast_pairs.square_total(c, y), c.size)


def brier(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    seed: int,
    stream: str = "brier",
    resamples: int = RESAMPLES,
    level: float = 0.95,
    method: Method = "expanded",
) -> Estimate:
    """The Brier score, mean (confidence − correct)², with a bootstrap interval; null without rows (Brier 1950)."""
    c, y = columns(confidence, correct)
    if c.size == 0:
        return Estimate.null("no rows with a confidence", level=_checks.level(level))
    squares = (c - y) ** 2
    return mean(squares, clusters=clusters, seed=seed, stream=stream, resamples=resamples, level=level, method=method)


def brier_parts(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    bins: int = 10,
    scheme: Scheme = "equal_width",
    closed: Closed = "left",
) -> BrierParts | None:
    """The Brier score taken apart; None without rows.

    Reliability Σ n_b(f̄_b − ō_b)²/n, resolution Σ n_b(ō_b − ō)²/n, uncertainty ō(1 − ō) (Murphy 1973, J Appl Meteorol
    12:595-600) and, so that it adds up when confidences differ within a bin, the variance ΣΣ(f − f̄_b)²/n and
    covariance 2·ΣΣ(f − f̄_b)(o − ō_b)/n within bins (Stephenson, Coelho, Jolliffe 2008, Weather Forecast 23:752-757).
    """
    c, y = columns(confidence, correct)
    return BinSums.of(c, y, assign(confidence, bins, scheme, closed), bins).brier_parts()


def log_loss(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    clip: float = 0.0,
    clusters: npt.ArrayLike | None = None,
    seed: int,
    stream: str = "log_loss",
    resamples: int = RESAMPLES,
    level: float = 0.95,
    method: Method = "expanded",
) -> Estimate:
    """The mean of −ln(probability given to what happened), with a bootstrap interval.

    Null where full confidence was wrong, since the loss is then infinite; `clip` keeps confidences within [clip, 1 −
    clip] instead, as a stated choice.
    """
    c, y = columns(confidence, correct)
    level = _checks.level(level)
    if c.size == 0:
        return Estimate.null("no rows with a confidence", level=level)
    if not 0.0 <= clip < 0.5:
        raise StatsError(f"clip {clip!r} is not in [0, 0.5)")
    c = np.clip(c, clip, 1.0 - clip)
    given = np.where(y == 1, c, 1.0 - c)
    certain = int(np.count_nonzero(given == 0.0))
    if certain:
        return Estimate.null(f"infinite: {certain} rows were wrong at full confidence", n=c.size, level=level)
    # log1p keeps the digits of confidences near 0 in wrong answers and near 1 in right ones.
    right = y == 1
    losses = np.empty(c.size)
    losses[right], losses[~right] = -np.log(c[right]), -np.log1p(-c[~right])
    return mean(losses, clusters=clusters, seed=seed, stream=stream, resamples=resamples, level=level, method=method)


def reliability_table(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    bins: int = 10,
    scheme: Scheme = "equal_width",
    closed: Closed = "left",
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> list[ReliabilityRow]:
    """What each bin promises and keeps: rows, mean confidence, accuracy with Wilson's interval; nulls in empty bins."""
    c, y = columns(confidence, correct)
    where = assign(confidence, bins, scheme, closed)
    size = np.bincount(where, minlength=bins).tolist()
    promised = exact.group_totals(c, where, bins) if c.size else [0] * bins
    groups = None
    if clusters is not None:
        _, groups = np.unique(np.asarray(clusters), return_inverse=True)
        _checks.same_length(c.size, groups.size, "clusters")
    bounds = edges(bins).tolist()
    rows: list[ReliabilityRow] = []
    for b in range(bins):
        inside = where == b
        if groups is not None and size[b]:
            of = groups[inside]
            accuracy = cluster_wilson(np.bincount(of, weights=y[inside]).astype(np.int64), np.bincount(of), level=level)
        else:
            accuracy = wilson(int(y[inside].sum()), size[b], level=level)
        wide = scheme == "equal_width"
        rows.append(
            ReliabilityRow(
                low=bounds[b] if wide else float(c[inside].min()) if size[b] else None,
                high=bounds[b + 1] if wide else float(c[inside].max()) if size[b] else None,
                n=size[b],
                mean_confidence=exact.rounded(promised[b], size[b]) if size[b] else None,
                accuracy=accuracy,
            )
        )
    return rows


def _ece_exact(c: FloatArray, y: npt.NDArray[Any], where: IntArray, bins: int) -> float:
    hits = np.bincount(where[y == 1], minlength=bins).tolist()
    return ece_of(hits, exact.group_totals(c, where, bins), c.size)


def _calibrated_quantile(covariance: FloatArray, n: int, level: float, seed: int, stream: str) -> float:
    """The `level` quantile of the ECE if answers were calibrated: Σ|gap|/n of normal gaps with this covariance."""
    values, vectors = np.linalg.eigh(covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = generator(seed, f"{stream}, if calibrated").standard_normal((_CALIBRATED_DRAWS, len(roots)))
    return float(np.quantile(np.abs(normal @ roots.T).sum(axis=1) / n, level))


def _ece_of_sums(sums: FloatArray, bins: int) -> FloatArray:
    result: FloatArray = np.abs(sums[:, :bins]).sum(axis=1) / sums[:, bins]
    return result


def _cluster_counts(
    c: FloatArray, y: npt.NDArray[Any], where: IntArray, bins: int, clusters: npt.NDArray[np.generic]
) -> FloatArray:
    """For each cluster: Σ (correct − confidence) in each bin, and its rows."""
    _checks.same_length(c.size, clusters.size, "clusters")
    names, of = np.unique(clusters, return_inverse=True)
    gaps = exact.group_sums(y - c, of * bins + where, names.size * bins).reshape(names.size, bins)
    return np.column_stack([gaps, np.bincount(of)])


def _cells(c: FloatArray, y: npt.NDArray[Any], where: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Rows gathered into cells that a resample draws as one: their counts, mean gap (correct − confidence), bin."""
    # By bin, then right or wrong, then confidence; only the confidences need sorting.
    group = where * 2 + y
    sizes = np.bincount(group)
    c = np.concatenate([np.sort(c[group == code]) for code in np.flatnonzero(sizes).tolist()])
    group = np.repeat(np.arange(sizes.size), sizes)
    where, y = group >> 1, group & 1
    new = np.ones(c.size, dtype=bool)
    new[1:] = (c[1:] != c[:-1]) | (y[1:] != y[:-1]) | (where[1:] != where[:-1])
    if int(new.sum()) > _EXACT_CELLS:
        start = np.repeat(np.cumsum(sizes) - sizes, sizes)
        block = (np.arange(c.size) - start) * _BLOCKS // np.repeat(sizes, sizes)
        new[1:] = (group[1:] != group[:-1]) | (block[1:] != block[:-1])
    first = np.flatnonzero(new)
    counts = np.diff(np.append(first, c.size))
    gaps = np.add.reduceat(y - c, first) / counts
    return counts.astype(np.int64), gaps, where[first]
