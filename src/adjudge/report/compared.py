"""The samples of a comparison for the explorer on its page: what every system made of the samples that are shared.

All of them up to a number and a size; otherwise those that flipped, and others drawn at random. Every run is packed as on
its own page, so rules, evidence and answers are shown by the same code.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.report import view
from adjudge.report.explore import PACKED_BYTES, SAMPLES, Chosen, Explorer, block, fitted, mixed, place_of
from adjudge.runs.run import Run

_FLIPPED = 0.75  # of what is shown, where not all flips can be
_SHOWN = frozenset({"worst", "drawn", "seed", "total"})


class Side(NamedTuple):
    """One system of a comparison: its name there, its model, and the run it stands in."""

    name: str
    model: str
    run: Run


def compared(comparison: Mapping[str, Any], sides: Sequence[Side], room: int = PACKED_BYTES) -> Explorer:
    """What the page of a comparison explores."""
    shared = _Shared.of(sides)
    flips = [_flips(pair, shared, [side.name for side in sides]) for pair in comparison["pairs"]]
    on = view.words(comparison["pairs"][0]["flipped"]["name"])
    seed = int(comparison["seed"])

    def make(most: int) -> dict[str, Any]:
        keys, numbers = _chosen(shared, flips, most, seed)
        return {**_packable(sides, shared, flips, keys), "on": on, **numbers}

    return fitted(make, max(1, SAMPLES // len(sides)), room)


@dataclass
class _Shared:
    """The samples (and trials) that at least two systems were judged on, numbered, and where each system has them."""

    names: dict[str, int]
    places: NDArray[np.int64]
    """By system and sample, the place in its run; −1 where it has none."""

    @classmethod
    def of(cls, sides: Sequence[Side]) -> _Shared:
        keys, places = zip(*(_rows(side) for side in sides), strict=True)
        numbered = pa.chunked_array(keys).dictionary_encode().combine_chunks()
        codes = np.asarray(numbered.indices)
        table = np.full((len(sides), len(numbered.dictionary)), -1, dtype=np.int64)
        first = 0
        for system, rows in enumerate(places):
            table[system, codes[first : first + rows.size]] = rows
            first += rows.size
        several = (table >= 0).sum(axis=0) > 1
        names = numbered.dictionary.filter(pa.array(several)).to_pylist()
        return cls({name: number for number, name in enumerate(names)}, table[:, several])


def _rows(side: Side) -> tuple[pa.Array, NDArray[np.int64]]:
    """The samples of a system, with their trials, and their places in its run."""
    column = view.system_column(side.run)
    trial = ["trial"] if "trial" in side.run.column_names else []
    table = side.run.columns([column, "sample", "part", "row", *trial])
    table = table.filter(pc.equal(table.column(column).cast(pa.string()), side.model))
    trials = table.column("trial").cast(pa.string()) if trial else pa.array([""] * table.num_rows)
    keys = pc.binary_join_element_wise(
        table.column("sample").cast(pa.string()), trials, "\x1f", null_handling="replace"
    )
    part, row = (np.asarray(table.column(name).cast(pa.int64())) for name in ("part", "row"))
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys, place_of(part, row)


def _flips(pair: Mapping[str, Any], shared: _Shared, names: Sequence[str]) -> dict[str, Any]:
    """The systems of a pair, and the samples on which only one of the two is right."""
    ways: dict[str, list[int]] = {"lost": [], "gained": []}
    for flip in pair["flipped"]["samples"]:
        ways[flip["change"]].append(shared.names[f"{flip['sample']}\x1f{flip['trial'] or ''}"])
    return {"a": names.index(pair["a"]), "b": names.index(pair["b"]), **ways}


def _chosen(
    shared: _Shared, flips: Sequence[Mapping[str, Any]], most: int, seed: int
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """The samples to show, ascending, and how many of which there are."""
    total = len(shared.names)
    flipped = np.unique(
        np.array([key for pair in flips for way in ("lost", "gained") for key in pair[way]], dtype=np.int64)
    )
    numbers: dict[str, Any] = {"total": total, "flipped": int(flipped.size)}
    if total <= most:
        return np.arange(total), {"n": total, **numbers}
    draw = mixed(np.array([zlib.crc32(name.encode()) for name in shared.names], dtype=np.uint64), seed)
    by_draw = np.argsort(draw, kind="stable")
    is_flipped = np.zeros(total, dtype=bool)
    is_flipped[flipped] = True
    first = by_draw[is_flipped[by_draw]][: int(most * _FLIPPED)]
    others = by_draw[~is_flipped[by_draw]][: most - first.size]
    kept = {"flipped_shown": int(first.size), "drawn": int(others.size), "seed": seed}
    return np.sort(np.concatenate([first, others])), {"n": int(first.size + others.size), **numbers, **kept}


def _packable(
    sides: Sequence[Side], shared: _Shared, flips: Sequence[Mapping[str, Any]], keys: NDArray[np.int64]
) -> dict[str, Any]:
    """The runs with the rows of the chosen samples, and where each system has which sample."""
    runs = list({str(side.run.path.resolve()): side.run for side in sides}.values())
    numbers = [next(place for place, run in enumerate(runs) if run.path == side.run.path) for side in sides]
    places = shared.places[:, keys]
    rows: list[list[int]] = [[] for _ in sides]
    blocks = []
    for number, run in enumerate(runs):
        systems = [system for system, of in enumerate(numbers) if of == number]
        wanted = np.unique(places[systems])
        wanted = wanted[wanted >= 0]
        parts = {int(part): wanted[wanted >> 32 == part] & 0xFFFFFFFF for part in np.unique(wanted >> 32)}
        blocks.append({name: value for name, value in block(run, Chosen(parts, 0, 0, 0)).items() if name not in _SHOWN})
        for system in systems:
            at = places[system]
            rows[system] = np.where(at < 0, -1, np.searchsorted(wanted, at)).tolist()
    number_of = {int(key): number for number, key in enumerate(keys)}
    return {
        "systems": [{"name": side.name, "run": numbers[place]} for place, side in enumerate(sides)],
        "rows": rows,
        "pairs": [
            {**pair, **{way: [number_of[key] for key in pair[way] if key in number_of] for way in ("lost", "gained")}}
            for pair in flips
        ],
        "runs": blocks,
    }
