"""Some rows of a run with their outputs and evidence, every batch read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import RunError
from adjudge.evidence.table import Evidence
from adjudge.runs.run import Run, open_parquet
from adjudge.runs.writer import SAMPLES

Rows = Mapping[int, NDArray[np.integer[Any]]]
_ATOMS = ["rule", "outcome", "severity", "observed", "why"]  # the layout knows the rest


class Picked(NamedTuple):
    """Rows of one batch: its partition, samples.parquet, the raw outputs where the run keeps them, and the evidence."""

    part: int
    samples: pa.Table
    outputs: pa.Table | None
    evidence: Evidence


def hold(run: Run, places: Iterable[tuple[int, int]], batches: Iterable[Picked] | None = None) -> None:
    """Keep some rows, by partition and number, with the run, so that asking for one reads no file.

    They are taken from `batches` where those are at hand.
    """
    asked = set(places) - run.held.keys()
    if batches is None:
        parts = {part for part, _ in asked}
        batches = picked(run, {part: np.array(sorted(row for of, row in asked if of == part)) for part in parts})
    for batch in batches:
        numbers = zip(batch.samples.column("part").to_pylist(), batch.samples.column("row").to_pylist(), strict=True)
        for index, place in enumerate(numbers):
            if place in asked:
                output = None if batch.outputs is None else batch.outputs.slice(index, 1).to_pylist()[0]
                run.held[place] = batch.samples.slice(index, 1).to_pylist()[0], batch.evidence.only(index), output


def picked(run: Run, rows: Rows | None) -> Iterator[Picked]:
    """The rows with these numbers by partition (None: all), in the order of the run; batches without any are not read."""
    samples = open_parquet(run.path / SAMPLES)
    group = 0
    for part, path in run.parts():
        evidence = open_parquet(path)
        outputs = open_parquet(run.path / "outputs" / path.name)
        first = 0
        for index in range(evidence.num_row_groups):
            if group >= samples.num_row_groups:
                raise RunError(f"{run.path / SAMPLES} has fewer batches than the evidence")
            n = samples.metadata.row_group(group).num_rows
            inside = _inside(rows, part, first, n)
            if inside.size:
                texts = outputs.read_row_group(index) if index < outputs.num_row_groups else None
                yield Picked(
                    part,
                    _rows(samples.read_row_group(group), inside),
                    None if texts is None else _rows(texts, inside),
                    Evidence.picked(evidence.read_row_group(index, columns=_ATOMS), run.layout, inside),
                )
            first, group = first + n, group + 1


def _inside(rows: Rows | None, part: int, first: int, n: int) -> NDArray[np.integer[Any]]:
    """Places within a batch of the rows asked for."""
    if rows is None:
        return np.arange(n)
    asked = rows.get(part, np.empty(0, dtype=np.int64))
    return asked[(asked >= first) & (asked < first + n)] - first


def _rows(table: pa.Table, places: NDArray[np.integer[Any]]) -> pa.Table:
    return table if places.size == table.num_rows else table.take(pa.array(places))
