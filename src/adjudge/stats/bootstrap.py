"""The one bootstrap: clusters, rows, strata or cells are resampled through their sufficient statistics.

A resample is a vector of how often each unit was drawn, so a statistic of sums needs W @ sums and never the rows.
Columns of sums are put on a binary grid so coarse that every product W @ sums is exact in float64: the same bits
whatever order BLAS adds in. Of independent rows in cells a resample is a multinomial draw of how many rows fall into
each. `resampling` makes intervals of what comes out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, NotRequired, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError
from adjudge.stats import exact
from adjudge.stats.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    check_same_length,
    checked_column,
    checked_counts,
    checked_level,
    cluster_codes,
)
from adjudge.stats.proportions import effective_number
from adjudge.stats.resampling import ENUMERATE_UP_TO, NAMES, Method, cut, few, generator, interval_of, resamples_of

RESAMPLES = 2000


class Drawing(TypedDict):
    """The arguments by which every bootstrap is told how to draw; a measure takes them and hands them on.

    `stream` names the random numbers of one measure among those of the `seed`. Without the others there are `RESAMPLES` resamples
    and an "expanded" interval of 95 %.
    """

    seed: int
    stream: NotRequired[str]
    resamples: NotRequired[int]
    method: NotRequired[Method]
    level: NotRequired[float]


def level_of(drawing: Drawing) -> float:
    """The level of the interval that is asked for."""
    return checked_level(drawing.get("level", 0.95))


BLOCKS = 512
MANY_CLUSTERS = 8192  # where drawing clusters takes longer than drawing blocks of them
Statistic = Callable[[FloatArray], FloatArray]
"""From counts (resamples, k) to one value a resample; NaN where the statistic is undefined."""

UNDEFINED = "the statistic is undefined on these counts"
CELLS_AT_ONCE = 1 << 18  # of a few resamples, so that they stay in the processor's cache


def ratio_of_sums(
    numerators: npt.ArrayLike,
    denominators: npt.ArrayLike,
    *,
    strata: npt.ArrayLike | None = None,
    n: int | None = None,
    unit: str = "cluster",
    **drawing: Unpack[Drawing],
) -> Estimate:
    """Σ numerators / Σ denominators over clusters: a mean is sums over counts, a rate is successes over trials.

    `n` is the number of rows behind the value; by default the denominators' sum where they are counts, else the
    number of clusters. More than `MANY_CLUSTERS` clusters without strata are resampled as `BLOCKS` blocks.
    """
    top, bottom = checked_column(numerators, "numerators"), checked_column(denominators, "denominators")
    check_same_length(bottom.size, top.size, "numerators")
    if n is None:
        n = int(bottom.sum()) if (bottom == np.floor(bottom)).all() else bottom.size
    divisor = exact.total(bottom)
    if divisor == 0:
        return Estimate.null("nothing to divide by: the denominators add up to 0", n=n, level=level_of(drawing))
    value = exact.total(top) / divisor
    if strata is None and top.size > MANY_CLUSTERS:
        units = Units(top.size, n, np.abs(bottom), name=unit)
        return _ratio_of_blocks(top, bottom, value, units, drawing)
    sums = np.column_stack([top, bottom])
    return statistic_of_counts(
        sums, _ratio, strata=strata, n=n, value=value, sizes=np.abs(bottom), unit=unit, **drawing
    )


def mean(
    values: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    counts: IntArray | None = None,
    **drawing: Unpack[Drawing],
) -> Estimate:
    """The mean of a column, resampled by cluster, or row by row when there are no clusters.

    Without clusters a value may stand for several equal rows: for as many as `counts` says.

    Many independent rows are resampled as `BLOCKS` blocks of the sorted column, each at its mean; the replicates are
    then stretched about the value so that their variance is that of the rows. The cost does not grow with the
    resamples × rows.
    """
    column, level = checked_column(values, "values"), level_of(drawing)
    n = column.size
    if n == 0:
        return Estimate.null("no values", level=level)
    if clusters is not None:
        place, m = cluster_codes(clusters, n)
        return ratio_of_sums(exact.group_sums(column, place, m), np.bincount(place), **drawing)
    if counts is not None:
        check_same_length(n, counts.size, "counts")
    return means_of_counts([column], counts, **drawing)[0]


def statistic_of_counts(  # noqa: PLR0913 -- what a caller knows better than the counts say, by name
    counts: npt.ArrayLike,
    function: Statistic,
    *,
    strata: npt.ArrayLike | None = None,
    n: int | None = None,
    value: float | None = None,
    sizes: npt.ArrayLike | None = None,
    unit: str = "cluster",
    why_null: str = UNDEFINED,
    **drawing: Unpack[Drawing],
) -> Estimate:
    """A statistic of summed columns (F1, κ, MCC, ECE …): counts[m, k] per cluster, `function` from (rows, k) to rows.

    `value` is passed where the caller has it more exactly than `function` of the summed columns; `sizes` are the rows
    of each cluster, where they differ.
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2:
        raise StatsError(f"counts has {table.ndim} dimensions; it has one row a cluster and one column a count")
    m = len(table)
    if n is None:
        n = m
    if m == 0:
        return Estimate.null(f"no {unit}s", level=level_of(drawing))
    totals = np.array([[math.fsum(column) for column in table.T]])
    if value is None:
        value = one(function(totals))
    if value is None:
        return Estimate.null(why_null, n=n, level=level_of(drawing))
    grid = on_grid(table, m) if m > 1 else table  # a single unit is never drawn
    units = Units(m, n, sizes, strata, unit)
    return resample(value, units, lambda drawn: function(drawn @ grid), lambda: function(totals - table), **drawing)


