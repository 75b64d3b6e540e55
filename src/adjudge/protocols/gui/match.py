"""Steps and predictions of one partition, matched by (episode, step): which rows belong together, and in what order."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.gui.rows import MILESTONES, OUTCOMES, unknown_type
from adjudge.readers.gui.model import Milestone

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
_ABOUT = ("scenario", "goal", "platform", "screen", "milestones")


@dataclass
class Side:
    """The rows of one role: their table, the place of each row's episode among all names, and its step's rank."""

    table: pa.Table
    episode: Ints
    step: Ints

    def place(self, row: int, partition: Partition) -> tuple[str, int]:
        """File and line of a row."""
        return partition.files[self.table.column("file")[row].as_py()], self.table.column("line")[row].as_py()


@dataclass
class Matched:
    """`names` are all episodes in order. Row k of the result is step `told[k]` and prediction `said[k]`, −1 for none.

    `about` is, for each of the attributes of an episode, the recorded row that says it (−1 for none), by episode;
    `outcomes` the row of the outcome.
    """

    names: pa.StringArray
    recorded: Side
    predicted: Side
    told: Ints
    said: Ints
    episode: Ints
    about: dict[str, Ints]
    outcomes: Ints
    outcome_table: pa.Table
    milestones: dict[int, list[Milestone]]


def match(partition: Partition, types: tuple[str, ...], *, unmatched: str) -> Matched:
    """All rows of a partition, by episode; steps first, then predictions for steps that the episode does not have."""
    tables = [partition.tables["episodes"], partition.tables["predictions"]]
    tables.append(partition.tables.get("outcomes", OUTCOMES.empty_table()))
    names, codes = _codes(tables)
    if partition.limited:
        # Predictions and outcomes of episodes that a limit cut off are no concern of this run.
        known = _among(codes[0], len(names))
        for index in (1, 2):
            rows = np.flatnonzero(known[codes[index]])
            tables[index], codes[index] = tables[index].take(rows), codes[index][rows]
    steps = [_numbers(table, "step") for table in tables[:2]]
    ranks = np.unique(np.concatenate(steps), return_inverse=True)[1]
    recorded = Side(tables[0], codes[0], ranks[: len(steps[0])])
    predicted = Side(tables[1], codes[1], ranks[len(steps[0]) :])
    width = int(ranks.max(initial=0)) + 1
    _refuse_twice(recorded, names, partition)
    told_key = recorded.episode * width + recorded.step
    told = np.argsort(told_key, kind="stable")
    told_key = told_key[told]
    about = _about(recorded, told, names, partition)
    _refuse_repeated_step(recorded, told, told_key, names, partition)
    milestones = _milestones(recorded, told, about["milestones"], names, types, partition)
    said_key = predicted.episode * width + predicted.step
    said = np.argsort(said_key, kind="stable")
    said_key = said_key[said]
    _refuse_repeated_prediction(predicted, said, said_key, names, partition)
    outcomes = _outcomes(tables[2], codes[2], names, partition)
    there = _among(recorded.episode, len(names))
    if unmatched == "refuse":
        _refuse_unknown(predicted.table, predicted.episode, there, names, partition)
    _refuse_unknown(tables[2], codes[2], there, names, partition)
    at = np.searchsorted(told_key, said_key)
    hit = told_key[np.minimum(at, told.size - 1)] == said_key if told.size else np.zeros(said.size, dtype=np.bool_)
    answer = np.full(told.size, -1, dtype=np.int64)
    answer[at[hit]] = said[hit]
    extra = said[~hit]
    episode = recorded.episode[told]
    if extra.size:
        sort = np.concatenate([episode * 2, predicted.episode[extra] * 2 + 1])
        order = np.argsort(sort, kind="stable")
        moved = np.empty(told.size, dtype=np.int64)
        moved[order[order < told.size]] = np.flatnonzero(order < told.size)
        milestones = {int(moved[row]): wanted for row, wanted in milestones.items()}
        told = np.concatenate([told, np.full(extra.size, -1)])[order]
        answer = np.concatenate([answer, extra])[order]
        episode = sort[order] // 2
    return Matched(names, recorded, predicted, told, answer, episode, about, outcomes, tables[2], milestones)


def _codes(tables: list[pa.Table]) -> tuple[pa.StringArray, list[Ints]]:
    """All episode names in order, and for the rows of each table the place of their name."""
    keys = pa.concat_arrays([chunk for table in tables for chunk in table.column("key").chunks])
    encoded = keys.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    codes = rank[encoded.indices.to_numpy()]
    edges = np.cumsum([table.num_rows for table in tables])
    return encoded.dictionary.take(pa.array(order)), list(np.split(codes, edges[:-1]))


def _numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    found: NDArray[np.int64] = table.column(name).to_numpy()
    return found


def _among(codes: Ints, size: int) -> Mask:
    found = np.zeros(size, dtype=np.bool_)
    found[codes] = True
    return found


def _first(codes: Ints, size: int) -> Ints:
    """The first row of each code, −1 where there is none."""
    found = np.full(size, -1, dtype=np.int64)
    found[codes[::-1]] = np.arange(codes.size - 1, -1, -1)
    return found


def _refuse_twice(recorded: Side, names: pa.StringArray, partition: Partition) -> None:
    """An episode stands in one record, or in records of a single step each."""
    table, code = recorded.table, recorded.episode
    file, line = _numbers(table, "file"), _numbers(table, "line")
    first = _first(code, len(names))[code]
    whole = table.column("whole").to_numpy()
    again = (file != file[first]) | (line != line[first])
    mixed = again & (whole | whole[first])
    if not mixed.any():
        return
    both = again & whole & whole[first]
    if both.any():
        row = int(np.flatnonzero(both)[0])
        path, number = recorded.place(row, partition)
        other = ":".join(map(str, recorded.place(int(first[row]), partition)))
        name = names[int(code[row])].as_py()
        raise InputError(f"episode {name!r} stands here a second time; first at {other}", file=path, line=number)
    own = np.flatnonzero(code == code[np.flatnonzero(mixed)[0]])
    entire, single = (int(own[whole[own] == sort][0]) for sort in (True, False))
    path, number = recorded.place(single, partition)
    other = ":".join(map(str, recorded.place(entire, partition)))
    raise InputError(
        f"episode {names[int(code[single])].as_py()!r} stands whole at {other} and here as a single step",
        file=path,
        line=number,
    )


def _about(recorded: Side, told: Ints, names: pa.StringArray, partition: Partition) -> dict[str, Ints]:
    """The row that says each attribute of an episode; the rows of one episode must not disagree."""
    found = {}
    for name in _ABOUT:
        if name == "screen":
            rows = told[~np.isnan(_numbers(recorded.table, "width"))[told]]
        else:
            column = recorded.table.column(name).combine_chunks()
            if column.null_count == len(column):
                found[name] = np.full(len(names), -1, dtype=np.int64)
                continue
            rows = told[column.is_valid().to_numpy(zero_copy_only=False)[told]]
        says = _first(recorded.episode[rows], len(names))
        says[says >= 0] = rows[says[says >= 0]]
        found[name] = says
        if rows.size == np.count_nonzero(says >= 0):
            continue
        for row in rows[says[recorded.episode[rows]] != rows].tolist():
            own = int(recorded.episode[row])
            if _value(recorded.table, name, row) != _value(recorded.table, name, int(says[own])):
                path, line = recorded.place(row, partition)
                first = int(told[np.searchsorted(recorded.episode[told], own)])
                raise InputError(
                    f"episode {names[own].as_py()!r} has another {name} here than in its step "
                    f"{recorded.table.column('step')[first].as_py()}",
                    file=path,
                    line=line,
                )
    return found


def _value(table: pa.Table, name: str, row: int) -> object:
    if name == "screen":
        return table.column("width")[row].as_py(), table.column("height")[row].as_py()
    return table.column(name)[row].as_py()


def _refuse_repeated_step(recorded: Side, told: Ints, key: Ints, names: pa.StringArray, partition: Partition) -> None:
    twice = np.flatnonzero(key[1:] == key[:-1])
    if twice.size:
        row = int(told[twice[0]])
        own = int(recorded.episode[row])
        first = int(told[np.searchsorted(recorded.episode[told], own)])
        path, line = recorded.place(first, partition)
        step = recorded.table.column("step")[row].as_py()
        raise InputError(
            f"episode {names[own].as_py()!r} has step {step} twice; a step number stands once", file=path, line=line
        )


def _milestones(
    recorded: Side,
    told: Ints,
    says: Ints,
    names: pa.StringArray,
    types: tuple[str, ...],
    partition: Partition,
) -> dict[int, list[Milestone]]:
    """By place in `told`: the milestones of a step. They must be about steps that are there, of known types."""
    found: dict[int, list[Milestone]] = {}
    if not (says >= 0).any():
        return found
    steps = _numbers(recorded.table, "step")[told]
    edges = np.searchsorted(recorded.episode[told], np.arange(len(names) + 1))
    for own in np.flatnonzero(says >= 0).tolist():
        row = int(says[own])
        low, high = edges[own], edges[own + 1]
        for milestone in MILESTONES.decode(recorded.table.column("milestones")[row].as_py()):
            what = f"episode {names[own].as_py()!r}: milestone {milestone.name!r}"
            at = low + int(np.searchsorted(steps[low:high], milestone.step))
            if at == high or steps[at] != milestone.step:
                path, line = recorded.place(int(told[low]), partition)
                raise InputError(f"{what} is about step {milestone.step}, which is not there", file=path, line=line)
            if milestone.type not in types:
                raise unknown_type(milestone.type, f"{what}: type", types, *recorded.place(int(told[low]), partition))
            found.setdefault(int(at), []).append(milestone)
    return found


def _refuse_repeated_prediction(
    predicted: Side, said: Ints, key: Ints, names: pa.StringArray, partition: Partition
) -> None:
    twice = np.flatnonzero(key[1:] == key[:-1])
    if twice.size:
        first, row = int(said[twice[0]]), int(said[twice[0] + 1])
        path, line = predicted.place(row, partition)
        raise InputError(
            f"episode {names[int(predicted.episode[row])].as_py()!r}, step {predicted.table.column('step')[row].as_py()} "
            f"is predicted a second time; first at {':'.join(map(str, predicted.place(first, partition)))}",
            file=path,
            line=line,
        )


def _outcomes(table: pa.Table, codes: Ints, names: pa.StringArray, partition: Partition) -> Ints:
    """The outcome of each episode, −1 for none."""
    found = _first(codes, len(names))
    again = np.flatnonzero(found[codes] != np.arange(codes.size))
    if again.size:
        row = int(again[0])
        raise InputError(
            f"episode {names[int(codes[row])].as_py()!r} has a second outcome",
            file=partition.files[table.column("file")[row].as_py()],
            line=table.column("line")[row].as_py(),
        )
    return found


def _refuse_unknown(table: pa.Table, codes: Ints, there: Mask, names: pa.StringArray, partition: Partition) -> None:
    """A prediction or an outcome of an episode that was not recorded; the first of the first such episode."""
    unknown = codes[~there[codes]]
    if not unknown.size:
        return
    name = int(unknown.min())
    row = int(np.flatnonzero(codes == name)[0])
    known = names.filter(pa.array(there))[:5000].to_pylist()
    close = difflib.get_close_matches(names[name].as_py(), known, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else "(--unmatched report counts and lists such predictions instead.)"
    raise InputError(
        f"episode {names[name].as_py()!r} is not among the episodes.",
        file=partition.files[table.column("file")[row].as_py()],
        line=table.column("line")[row].as_py(),
        hint=hint,
    )
