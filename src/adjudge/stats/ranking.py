"""How well scores put positives above negatives: AUROC with DeLong's interval, average precision, Recall@FPR.

AUROC is the Mann–Whitney count, held in integers as 2 · wins + ties. DeLong, DeLong and Clarke-Pearson 1988,
Biometrics 44:837-845, from placements found by sorting (Sun and Xu 2014, IEEE Signal Processing Letters
21:1389-1393). Where DeLong's variance is 0 the interval is Newcombe's (2006, Statistics in Medicine 25:559-573,
method 5). With clusters every interval is a cluster bootstrap (`ranked`, from rows sorted once).
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import _checks, bootstrap, ranked
from adjudge.stats._checks import BoolArray, FloatArray, IntArray
from adjudge.stats.estimate import Estimate
from adjudge.stats.placements import by_class, counted_placements, placements, variance_of_auroc
from adjudge.stats.proportions import wilson
from adjudge.stats.quantiles import normal_quantile
from adjudge.stats.ranked import ONE_CLASS, largest_allowed, newcombe_auroc, of_some_width
from adjudge.stats.ranking_bootstrap import Curve, RankedRows
from adjudge.stats.replicates import NAMES, Method, interval_of
from adjudge.stats.resampling import generator


def auroc(
    scores: npt.ArrayLike,
    positives: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    counts: IntArray | None = None,
    seed: int = 0,
    stream: str = "auroc",
    level: float = 0.95,
    **resampling: Unpack[bootstrap.Resampling],
) -> Estimate:
    """The chance that a positive scores above a negative, ties counting half; DeLong's interval, or by cluster.

    Without clusters a row may stand for several equal ones: for as many as `counts` says.
    """
    column, positive = _columns(scores, positives)
    level = _checks.level(level)
    if _one_class(positive):
        n = column.size if counts is None else int(counts.sum())
        return Estimate.null(ONE_CLASS, n=n, level=level)
    if clusters is None:
        return _auroc_of_rows(column, positive, counts, level)
    return ranked.auroc(_ranked(column, positive, clusters), seed=seed, stream=stream, level=level, **resampling)


def auroc_value(scores: npt.ArrayLike, positives: npt.ArrayLike) -> float | None:
    """AUROC alone, or None with one class only."""
    column, positive = _columns(scores, positives)
    if _one_class(positive):
        return None
    ups, downs = (np.sort(scores_of_class) for scores_of_class in by_class(column, positive))
    return _doubled_wins(ups, downs) / (2 * ups.size * downs.size)


def average_precision(
    scores: npt.ArrayLike,
    positives: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    seed: int = 0,
    stream: str = "average_precision",
    level: float = 0.95,
    **resampling: Unpack[bootstrap.Resampling],
) -> Estimate:
    """Σ (recall gained) · precision over the distinct thresholds, without interpolation.

    Without clusters the interval is the logit interval with n = number of positives (Boyd, Eng and Page 2013, ECML,
    LNCS 8190:451-466), or Wilson's at 0 and 1.
    """
    column, positive = _columns(scores, positives)
    level = _checks.level(level)
    ups = int(positive.sum())
    if ups == 0:
        return Estimate.null("no positives", n=column.size, level=level)
    if clusters is not None:
        rows = _ranked(column, positive, clusters)
        return ranked.average_precision(rows, seed=seed, stream=stream, level=level, **resampling)
    falling, _ = RankedRows.of(column, positive, np.zeros(column.size, dtype=np.int64), 1).falling
    value = falling.average_precision()
    if value >= 1.0:
        low, high, interval = wilson(ups, ups, level=level).low, 1.0, "wilson"
    else:
        half = normal_quantile(0.5 + level / 2.0) / math.sqrt(ups * value * (1.0 - value))
        (low, high), interval = _around_logit(value, half), "logit"
    return Estimate(
        value=value, low=low, high=high, level=level, n=column.size, method=f"{interval} over the positives"
    )


def recall_at_fpr(
    scores: npt.ArrayLike,
    positives: npt.ArrayLike,
    target: float,
    *,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
    **drawing: Unpack[bootstrap.Drawing],
) -> Estimate:
    """The largest true positive rate of a threshold whose false positive rate is at most the target; no interpolation.

    Without clusters a resample needs no rows: the threshold is the order statistic of the drawn negatives, whose
    place is Beta distributed, and the positives above it are binomial.
    """
    column, positive = _columns(scores, positives)
    level = _checks.level(level)
    if not 0.0 <= target <= 1.0:
        raise StatsError(f"false positive rate {target!r} is not between 0 and 1")
    if _one_class(positive):
        return Estimate.null(ONE_CLASS, n=column.size, level=level)
    if clusters is not None:
        rows = _ranked(column, positive, clusters)
        return ranked.recall_at_fpr(Curve.of(*rows.falling, rows.m), target, level=level, **drawing)
    ups, downs = (np.sort(scores_of_class) for scores_of_class in by_class(column, positive))
    # above[j] = positives that score strictly above the (j+1)-th largest negative.
    above = ups.size - np.searchsorted(ups, downs[::-1], side="right").astype(np.int64)
    allowed = int(largest_allowed(np.array([downs.size]), target)[0])
    hit = int(above[allowed]) if allowed < downs.size else ups.size
    seed, resamples = drawing["seed"], drawing.get("resamples", bootstrap.RESAMPLES)
    random = generator(seed, drawing["stream"])
    # There is no leave-one-out value to make BCa of.
    method: Method = "percentile" if drawing.get("method") == "percentile" else "expanded"
    name = f"row bootstrap, {NAMES[method]}, {resamples} resamples"
    estimate = interval_of(
        Estimate(value=hit / ups.size, n=column.size, level=level, method=name, seed=seed),
        _recall_replicates(above, ups.size, downs.size, target, resamples, random),
        method,
        units=min(ups.size, downs.size),
    )
    return of_some_width(estimate, wilson(hit, ups.size, level=level))


def _auroc_of_rows(column: FloatArray, positive: BoolArray, counts: IntArray | None, level: float) -> Estimate:
    up, down = placements(column, positive) if counts is None else counted_placements(column, positive, counts)
    value = up.total() / (2 * up.n * down.n)
    variance = variance_of_auroc(up, down)
    n = up.n + down.n
    if not variance or value in {0.0, 1.0}:
        low, high = newcombe_auroc(value, up.n, down.n, level=level)
        return Estimate(value=value, low=low, high=high, level=level, n=n, method="newcombe")
    # On the logit scale the interval stays within 0 and 1 (Pepe 2003, section 5.2).
    half = normal_quantile(0.5 + level / 2.0) * math.sqrt(variance) / (value * (1.0 - value))
    low, high = _around_logit(value, half)
    return Estimate(value=value, low=low, high=high, level=level, n=n, method="delong, logit scale")


def _around_logit(value: float, half: float) -> tuple[float, float]:
    """The interval of ± half around a share on the logit scale."""
    middle = math.log(value / (1.0 - value))
    low, high = (_share_of_logit(middle + way * half) for way in (-1, 1))
    return low, high


def _share_of_logit(x: float) -> float:
    smaller = math.exp(-abs(x)) / (1.0 + math.exp(-abs(x)))
    return smaller if x < 0 else 1.0 - smaller


def _doubled_wins(ups: FloatArray, downs: FloatArray) -> int:
    if ups.size > downs.size:
        # Search the shorter column: wins over it are all pairs less its own wins.
        return 2 * ups.size * downs.size - _doubled_wins_by_search(downs, ups)
    return _doubled_wins_by_search(ups, downs)


def _doubled_wins_by_search(ups: FloatArray, downs: FloatArray) -> int:
    smaller = np.searchsorted(downs, ups, side="left")
    tied = downs[np.minimum(smaller, downs.size - 1)] == ups
    total = 2 * int(smaller.sum())
    if tied.any():
        total += int((np.searchsorted(downs, ups[tied], side="right") - smaller[tied]).sum())
    return total


def _recall_replicates(
    above: IntArray, positives: int, negatives: int, target: float, resamples: int, random: np.random.Generator
) -> FloatArray:
    n = positives + negatives
    drawn_downs = random.binomial(n, negatives / n, size=resamples)
    drawn_ups = n - drawn_downs
    allowed = largest_allowed(drawn_downs, target)
    bounded = allowed < drawn_downs
    # The (allowed + 1)-th largest of the drawn negatives, as a place among the negatives from the top.
    share = random.beta(allowed + 1.0, np.maximum(drawn_downs - allowed, 1))
    place = np.minimum((share * negatives).astype(np.int64), negatives - 1)
    chance = np.where(bounded, above[place] / positives, 1.0)
    hits = random.binomial(drawn_ups, chance)
    defined = (drawn_ups > 0) & (drawn_downs > 0)
    replicates: FloatArray = np.divide(hits, drawn_ups, out=np.full(resamples, np.nan), where=defined)
    return replicates


def _columns(scores: npt.ArrayLike, positives: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    column = _checks.column(scores, "scores")
    flags = np.asarray(positives)
    if flags.dtype.kind != "b":
        if flags.size and not np.isin(flags, (0, 1)).all():
            raise StatsError("positives holds values other than true and false")
        flags = flags.astype(bool)
    _checks.same_length(column.size, flags.size, "positives")
    return column, flags


def _ranked(column: FloatArray, positive: BoolArray, clusters: npt.ArrayLike) -> RankedRows:
    labels = np.asarray(clusters)
    _checks.same_length(column.size, labels.size, "clusters")
    if labels.dtype.kind in "iu" and labels.size and labels.min() >= 0 and labels.max() < 4 * labels.size:
        # Small whole numbers need no sorting to be counted.
        used = np.bincount(labels.astype(np.int64)) > 0
        return RankedRows.of(column, positive, (np.cumsum(used) - 1)[labels], int(used.sum()))
    names, place = np.unique(labels, return_inverse=True)
    return RankedRows.of(column, positive, place.astype(np.int64), names.size)


def _one_class(positive: BoolArray) -> bool:
    ups = int(np.count_nonzero(positive))
    return ups in {0, positive.size}