class Units(NamedTuple):
    """What is resampled: `m` units of `n` rows.

    `sizes` are the rows behind each unit, from which the effective number of units follows; by default all are equal.
    """

    m: int
    n: int
    sizes: npt.ArrayLike | None = None
    strata: npt.ArrayLike | None = None
    name: str = "cluster"


def resample(
    value: float,
    units: Units,
    replicate: Statistic,
    leave_one_out: Callable[[], FloatArray],
    **drawing: Unpack[Drawing],
) -> Estimate:
    """Any statistic of m units: `replicate` maps counts of draws (rows, m) to values, `leave_one_out` serves BCa.

    Up to nine units all distinct resamples are enumerated, and the method says so.
    """
    level = level_of(drawing)
    m, n, sizes, strata, unit = units
    if m == 1:
        warning = f"one {unit} only: its variation cannot be seen, so there is no interval"
        return Estimate(value=value, level=level, n=n, method=f"{unit} bootstrap", warnings=(warning,))
    seed, stream, method = drawing["seed"], drawing.get("stream", ""), drawing.get("method", "expanded")
    plan = resamples_of(m, drawing.get("resamples", RESAMPLES), seed=seed, stream=stream, strata=strata)
    replicates = np.concatenate([np.asarray(replicate(drawn), dtype=np.float64) for drawn in plan.chunks()])
    design = f"stratified {unit}" if len(plan.strata) > 1 else unit
    name = f"{design} bootstrap, {NAMES[method]}, {plan.says}"
    warnings = few(m, unit, 0 if plan.enumerated is None else len(plan.enumerated))
    return interval_of(
        Estimate(value=value, level=level, n=n, method=name, seed=plan.recorded_seed, warnings=warnings),
        replicates,
        method,
        units=m if sizes is None else effective_number(sizes),
        strata=len(plan.strata),
        jackknife=lambda: (leave_one_out(), None),
        probabilities=plan.probabilities,
    )


def on_grid(table: FloatArray, m: int) -> FloatArray:
    """Columns rounded to multiples of a power of two so that any sum with m draws is exact in float64.

    Whole numbers up to 2^53 / m stay as they are; else the error is below 2^-52 · m of the column's largest entry.
    """
    largest = np.abs(table).max(axis=0)
    _, exponent = np.frexp(np.where(largest > 0, largest, 1.0))
    step = np.ldexp(1.0, np.maximum(exponent + math.ceil(math.log2(max(m, 2))) - 52, -exact.UNIT))
    whole = (table == np.floor(table)).all(axis=0) & (largest < 2.0**52 / m)
    return np.where(whole, table, np.round(table / step) * step)


