"""Steps and predictions of one partition, matched by (episode, step): which rows belong together, and in what order."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.common.columns import numbered
from adjudge.protocols.gui.rows import MILESTONES, OUTCOMES, Ints, unknown_type
from adjudge.readers.gui.model import Milestone

Mask = NDArray[np.bool_]
_ABOUT = {
    "scenario": ("scenario",),
    "goal": ("goal",),
    "platform": ("platform",),
    "screen": ("width", "height"),
    "milestones": ("milestones",),
}


@dataclass
class Side:
    """The rows of one role, and for each of them the place of its episode among `names`."""

    table: pa.Table
    episode: Ints
    names: pa.StringArray
    files: tuple[str, ...]

    def numbers(self, name: str) -> NDArray[Any]:
        """A column of numbers."""
        values: NDArray[Any] = self.table.column(name).to_numpy()
        return values

    def first(self) -> Ints:
        """The first row of every episode, −1 where it has none."""
        return _first(self.episode, len(self.names))

    def name(self, row: int) -> str:
        """The episode of a row, as messages show it."""
        return repr(self.names[int(self.episode[row])].as_py())

    def where(self, row: int) -> tuple[str, int]:
        """File and line of a row."""
        return self.files[self.table.column("file")[row].as_py()], self.table.column("line")[row].as_py()

    def wrong(self, row: int, text: str, hint: str | None = None) -> InputError:
        """An error about a row's episode; `text` follows its name."""
        path, line = self.where(row)
        return InputError(f"episode {self.name(row)}{text}", file=path, line=line, hint=hint)


@dataclass
class Matched:
    """Row k of the result is step `recorded_row[k]` and prediction `predicted_row[k]`, −1 for none, of `episode[k]`.

    `about` is, for each of the attributes of an episode, the recorded row that says it (−1 for none), by episode;
    `outcome_row` the row of its outcome. `milestones` are those of a row of the result.
    """

    recorded: Side
    predicted: Side
    outcomes: Side
    recorded_row: Ints
    predicted_row: Ints
    episode: Ints
    about: dict[str, Ints]
    outcome_row: Ints
    milestones: dict[int, list[Milestone]]


def match(partition: Partition, types: tuple[str, ...], *, unmatched: str) -> Matched:
    """All rows of a partition, by episode; steps first, then predictions for steps that the episode does not have."""
    recorded, predicted, outcomes = _sides(partition)
    steps = np.concatenate([recorded.numbers("step"), predicted.numbers("step")])
    rank = np.unique(steps, return_inverse=True)[1]
    key = np.concatenate([recorded.episode, predicted.episode]) * (int(rank.max(initial=0)) + 1) + rank
    recorded_key, predicted_key = np.split(key, [recorded.episode.size])
    order, prediction_order = np.argsort(recorded_key, kind="stable"), np.argsort(predicted_key, kind="stable")
    recorded_key, predicted_key = recorded_key[order], predicted_key[prediction_order]

    _refuse_twice(recorded)
    about = _about(recorded, order)
    _refuse_repeated_step(recorded, order, recorded_key)
    milestones = _milestones(recorded, order, about["milestones"], types)
    _refuse_repeated_prediction(predicted, prediction_order, predicted_key)
    outcome_row = _outcome_rows(outcomes)
    known = recorded.first() >= 0
    if unmatched == "refuse":
        _refuse_unknown(predicted, known)
    _refuse_unknown(outcomes, known)

    at = np.searchsorted(recorded_key, predicted_key)
    hit = np.append(recorded_key, -1)[at] == predicted_key
    answers = np.full(order.size, -1, dtype=np.int64)
    answers[at[hit]] = prediction_order[hit]
    extra = prediction_order[~hit]
    episode = np.concatenate([recorded.episode[order], predicted.episode[extra]])
    by_episode = np.argsort(episode, kind="stable")
    recorded_row = np.concatenate([order, np.full(extra.size, -1)])[by_episode]
    place = np.empty(order.size, dtype=np.int64)
    place[recorded_row[recorded_row >= 0]] = np.flatnonzero(recorded_row >= 0)
    return Matched(
        recorded,
        predicted,
        outcomes,
        recorded_row,
        np.concatenate([answers, extra])[by_episode],
        episode[by_episode],
        about,
        outcome_row,
        {int(place[row]): wanted for row, wanted in milestones.items()},
    )


def _sides(partition: Partition) -> tuple[Side, Side, Side]:
    """Episodes, predictions and outcomes, with the places of their episodes among all names in order."""
    tables = [partition.tables["episodes"], partition.tables["predictions"]]
    tables.append(partition.tables.get("outcomes", OUTCOMES.empty_table()))
    names, places = numbered([table.column("key") for table in tables])
    codes = np.split(places, np.cumsum([table.num_rows for table in tables[:2]]))
    recorded, *others = (Side(*each, names, partition.files) for each in zip(tables, codes, strict=True))
    if partition.limited:
        # Predictions and outcomes of episodes that a limit cut off are no concern of this run.
        known = recorded.first() >= 0
        for side in others:
            rows = np.flatnonzero(known[side.episode])
            side.table, side.episode = side.table.take(rows), side.episode[rows]
    return recorded, others[0], others[1]


def _first(codes: Ints, size: int) -> Ints:
    """The first place of each code, −1 where there is none."""
    places = np.full(size, -1, dtype=np.int64)
    places[codes[::-1]] = np.arange(codes.size - 1, -1, -1)
    return places


