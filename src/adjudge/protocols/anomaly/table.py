"""Scores by flown sequence: a flight, clean or under one attack of one size and seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.anomaly.flights import (
    Columns,
    Floats,
    flight_codes,
    mixed_condition,
    numbers,
    read_table,
    seconds,
)
from adjudge.protocols.anomaly.splits import SPLITS, Splits
from adjudge.protocols.common.columns import WORD

FILE = "scores.parquet"
_WORDS = ("model", "fold", "flight", "split", "attack", "condition")
_KEYS = ("magnitude", "seed", "variant")
_SCHEMA = pa.schema(
    [
        *((name, WORD) for name in _WORDS),
        ("magnitude", pa.float64()),
        ("seed", pa.int64()),
        ("variant", pa.int64()),
        ("t", pa.float64()),
        ("score", pa.float64()),
        ("label", pa.bool_()),
    ]
)
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
    variant: int = 0
    """Tells apart attacks of one size and seed that differ in another parameter."""
    condition: str | None = None

    @property
    def id(self) -> str:
        """The sample id: flight, attack, size, seed and variant."""
        if self.attack is None:
            return self.flight
        size = "" if self.magnitude is None else f":{self.magnitude:g}"
        seed = "" if self.seed is None else f"#{self.seed}"
        return f"{self.flight}|{self.attack}{size}{seed}" + (f"~{self.variant}" if self.variant else "")

    def key(self) -> tuple[Any, ...]:
        """The order of sequences in the run."""
        return (
            SPLITS.index(self.split) if self.split in SPLITS else 9,
            self.attack or "",
            -1.0 if self.magnitude is None else self.magnitude,
            -1 if self.seed is None else self.seed,
            self.variant,
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


class Part(NamedTuple):
    """A table of one detector, over the splits or over one fold of them."""

    model: str
    fold: str | None
    table: ScoreTable


def write(parts: Iterable[Part], path: Path) -> None:
    """scores.parquet: every row with its detector, fold and sequence."""
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd", compression_level=1) as writer:
        for part in parts:
            _write(writer, part)


def _write(writer: pq.ParquetWriter, part: Part) -> None:
    table, items = part.table, part.table.sequences
    code = np.repeat(np.arange(len(items), dtype=np.int32), np.diff(table.edges))
    words: dict[str, list[str | None]] = {
        "model": [part.model] * len(items),
        "fold": [part.fold] * len(items),
        **{name: [getattr(item, name) for item in items] for name in ("flight", "split", "attack", "condition")},
    }
    numbers_of = {name: pa.array([getattr(item, name) for item in items], _SCHEMA.field(name).type) for name in _KEYS}
    for start in range(0, code.size, _ROWS):
        rows = slice(start, min(start + _ROWS, code.size))
        places = pa.array(code[rows])
        arrays = []
        for values in words.values():
            distinct = sorted({value for value in values if value is not None})
            where = {value: place for place, value in enumerate(distinct)}
            indices = pa.array([None if value is None else where[value] for value in values], pa.int32())
            arrays.append(pa.DictionaryArray.from_arrays(indices.take(places), pa.array(distinct, pa.string())))
        arrays += [numbers_of[name].take(places) for name in _KEYS]
        arrays += [pa.array(table.time[rows]), pa.array(table.score[rows]), pa.array(table.label[rows])]
        writer.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))


def read_scores(path: Path, splits: Splits, columns: Columns) -> ScoreTable:
    """A scores file: flight, t, score, label, and where known split, attack, magnitude, seed."""
    flight, time, label, shift = columns.flight, columns.time, columns.label, columns.shift
    table = read_table(path)
    for name in (flight, time, "score", label, *([shift] if shift else [])):
        if name not in table.column_names:
            raise InputError(
                f"has no column {name!r} (it has {', '.join(table.column_names)}); "
                "expected flight, t, score, label and, where known, split, attack, magnitude, seed",
                file=str(path),
            )
    if table.num_rows == 0:
        raise InputError("has no rows", file=str(path))
    # Each column leaves the table once it is read, so that a long file is in memory hardly more than once.
    label_values = numbers(table.column(label), label, path)
    table = table.drop_columns([label])
    wrong = np.flatnonzero((label_values != 0) & (label_values != 1))
    if wrong.size:
        raise InputError(
            f"label is {label_values[wrong[0]]:g}, expected 0 or 1", file=str(path), line=int(wrong[0]) + 2
        )
    positive = label_values == 1
    del label_values
    flights, code = flight_codes(table.column(flight))
    score = numbers(table.column("score"), "score", path)
    bad = np.flatnonzero(~np.isfinite(score))
    if bad.size:
        text = f"{bad.size} scores are no number, first of flight {flights[int(code[bad[0]])]}"
        raise InputError(text, file=str(path), line=int(bad[0]) + 2)
    stamps = seconds(table.column(time), time, path)
    table = table.drop_columns(["score", time, flight])
    changed = _changes(code)
    attacks, attack_code = _words(table, "attack")
    clean = np.array([name is None or name.lower() in _CLEAN for name in attacks] + [True])
    changed |= _changes(attack_code)
    sizes: dict[str, Floats | None] = {}
    for name in ("magnitude", "seed"):
        if name in table.column_names:
            values = numbers(table.column(name), name, path)
            values[clean[attack_code]] = np.nan
            changed[1:] |= (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
            sizes[name] = values
            table = table.drop_columns([name])
    names, split_code = _words(table, "split")
    conditions, condition_code = _words(table, shift or "")
    del table
    mixed = np.flatnonzero(_changes(condition_code) & ~changed)
    if mixed.size:
        row = int(mixed[0])
        raise InputError(mixed_condition(flights[int(code[row])], str(shift)), file=str(path), line=row + 2)
    begin = np.flatnonzero(changed)
    first = {name: values[begin] for name, values in sizes.items() if values is not None}
    flight_of, attack_of, split_of, condition_of = (
        codes[begin] for codes in (code, attack_code, split_code, condition_code)
    )
    del sizes, code, attack_code, split_code, condition_code, changed
    assigned = {name: split for split in SPLITS for name in splits.of(split)}
    declared: set[tuple[str, str]] = set()
    segments = []
    for index in range(begin.size):
        name = flights[int(flight_of[index])]
        said = names[int(split_of[index])] if split_of[index] >= 0 else None
        if said is not None:
            declared.add((name, str(said)))
        attack = None if clean[attack_of[index]] else attacks[int(attack_of[index])]
        size, seed = (first[key][index] if key in first else np.nan for key in ("magnitude", "seed"))
        segments.append(
            Sequence(
                name,
                assigned.get(name, str(said) if said in SPLITS else "unassigned"),
                attack,
                None if np.isnan(size) else float(size),
                None if np.isnan(seed) else int(seed),
                condition=conditions[int(condition_of[index])] if condition_of[index] >= 0 else None,
            )
        )
    return _grouped(segments, np.append(begin, score.size), stamps, score, positive, sorted(declared))


def load(path: Path) -> list[Part]:
    """The tables that a run holds, in their order."""
    table = pq.read_table(path)
    changed = np.zeros(table.num_rows, dtype=bool)
    changed[:1] = True
    for name in _WORDS:
        changed |= _changes(_words(table, name)[1])
    outer = _changes(_words(table, "model")[1]) | _changes(_words(table, "fold")[1])
    for name in _KEYS:
        changed |= _changes(np.asarray(table.column(name).cast(pa.float64()).fill_null(-1.0).to_numpy()))
    begin = np.flatnonzero(changed)
    first = table.select([*_WORDS, *_KEYS]).take(pa.array(begin)).to_pylist()
    time, score, label = (np.asarray(table.column(name).to_numpy()) for name in ("t", "score", "label"))
    del table
    ends = [*np.flatnonzero(outer[begin])[1:].tolist(), begin.size] if begin.size else []
    edges = np.append(begin, time.size)
    parts, start = [], 0
    for end in ends:
        rows = slice(int(edges[start]), int(edges[end]))
        items = [
            Sequence(*(row[name] for name in ("flight", "split", "attack", *_KEYS, "condition")))
            for row in first[start:end]
        ]
        own = ScoreTable(items, edges[start : end + 1] - edges[start], time[rows], score[rows], label[rows], [])
        parts.append(Part(first[start]["model"], first[start]["fold"], own))
        start = end
    return parts


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    changed = np.ones(values.size, dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed


def _words(table: pa.Table, name: str) -> tuple[list[str | None], NDArray[np.int32]]:
    """A column of words as codes; all −1 where there is none."""
    if name not in table.column_names:
        return [], np.broadcast_to(np.int32(-1), table.num_rows)
    column = table.column(name)
    if not pa.types.is_dictionary(column.type):
        column = pc.cast(column, pa.string()).dictionary_encode()
    column = column.unify_dictionaries().combine_chunks()
    words = [None if word is None else str(word) for word in column.dictionary.to_pylist()]
    return words, np.asarray(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int32)


def _grouped(
    segments: list[Sequence],
    edges: NDArray[np.int64],
    time: Floats,
    score: Floats,
    label: NDArray[np.bool_],
    declared: list[tuple[str, str]],
) -> ScoreTable:
    """Stretches of rows brought together by sequence, in the order of the run; rows move only if they must."""
    order = sorted(range(len(segments)), key=lambda index: segments[index].key())
    if order != list(range(len(order))):
        rows = np.concatenate([np.arange(edges[index], edges[index + 1]) for index in order])
        time, score, label = time[rows], score[rows], label[rows]
    lengths = np.diff(edges)[order]
    begins = np.concatenate([[0], np.cumsum(lengths)])
    kept = [k for k, index in enumerate(order) if k == 0 or segments[index] != segments[order[k - 1]]]
    begin = begins[kept]
    marked = np.logical_or.reduceat(label, begin)
    sequences = [
        replace(segments[order[k]], attack=LABELLED)
        if segments[order[k]].attack is None and hit
        else segments[order[k]]
        for k, hit in zip(kept, marked.tolist(), strict=True)
    ]
    table = ScoreTable(sequences, np.append(begin, score.size), time, score, label, declared)
    if sequences != sorted(sequences, key=lambda item: item.key()):
        return _grouped(sequences, table.edges, time, score, label, declared)
    return table