def means_of_counts(
    columns: Sequence[FloatArray], counts: IntArray | None, **drawing: Unpack[Drawing]
) -> list[Estimate]:
    """The means of columns that rise together, of independent rows, from the same resamples; see `mean`.

    Row k stands `counts[k]` times, or once.
    """
    if counts is None:
        rising, sizes = [np.sort(column) for column in columns], np.ones(columns[0].size, dtype=np.int64)
    else:
        order = np.argsort(columns[0])
        order = order[counts[order] > 0]
        rising, sizes = [column[order] for column in columns], counts[order]
    n = int(sizes.sum())
    if n > BLOCKS:
        return _means_of_blocks(rising, sizes, drawing)
    return [ratio_of_sums(np.repeat(column, sizes), np.ones(n), unit="row", **drawing) for column in rising]


def _means_of_blocks(columns: Sequence[FloatArray], counts: IntArray, drawing: Drawing) -> list[Estimate]:
    """Of columns in rising order, all in blocks of the same rows."""
    n = int(counts.sum())
    edges = np.arange(BLOCKS + 1) * n // BLOCKS
    sizes = np.diff(edges)
    values, blocks, moves = [], [], []
    for ordered in columns:
        value = exact.rounded(exact.total(ordered, counts), n)
        deviations = ordered - value
        if n == ordered.size:
            block = np.add.reduceat(deviations, edges[:-1]) / sizes
        else:
            run, size, part = cut(counts, edges)
            block = np.bincount(part, weights=size * deviations[run]) / sizes
        values.append(value)
        blocks.append(block)
        moves.append(_stretched(block, sizes, float((counts * deviations**2).sum())))
    grid = np.column_stack(moves)
    replicates = np.concatenate([(times - sizes).astype(np.float64) @ grid for times in _drawn_blocks(sizes, drawing)])
    return [
        _interval_of_blocks(value, value + replicates[:, index] / n, block, sizes, Units(n, n, name="row"), drawing)
        for index, (value, block) in enumerate(zip(values, blocks, strict=True))
    ]


def _interval_of_blocks(
    value: float, replicates: FloatArray, block: FloatArray, sizes: IntArray, units: Units, drawing: Drawing
) -> Estimate:
    """Leaving one row of a block out moves the mean by -deviation/(n-1); BCa needs only the shape of these moves."""
    method, resamples = drawing.get("method", "expanded"), drawing.get("resamples", RESAMPLES)
    name = f"{units.name} bootstrap, {NAMES[method]}, {resamples} resamples of {BLOCKS} blocks"
    return interval_of(
        Estimate(value=value, level=level_of(drawing), n=units.n, method=name, seed=drawing["seed"]),
        replicates,
        method,
        units=units.m if units.sizes is None else effective_number(units.sizes),
        jackknife=lambda: (-block, sizes.astype(np.float64)),
    )


def _ratio_of_blocks(top: FloatArray, bottom: FloatArray, value: float, units: Units, drawing: Drawing) -> Estimate:
    """Blocks of clusters with alike residuals top - value · bottom, each at its means, as rows are in `mean`.

    A resampled ratio differs from the value by Σ residuals / Σ denominators; the residuals are stretched so that their
    variance is that of the clusters.
    """
    m = units.m
    residual = top - value * bottom
    order = np.lexsort((bottom, residual))
    residual, weight = residual[order], bottom[order]
    edges = np.arange(BLOCKS + 1) * m // BLOCKS
    sizes = np.diff(edges)
    block = np.add.reduceat(residual, edges[:-1]) / sizes
    moves = _stretched(block, sizes, float((residual**2).sum()))
    weight_of_block = on_grid((np.add.reduceat(weight, edges[:-1]) / sizes)[:, None], m)[:, 0]
    replicates = []
    for times in _drawn_blocks(sizes, drawing):
        drawn = times.astype(np.float64)
        divisor = drawn @ weight_of_block
        with np.errstate(divide="ignore", invalid="ignore"):
            replicates.append(np.where(divisor != 0, value + ((drawn - sizes) @ moves) / divisor, np.nan))
    return _interval_of_blocks(value, np.concatenate(replicates), block, sizes, units, drawing)


def _stretched(block: FloatArray, sizes: IntArray, variation: float) -> FloatArray:
    """The blocks' mean deviations, stretched to the sum of squares of the units within them, on a grid.

    Counts differ from the sizes by some sqrt(size), so the grid can be that much finer than for as many draws as units.
    """
    between = float((sizes * block**2).sum())
    stretch = math.sqrt(variation / between) if between > 0 else 1.0
    return on_grid((block * stretch)[:, None], 8 * math.isqrt(int(sizes.sum()) * BLOCKS))[:, 0]


