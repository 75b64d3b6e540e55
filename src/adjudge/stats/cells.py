"""The bootstrap of independent rows in cells: a resample is a multinomial draw of how many rows fall into each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

import numpy as np
import numpy.typing as npt

from adjudge.stats import _checks
from adjudge.stats._checks import FloatArray, IntArray
from adjudge.stats.bootstrap import CELLS_AT_ONCE, RESAMPLES, UNDEFINED, Drawing, Statistic, one, statistic_of_counts
from adjudge.stats.estimate import Estimate
from adjudge.stats.replicates import NAMES, Method, few, interval_of
from adjudge.stats.resampling import ENUMERATE_UP_TO, generator


def multinomial_cells(
    cells: npt.ArrayLike,
    function: Statistic,
    *,
    value: float | None = None,
    why_null: str = UNDEFINED,
    level: float = 0.95,
    **drawing: Unpack[Drawing],
) -> Estimate:
    """A statistic of independent rows in cells: counts[k], or counts[h, k] resampled within each stratum h."""
    return several_of_cells(cells, [(function, value)], why_null=why_null, level=level, **drawing)[0]


def several_of_cells(
    cells: npt.ArrayLike,
    functions: Sequence[tuple[Statistic, float | None]],
    *,
    seed: int,
    stream: str,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    method: Method = "expanded",
    why_null: str = UNDEFINED,
) -> list[Estimate]:
    """As `multinomial_cells`, several statistics from the same resamples, each with its value where the caller has it."""
    table = np.atleast_2d(_checks.counts(cells, "cells"))
    level = _checks.level(level)
    n = int(table.sum())
    totals = table.sum(axis=0).astype(np.float64)
    if n == 0:
        return [Estimate.null("no rows", level=level) for _ in functions]
    table = table[table.sum(axis=1) > 0]
    values = [one(function(totals[None, :])) if value is None else value for function, value in functions]
    wanted = [(function, value) for (function, _), value in zip(functions, values, strict=True) if value is not None]
    if n <= ENUMERATE_UP_TO:
        stratum, cell = (np.repeat(index.ravel(), table.ravel()) for index in np.indices(table.shape))
        rows = np.eye(table.shape[1])[cell]
        drawing: Drawing = {"seed": seed, "stream": stream, "method": method}
        estimates = [
            statistic_of_counts(rows, function, value=value, strata=stratum, unit="row", level=level, **drawing)
            for function, value in wanted
        ]
    else:
        design = "stratified row" if len(table) > 1 else "row"
        replicates = _replicates(table, [function for function, _ in wanted], seed, stream, resamples)
        estimates = [
            interval_of(
                value,
                values_of_resamples,
                units=n,
                strata=len(table),
                jackknife=partial(function, totals - np.eye(totals.size)[totals > 0]),
                jackknife_weights=totals[totals > 0],
                n=n,
                level=level,
                method=method,
                seed=seed,
                name=f"{design} bootstrap, {NAMES[method]}, {resamples} resamples",
                warnings=few(n, "row"),
            )
            for (function, value), values_of_resamples in zip(wanted, replicates, strict=True)
        ]
    known = iter(estimates)
    return [Estimate.null(why_null, n=n, level=level) if value is None else next(known) for value in values]


def _replicates(
    table: IntArray, functions: Sequence[Statistic], seed: int, stream: str, resamples: int
) -> list[FloatArray]:
    """Every statistic of every resample; few resamples at a time, so that they stay in the processor's cache."""
    if not functions:
        return []
    random = generator(seed, stream)
    rows = max(1, CELLS_AT_ONCE // table.shape[1])
    chunks: list[list[FloatArray]] = []
    for start in range(0, resamples, rows):
        drawn = _draw_cells(random, table, min(rows, resamples - start))
        chunks.append([function(drawn) for function in functions])
    return [np.concatenate(chunks_of_one) for chunks_of_one in zip(*chunks, strict=True)]


def _draw_cells(random: np.random.Generator, table: IntArray, rows: int) -> FloatArray:
    if len(table) == 1 and table.all():
        return random.multinomial(table.sum(), table[0] / table.sum(), size=rows).astype(np.float64)
    drawn = np.zeros((rows, table.shape[1]))
    for stratum in table:
        used = np.flatnonzero(stratum)
        size = int(stratum.sum())
        drawn[:, used] += random.multinomial(size, stratum[used] / size, size=rows)
    return drawn
