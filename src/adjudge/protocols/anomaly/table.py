"""Scores by flown sequence: a flight, clean or under one attack of one size and seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.anomaly.flights import Floats, flight_codes, numbers, read_table, seconds
from adjudge.protocols.anomaly.splits import SPLITS, Splits

FILE = "scores.parquet"
LABELLED = "labelled"
_CLEAN = frozenset({"", "none", "clean", "normal", "nan", "null"})
_ROWS = 1 << 20


@dataclass(frozen=True)
class Sequence:
    """What a sequence is: its flight and split, and the attack on it, if any."""

    flight: str
    split: str
    attack: str | None
    magnitude: float | None
    seed: int | None

    @property
    def id(self) -> str:
        """The sample id: flight, attack, size and seed."""
        if self.attack is None:
            return self.flight
        size = "" if self.magnitude is None else f":{self.magnitude:g}"
        return f"{self.flight}|{self.attack}{size}" + ("" if self.seed is None else f"#{self.seed}")

    def key(self) -> tuple[Any, ...]:
        """The order of sequences in the run."""
        return (
            SPLITS.index(self.split) if self.split in SPLITS else 9,
            self.attack or "",
            -1.0 if self.magnitude is None else self.magnitude,
            -1 if self.seed is None else self.seed,
            self.flight,
        )


@dataclass
class ScoreTable:
    """Rows sorted by sequence, in the order of the file within each; sequence i has rows edges[i] to edges[i + 1]."""

    sequences: list[Sequence]
    edges: NDArray[np.int64]
    time: Floats
    score: Floats
    label: NDArray[np.bool_]
    declared: list[tuple[str, str]]
    """(flight, split) as the file itself says, where it has a split column."""

    def rows(self, index: int) -> slice:
        """The rows of one sequence."""
        return slice(int(self.edges[index]), int(self.edges[index + 1]))

    def of(self, split: str) -> list[int]:
        """The sequences of a split."""
        return [index for index, item in enumerate(self.sequences) if item.split == split]

    def write(self, path: Path) -> None:
        """scores.parquet, with what the sequences are in its metadata-free columns."""
        sizes = np.diff(self.edges)
        code = np.repeat(np.arange(len(self.sequences), dtype=np.int32), sizes)
        words = pa.dictionary(pa.int32(), pa.string())
        columns: dict[str, list[str | None]] = {
            "flight": [item.flight for item in self.sequences],
            "split": [item.split for item in self.sequences],
            "attack": [item.attack for item in self.sequences],
        }
        schema = pa.schema(
            [
                *((name, words) for name in columns),
                ("magnitude", pa.float64()),
                ("seed", pa.int64()),
                ("t", pa.float64()),
                ("score", pa.float64()),
                ("label", pa.bool_()),
            ]
        )
        with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
            for start in range(0, code.size, _ROWS):
                part = slice(start, min(start + _ROWS, code.size))
                places = pa.array(code[part])
                arrays = []
                for values in columns.values():
                    distinct = sorted({value for value in values if value is not None})
                    where = {value: place for place, value in enumerate(distinct)}
                    indices = pa.array([None if value is None else where[value] for value in values], pa.int32())
                    arrays.append(pa.DictionaryArray.from_arrays(indices.take(places), pa.array(distinct, pa.string())))
                arrays += [
                    pa.array([item.magnitude for item in self.sequences], pa.float64()).take(places),
                    pa.array([item.seed for item in self.sequences], pa.int64()).take(places),
                    pa.array(self.time[part]),
                    pa.array(self.score[part]),
                    pa.array(self.label[part]),
                ]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def read_scores(
    path: Path, splits: Splits, *, flight: str = "flight", time: str = "t", label: str = "label"
) -> ScoreTable:
    """A scores file: flight, t, score, label, and where known split, attack, magnitude, seed."""
    table = read_table(path)
    for name in (flight, time, "score", label):
        if name not in table.column_names:
            raise InputError(
                f"has no column {name!r} (it has {', '.join(table.column_names)}); "
                "expected flight, t, score, label and, where known, split, attack, magnitude, seed",
                file=str(path),
            )
    if table.num_rows == 0:
        raise InputError("has no rows", file=str(path))
    flights, code = flight_codes(table.column(flight))
    stamps = seconds(table.column(time), time, path)
    score = numbers(table.column("score"), "score", path)
    bad = np.flatnonzero(~np.isfinite(score))
    if bad.size:
        where = flights[int(code[bad[0]])]
        raise InputError(
            f"{bad.size} scores are no number, first of flight {where}", file=str(path), line=int(bad[0]) + 2
        )
    label_values = numbers(table.column(label), label, path)
    wrong = np.flatnonzero((label_values != 0) & (label_values != 1))
    if wrong.size:
        raise InputError(
            f"label is {label_values[wrong[0]]:g}, expected 0 or 1", file=str(path), line=int(wrong[0]) + 2
        )
    positive = label_values == 1
    attacks, attack_code = _words(table, "attack")
    magnitude = numbers(table.column("magnitude"), "magnitude", path) if "magnitude" in table.column_names else None
    seed = numbers(table.column("seed"), "seed", path) if "seed" in table.column_names else None
    names, split_code = _words(table, "split")
    del table
    attack_code = np.array(
        [-1 if name is None or name.lower() in _CLEAN else i for i, name in enumerate(attacks)] + [-1]
    )[attack_code]
    attacked = attack_code >= 0
    keys = [code, attack_code]
    if magnitude is not None:
        keys.append(np.unique(np.where(attacked, magnitude, np.nan), return_inverse=True)[1].ravel())
    if seed is not None:
        keys.append(np.unique(np.where(attacked, seed, np.nan), return_inverse=True)[1].ravel())
    joined = np.zeros(code.size, dtype=np.int64)
    for key in keys:
        joined = joined * (int(key.max()) + 2) + key + 1
    order = _stable(joined)
    if order is not None:
        joined, code, attack_code, positive = joined[order], code[order], attack_code[order], positive[order]
        stamps, score, split_code = stamps[order], score[order], split_code[order]
        magnitude = None if magnitude is None else magnitude[order]
        seed = None if seed is None else seed[order]
    begin = np.flatnonzero(np.append(True, joined[1:] != joined[:-1]))
    edges = np.append(begin, joined.size)
    assigned = {name: split for split in SPLITS for name in splits.of(split)}
    sequences, declared = [], set()
    any_positive = np.logical_or.reduceat(positive, begin)
    for index, first in enumerate(begin.tolist()):
        name = flights[int(code[first])]
        said = names[int(split_code[first])] if split_code[first] >= 0 else None
        if said is not None:
            declared.add((name, str(said)))
        attack = attacks[int(attack_code[first])] if attack_code[first] >= 0 else None
        if attack is None and any_positive[index]:
            attack = LABELLED
        sequences.append(
            Sequence(
                name,
                assigned.get(name, str(said) if said in SPLITS else "unassigned"),
                attack,
                None if attack is None or magnitude is None or np.isnan(magnitude[first]) else float(magnitude[first]),
                None if attack is None or seed is None or np.isnan(seed[first]) else int(seed[first]),
            )
        )
    return _sorted(ScoreTable(sequences, edges, stamps, score, positive, sorted(declared)))


def load(path: Path) -> ScoreTable:
    """The table that a run holds."""
    table = pq.read_table(path)
    same = np.zeros(table.num_rows, dtype=bool)
    for name in ("flight", "split", "attack"):
        same |= _changes(_codes(table, name))
    for name in ("magnitude", "seed"):
        values = np.asarray(table.column(name).cast(pa.float64()).fill_null(-1.0).to_numpy())
        same |= _changes(values)
    begin = np.flatnonzero(same)
    first = table.take(pa.array(begin)).to_pylist()
    sequences = [Sequence(row["flight"], row["split"], row["attack"], row["magnitude"], row["seed"]) for row in first]
    return ScoreTable(
        sequences,
        np.append(begin, table.num_rows),
        np.asarray(table.column("t").to_numpy()),
        np.asarray(table.column("score").to_numpy()),
        np.asarray(table.column("label").to_numpy()),
        [],
    )


def _codes(table: pa.Table, name: str) -> NDArray[np.int64]:
    column = table.column(name).unify_dictionaries().combine_chunks()
    return np.asarray(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    changed = np.ones(values.size, dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed


def _words(table: pa.Table, name: str) -> tuple[list[str | None], NDArray[np.int64]]:
    """A column of words as codes; all −1 where there is none."""
    if name not in table.column_names:
        return [], np.full(table.num_rows, -1, dtype=np.int64)
    column = pc.cast(table.column(name), pa.string()).dictionary_encode().combine_chunks()
    words = column.dictionary.to_pylist()
    return words, np.asarray(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _stable(keys: NDArray[np.int64]) -> NDArray[np.intp] | None:
    """The order that brings equal keys together, or None when they stand together and rising already."""
    return None if (keys[1:] >= keys[:-1]).all() else np.argsort(keys, kind="stable")


def _sorted(table: ScoreTable) -> ScoreTable:
    order = sorted(range(len(table.sequences)), key=lambda index: table.sequences[index].key())
    if order == list(range(len(order))):
        return table
    rows = np.concatenate([np.arange(table.edges[index], table.edges[index + 1]) for index in order])
    sizes = np.diff(table.edges)[order]
    return ScoreTable(
        [table.sequences[index] for index in order],
        np.concatenate([[0], np.cumsum(sizes)]),
        table.time[rows],
        table.score[rows],
        table.label[rows],
        table.declared,
    )