def _drawn_blocks(sizes: IntArray, drawing: Drawing) -> Iterator[IntArray]:
    """How many units of each block every resample draws, some resamples at a time."""
    random, m = generator(drawing["seed"], drawing.get("stream", "")), int(sizes.sum())
    resamples = drawing.get("resamples", RESAMPLES)
    rows = CELLS_AT_ONCE // BLOCKS
    for start in range(0, resamples, rows):
        yield random.multinomial(m, sizes / m, size=min(rows, resamples - start))


def _ratio(sums: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(sums[:, 1] != 0, sums[:, 0] / sums[:, 1], np.nan))


def one(values: FloatArray) -> float | None:
    """The only value of an array; None where it is not finite."""
    value = float(np.asarray(values, dtype=np.float64).reshape(-1)[0])
    return value if math.isfinite(value) else None


def multinomial_cells(
    cells: npt.ArrayLike,
    function: Statistic,
    *,
    value: float | None = None,
    why_null: str = UNDEFINED,
    **drawing: Unpack[Drawing],
) -> Estimate:
    """A statistic of independent rows in cells: counts[k]."""
    return several_of_cells(cells, [(function, value)], why_null=why_null, **drawing)[0]


def several_of_cells(
    cells: npt.ArrayLike,
    functions: Sequence[tuple[Statistic, float | None]],
    *,
    why_null: str = UNDEFINED,
    **drawing: Unpack[Drawing],
) -> list[Estimate]:
    """As `multinomial_cells`, several statistics from the same resamples, each with its value where the caller has it."""
    table = checked_counts(cells, "cells")
    level = level_of(drawing)
    n = int(table.sum())
    totals = table.astype(np.float64)
    if n == 0:
        return [Estimate.null("no rows", level=level) for _ in functions]
    values = [one(function(totals[None, :])) if value is None else value for function, value in functions]
    wanted = [(function, value) for (function, _), value in zip(functions, values, strict=True) if value is not None]
    if n <= ENUMERATE_UP_TO:
        rows = np.eye(table.size)[np.repeat(np.arange(table.size), table)]
        estimates = [
            statistic_of_counts(rows, function, value=value, unit="row", **drawing) for function, value in wanted
        ]
    else:
        replicates = _replicates(table, [function for function, _ in wanted], drawing)
        method, resamples = drawing.get("method", "expanded"), drawing.get("resamples", RESAMPLES)
        name = f"row bootstrap, {NAMES[method]}, {resamples} resamples"
        estimates = [
            interval_of(
                Estimate(value=value, level=level, n=n, method=name, seed=drawing["seed"], warnings=few(n, "row")),
                values_of_resamples,
                method,
                units=n,
                jackknife=partial(_leave_one_out, function, totals),
            )
            for (function, value), values_of_resamples in zip(wanted, replicates, strict=True)
        ]
    known = iter(estimates)
    return [Estimate.null(why_null, n=n, level=level) if value is None else next(known) for value in values]


def _leave_one_out(function: Statistic, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The statistic without one row of each cell, and how many rows the cell has."""
    used = totals > 0
    return function(totals - np.eye(totals.size)[used]), totals[used]


def _replicates(table: IntArray, functions: Sequence[Statistic], drawing: Drawing) -> list[FloatArray]:
    """Every statistic of every resample; few resamples at a time, so that they stay in the processor's cache."""
    if not functions:
        return []
    random, resamples = generator(drawing["seed"], drawing.get("stream", "")), drawing.get("resamples", RESAMPLES)
    rows = max(1, CELLS_AT_ONCE // table.size)
    used = np.flatnonzero(table)
    size = int(table.sum())
    chunks: list[list[FloatArray]] = []
    for start in range(0, resamples, rows):
        drawn = np.zeros((min(rows, resamples - start), table.size))
        drawn[:, used] = random.multinomial(size, table[used] / size, size=len(drawn))
        chunks.append([function(drawn) for function in functions])
    return [np.concatenate(chunks_of_one) for chunks_of_one in zip(*chunks, strict=True)]
