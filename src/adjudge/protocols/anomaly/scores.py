"""A scores file of a detector that ran elsewhere: its rows, brought together by flown sequence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly import rows as reading
from adjudge.protocols.anomaly.batch import LEFT_OUT, Scored, ScoreTable, Sequence, changes
from adjudge.protocols.anomaly.rows import SPLITS, DataOptions, Splits

_CLEAN = frozenset({"", "none", "clean", "normal", "nan", "null"})
_EXPECTED = "expected flight, t, score, label and, where known, split, attack, magnitude, seed"


_Stretch = tuple[Sequence, slice]
"""Rows that stand together in the file and belong to one sequence."""


def read_scores(path: Path, splits: Splits, options: DataOptions) -> tuple[ScoreTable, list[str]]:
    """A scores file: flight, t, score, label, and where known split, attack, magnitude, seed; and notes."""
    table, notes = reading.read_table(path, options.rename)
    for name in (*options.placing, "score", options.label_column):
        reading.need_column(table, name, path, f"{_EXPECTED}; --column OURS=THEIRS names others.")
    # Each column leaves the table once it is read, so that a long file is in memory hardly more than once.
    label = reading.labels(table.column(options.label_column), options.label_column, path)
    flights, code = reading.flight_codes(table.column(options.flight_column), options.flight_column, path)
    score = reading.numbers(table.column("score"), "score", path)
    bad = np.flatnonzero(~np.isfinite(score))
    if bad.size:
        text = f"{bad.size} scores are no number, first of flight {flights[int(code[bad[0]])]}"
        raise InputError(text, file=str(path), line=int(bad[0]) + 2)
    time = reading.seconds(table.column(options.time_column), options, path, code, notes)
    table = table.drop_columns(["score", options.time_column, options.flight_column, options.label_column])
    changed = changes(code)
    attacks, attack_code = _words(table, "attack", path)
    clean = np.array([name is None or name.lower() in _CLEAN for name in attacks] + [True])
    changed |= changes(attack_code)
    sizes: dict[str, Floats] = {}
    for name in {"magnitude", "seed"} & set(table.column_names):
        values = reading.numbers(table.column(name), name, path)
        values[clean[attack_code]] = np.nan
        changed |= changes(np.nan_to_num(values, nan=-np.inf))
        sizes[name] = values
    names, split_code = _words(table, "split", path)
    conditions, condition_code = _words(table, options.shift_column or "", path)
    del table
    mixed = np.flatnonzero(changes(condition_code) & ~changed)
    if mixed.size:
        row = int(mixed[0])
        text = reading.mixed_condition(flights[int(code[row])], str(options.shift_column))
        raise InputError(text, file=str(path), line=row + 2)
    assigned = {name: split for split in SPLITS for name in splits.of(split)}
    declared: set[tuple[str, str]] = set()
    stretches: list[_Stretch] = []
    begin = np.flatnonzero(changed)
    for start, end in zip(begin.tolist(), [*begin[1:].tolist(), score.size], strict=True):
        flight = flights[int(code[start])]
        declared_split = names[split_code[start]] if split_code[start] >= 0 else None
        if declared_split is not None:
            declared.add((flight, declared_split))
        size, seed = (sizes[key][start] if key in sizes else np.nan for key in ("magnitude", "seed"))
        item = Sequence(
            flight,
            assigned.get(flight, declared_split if declared_split in SPLITS else "unassigned"),
            None if clean[attack_code[start]] else attacks[int(attack_code[start])],
            None if np.isnan(size) else float(size),
            None if np.isnan(seed) else int(seed),
            condition=conditions[int(condition_code[start])] if condition_code[start] >= 0 else None,
        )
        stretches.append((item, slice(start, end)))
    scores = ScoreTable.of(_sequences(stretches, time, score, label, notes))
    scores.declared = sorted(declared)
    return scores, notes


def _sequences(
    stretches: list[_Stretch], time: Floats, score: Floats, label: NDArray[np.int8], notes: list[str]
) -> Iterator[Scored]:
    """The rows of every sequence.

    An attack that is named on attacked rows alone belongs to the flight whose other rows name none: they are one
    sequence. Of several such attacks on one flight each is judged by itself, the rows of the others left out.
    """
    by_flight: dict[str, dict[Sequence, list[slice]]] = {}
    for item, stretch in stretches:
        by_flight.setdefault(item.flight, {}).setdefault(item, []).append(stretch)
    joined = 0
    for groups in by_flight.values():
        named = [item for item in groups if item.attack is not None]
        rows = {item: np.concatenate([np.arange(s.start, s.stop) for s in parts]) for item, parts in groups.items()}
        if _one_timeline(rows, named, time, label):
            joined += 1
            every = np.sort(np.concatenate([*rows.values()]))
            for item in named:
                truth = label[every]
                for other in (name for name in named if name != item):
                    truth[np.isin(every, rows[other])] = LEFT_OUT
                yield Scored(item, time[every], score[every], truth)
            continue
        for item, chosen in rows.items():
            yield Scored(item, time[chosen], score[chosen], label[chosen])
    if joined:
        notes.append(f"{joined} flights name their attack on attacked rows alone; each was read as one sequence")


def _one_timeline(
    rows: dict[Sequence, NDArray[np.int64]], named: list[Sequence], time: Floats, label: NDArray[np.int8]
) -> bool:
    """Whether the rows without an attack are the rest of the flight that is attacked, not a clean copy of it."""
    others = [item for item in rows if item.attack is None]
    if not named or len(others) != 1 or not all(label[rows[item]].all() for item in named):
        return False
    times = np.concatenate([time[chosen] for chosen in rows.values()])
    return bool(np.unique(times).size == times.size)


def _words(table: pa.Table, name: str, path: Path) -> tuple[list[str | None], NDArray[np.int32]]:
    """A column of words as codes; all −1 where there is none."""
    if name not in table.column_names:
        return [], np.broadcast_to(np.int32(-1), table.num_rows)
    column = reading.words_of(table.column(name), name, path).unify_dictionaries().combine_chunks()
    words = [None if word is None else str(word) for word in column.dictionary.to_pylist()]
    return words, np.asarray(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int32)