def _refuse_twice(recorded: Side) -> None:
    """An episode stands in one record, or in records of a single step each."""
    file, line, whole = (recorded.numbers(name) for name in ("file", "line", "whole"))
    first = recorded.first()[recorded.episode]
    again = (file != file[first]) | (line != line[first])
    both = np.flatnonzero(again & whole & whole[first])
    if both.size:
        row = int(both[0])
        raise recorded.wrong(row, f" stands here a second time; first at {_shown(recorded, int(first[row]))}")
    mixed = np.flatnonzero(again & (whole | whole[first]))
    if mixed.size:
        rows = np.flatnonzero(recorded.episode == recorded.episode[mixed[0]])
        entire, single = (int(rows[whole[rows] == kind][0]) for kind in (True, False))
        raise recorded.wrong(single, f" stands whole at {_shown(recorded, entire)} and here as a single step")


def _shown(side: Side, row: int) -> str:
    return ":".join(map(str, side.where(row)))


def _about(recorded: Side, order: Ints) -> dict[str, Ints]:
    """The row that says each attribute of an episode; the rows of one episode must not disagree."""
    about = {}
    for name, columns in _ABOUT.items():
        values = [recorded.table.column(column).combine_chunks() for column in columns]
        rows = order[values[0].is_valid().to_numpy(zero_copy_only=False)[order]]
        place = _first(recorded.episode[rows], len(recorded.names))
        about[name] = says = np.where(place < 0, -1, np.append(rows, -1)[place])
        later = rows[says[recorded.episode[rows]] != rows]
        if not later.size:
            continue
        first = says[recorded.episode[later]]
        unequal = [
            pc.not_equal(values_of_key.take(later), values_of_key.take(first)).to_numpy(zero_copy_only=False)
            for values_of_key in values
        ]
        different = later[np.logical_or.reduce(unequal)]
        if different.size:
            row = int(different[0])
            text = f" has another {name} here than in its step {_first_step(recorded, order, row)[1]}"
            raise recorded.wrong(row, text)
    return about


def _first_step(recorded: Side, order: Ints, row: int) -> tuple[int, int]:
    """The row of the first step of a row's episode, and the number of that step."""
    first = int(order[np.searchsorted(recorded.episode[order], recorded.episode[row])])
    return first, recorded.table.column("step")[first].as_py()


def _refuse_repeated_step(recorded: Side, order: Ints, key: Ints) -> None:
    twice = np.flatnonzero(key[1:] == key[:-1])
    if twice.size:
        row = int(order[twice[0]])
        step = recorded.table.column("step")[row].as_py()
        first = _first_step(recorded, order, row)[0]
        raise recorded.wrong(first, f" has step {step} twice; a step number stands once")


def _milestones(recorded: Side, order: Ints, says: Ints, types: tuple[str, ...]) -> dict[int, list[Milestone]]:
    """The milestones of recorded rows. They must be about steps that are there, of known types."""
    milestones: dict[int, list[Milestone]] = {}
    episodes = np.flatnonzero(says >= 0)
    if not episodes.size:
        return milestones
    steps = recorded.numbers("step")[order]
    edges = np.searchsorted(recorded.episode[order], np.arange(len(recorded.names) + 1))
    for episode in episodes.tolist():
        low, high = edges[episode], edges[episode + 1]
        rows = dict(zip(steps[low:high].tolist(), order[low:high].tolist(), strict=True))
        first = int(order[low])
        for milestone in MILESTONES.decode(recorded.table.column("milestones")[int(says[episode])].as_py()):
            what = f": milestone {milestone.name!r}"
            if milestone.step not in rows:
                raise recorded.wrong(first, f"{what} is about step {milestone.step}, which is not there")
            if milestone.type not in types:
                what = f"episode {recorded.name(first)}{what}: type"
                raise unknown_type(milestone.type, what, types, *recorded.where(first))
            milestones.setdefault(rows[milestone.step], []).append(milestone)
    return milestones


def _refuse_repeated_prediction(predicted: Side, order: Ints, key: Ints) -> None:
    twice = np.flatnonzero(key[1:] == key[:-1])
    if twice.size:
        first, row = (int(order[twice[0] + k]) for k in (0, 1))
        step = predicted.table.column("step")[row].as_py()
        raise predicted.wrong(row, f", step {step} is predicted a second time; first at {_shown(predicted, first)}")


def _outcome_rows(outcomes: Side) -> Ints:
    """The outcome of each episode, −1 for none."""
    rows = outcomes.first()
    again = np.flatnonzero(rows[outcomes.episode] != np.arange(outcomes.episode.size))
    if again.size:
        raise outcomes.wrong(int(again[0]), " has a second outcome")
    return rows


def _refuse_unknown(side: Side, known: Mask) -> None:
    """A prediction or an outcome of an episode that was not recorded; the first of the first such episode."""
    unknown = side.episode[~known[side.episode]]
    if unknown.size:
        row = int(np.flatnonzero(side.episode == unknown.min())[0])
        names = side.names.filter(pa.array(known))[:5000].to_pylist()
        close = difflib.get_close_matches(side.names[int(unknown.min())].as_py(), names, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else ""
        reported = "(--unmatched report counts and lists such predictions instead.)"
        raise side.wrong(row, " is not among the episodes.", hint or reported)
