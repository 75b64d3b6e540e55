"""Which samples a page shows: all of them, or the worst and a part drawn at random, when there are too many.

Samples are drawn by a hash of a seed and their id, so that the same run shows the same ones on every machine, whatever
the order of its rows. All models of a sample are shown together, unless there are too many of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.runs.query import as_table
from adjudge.runs.run import Run

BADNESS = "case s.bucket when 'failed' then 3 when 'errored' then 1 when 'passed' then 0 else 2 end"
"""A wrong answer before none, a broken instrument after both, as the page has it."""
_TOGETHER = 20  # with more models than this, one sample of all of them would fill the page


class Chosen(NamedTuple):
    """The rows to show: by partition, and how many are there for being bad, how many by chance."""

    rows: dict[int, NDArray[np.int64]] | None
    """Row numbers by partition, ascending; None where all are shown."""
    worst: int
    drawn: int
    seed: int


def chosen(run: Run, most: int, also: Sequence[tuple[int, int]] = ()) -> Chosen:
    """All rows where they are at most `most`; otherwise half of that from the worst samples, half from random others.

    `also` are rows, by partition and number, that belong to the worst whatever their rank.
    """
    seed = int(run.manifest.seeds.get("seed", 0))
    if run.samples_count <= most:
        return Chosen(None, 0, 0, seed)
    part, row, rank, draw = _ranked(run, seed)
    asked = np.isin(place_of(part, row), [place_of(*place) for place in also])
    rank = np.where(asked, rank + rank.max() + 1.0, rank)
    order = np.argsort(draw, kind="stable")
    part, row, rank, draw = part[order], row[order], rank[order], draw[order]
    group = np.concatenate([[0], np.cumsum(draw[1:] != draw[:-1])])  # the rows of one sample, in the order of the draw
    badness = np.maximum.reduceat(rank, np.flatnonzero(np.diff(group, prepend=-1)))
    worst = np.argsort(-badness[group], kind="stable")[: most // 2]
    others = np.ones(rank.size, dtype=bool)
    others[worst] = False
    drawn = np.flatnonzero(others)[: most - worst.size]
    shown = np.concatenate([worst, drawn])
    parts = {int(number): np.sort(row[shown][part[shown] == number]) for number in np.unique(part[shown])}
    return Chosen(parts, int(worst.size), int(drawn.size), seed)


def place_of(part: Any, row: Any) -> Any:
    """Partition and number of a row as one number."""
    return part * (1 << 32) + row


def mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Numbers spread at random over 64 bits, in another way for every seed: the finaliser of SplitMix64 (Steele 2014)."""
    mix = numbers + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mix = (mix ^ (mix >> np.uint64(shift))) * np.uint64(factor)
    return mix ^ (mix >> np.uint64(31))


def _ranked(
    run: Run, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.uint64]]:
    """Place, badness and random number of every row; rows of one sample share the number, where they go together."""
    together = len(run.metrics.get("buckets") or ()) <= _TOGETHER
    key = "s.sample" if together else "s.sample || '/' || s.model"
    table = as_table(
        run,
        "with failed as (select part, sample as row, sum(if(severity = 'CRITICAL', 1000, 1)) as weight "  # noqa: S608 -- words of our own
        "from atoms where outcome = 'fail' group by part, sample) "
        "select s.part::bigint as part, s.row::bigint as row, "
        f"(coalesce(weight, 0) + {BADNESS} * 1e9)::double as rank, "
        f"{key} as key from samples s left join failed using (part, row)",
        threads=1,
    )
    part, row, rank = (np.array(table.column(name)) for name in ("part", "row", "rank"))
    hashes = map(zlib.crc32, table.column("key").cast(pa.binary()).to_pylist())
    draw = mixed(np.fromiter(hashes, np.uint64, table.num_rows), seed)
    if (np.diff(place_of(part, row)) < 0).any():  # what SQL gives has no order of its own
        order = np.lexsort((row, part))
        part, row, rank, draw = part[order], row[order], rank[order], draw[order]
    return part, row, rank, draw
