"""The bootstrap of independent rows in cells: a resample is a multinomial draw of how many rows fall into each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

import numpy as np
import numpy.typing as npt

from adjudge.stats.bootstrap import (
    CELLS_AT_ONCE,
    RESAMPLES,
    UNDEFINED,
    Drawing,
    Statistic,
    level_of,
    one,
    statistic_of_counts,
)
from adjudge.stats.estimate import Estimate, FloatArray, IntArray, checked_counts
from adjudge.stats.replicates import NAMES, few, interval_of
from adjudge.stats.resampling import ENUMERATE_UP_TO, generator


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
