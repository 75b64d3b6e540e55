"""ScoreBatch: the columns of a batch of attempts, as rules and measures read them; and how records become batches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.common.columns import numbered, one_array
from adjudge.protocols.score.config import ScoreConfig
from adjudge.protocols.score.groups import Group, ungrouped
from adjudge.provenance.canonical import bytes_of
from adjudge.readers.logs.record import MISSING, NO_KIND, TYPES

_OF_ITEM = ("target", "cluster", "input", "input_hash", "meta")
_NUMBERED = re.compile(r"#\d+$")

Floats = NDArray[np.float64]
Codes = NDArray[np.int8]


@dataclass
class ScoreBatch:
    """Attempts as columns; NaN is no value. `checks` and `passed` are shaped (checks, n).

    `success` is the log's own verdict, which goes before the threshold; −1 there and in `passed` where nothing is said.
    """

    status: Codes
    score: Floats
    threshold: Floats
    checks: Floats
    passed: Codes
    success: Codes
    errors: Mapping[int, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Attempts in the batch."""
        return int(self.status.shape[0])


class Rows(NamedTuple):
    """Some attempts in the order of (item, model, trial), with the columns of the records and what follows from all input."""

    table: pa.Table
    thresholds: Floats
    clustered: bool


def rows_of(partition: Partition, config: ScoreConfig) -> Rows | None:
    """The attempts of one partition, together: an item is never cut, nor what is digested of the data set."""
    groups = [Group.parse(text) for text in partition.groups]
    tables = [table for role, table in partition.tables.items() if role != "truth"]
    table = ungrouped(_filled(pa.concat_tables(tables, promote_options="default"), groups, partition))
    if not table.num_rows:
        return None
    table = _of_their_items(_ordered(table, partition.files).combine_chunks())
    if "truth" in partition.tables:
        table = _labelled(table, partition.tables["truth"], partition.files)
    graded = {group.task for group in groups if group.graded}
    tasks = one_array(table.column("task"))
    bound = [
        (np.nan if name in graded else 1.0) if config.pass_at is None else config.pass_at
        for name in tasks.dictionary.to_pylist()
    ]
    clustered = any(group.trial > 1 for group in groups)
    return Rows(table, np.array(bound)[tasks.indices.to_numpy()], clustered)


def sample_names(items: pa.ChunkedArray, trials: NDArray[np.int32]) -> pa.Array:
    """The name of every attempt: the item, with its trial where it is not the first or the item's own name looks so."""
    names = one_array(items)
    numbered = trials != 1
    if b"#" in bytes(bytes_of(names)[1]):
        numbered |= np.array([bool(_NUMBERED.search(name)) for name in names.to_pylist()])
    if not numbered.any():
        return names
    suffixed = pc.binary_join_element_wise(names, pa.array(trials).cast(pa.string()), "#")
    return pc.if_else(pa.array(numbered), suffixed, names)


def _filled(table: pa.Table, groups: Sequence[Group], partition: Partition) -> pa.Table:
    """With a row for every attempt that others of the task have and a model does not, in files without a list of samples."""
    wanted = {(group.model, group.task, group.trial): group.name for group in groups if group.fill}
    if len(wanted) < 2 or partition.limited or not table.num_rows:
        return table
    keys, column = (one_array(table.column(name)) for name in ("key", "group"))
    items = keys.dictionary_encode()
    item, code = items.indices.to_numpy(), column.indices.to_numpy()
    of_code = [Group.parse(name) for name in column.dictionary.to_pylist()]
    codes_of: dict[tuple[str, str, int], list[int]] = {}
    for place, group in enumerate(of_code):
        codes_of.setdefault((group.model, group.task, group.trial), []).append(place)
    tasks = {task: place for place, task in enumerate(dict.fromkeys(task for _, task, _ in wanted))}
    task_of_item = np.empty(len(items.dictionary), dtype=np.int32)
    task_of_item[item] = np.array([tasks.get(group.task, -1) for group in of_code])[code]
    absent = []
    for name, text in sorted(wanted.items()):
        missing = task_of_item == tasks[name[1]]
        missing[item[np.isin(code, codes_of.get(name, []))]] = False
        absent.append(_missing(items.dictionary.filter(pa.array(missing)), text))
    slot = np.empty(len(items.dictionary), dtype=np.uint8)
    slot[item] = table.column("slot").to_numpy()
    rows = pa.concat_tables(absent)
    slots = pa.array(slot[pc.index_in(rows.column("key"), items.dictionary).to_numpy()])
    return pa.concat_tables([table, rows.append_column("slot", slots)], promote_options="default")


def _missing(keys: pa.Array, group: str) -> pa.Table:
    """Rows for attempts of a group that no file has."""
    n = len(keys)
    return pa.table(
        {
            "key": keys,
            "group": pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), pa.array([group])),
            "status": pa.array(np.full(n, MISSING, dtype=np.int8)),
            "kind": pa.array(np.full(n, NO_KIND, dtype=np.int8)),
            "named": pa.array(np.ones(n, dtype=bool)),
        }
    )


def _ordered(table: pa.Table, files: tuple[str, ...]) -> pa.Table:
    """By (item, model, trial); an attempt that stands twice is an InputError."""
    _, items = numbered([table.column("key")])
    rank, trials = one_array(table.column("model")).indices.to_numpy(), table.column("trial").to_numpy()
    attempts = (items * (int(rank.max()) + 1) + rank) * (int(trials.max()) + 1) + trials
    order = np.argsort(attempts)
    table = table.take(pa.array(order))
    same = np.diff(attempts[order]) == 0
    if same.any():
        row = int(np.argmax(same))
        first, second = table.slice(row, 2).select(["key", "model", "trial", "file", "line"]).to_pylist()
        where = [(files[one["file"]], one["line"]) for one in (first, second)]
        (file, line), (other, other_line) = sorted(where)
        raise InputError(
            f"sample {first['key']!r} of {first['model']}, trial {first['trial']}, stands here a second time; "
            f"first at {file}:{line}.",
            file=other,
            line=other_line,
            hint="Several attempts have a `trial` each; logs of one model are held against each other by adjudge compare.",
        )
    return table


def _of_their_items(table: pa.Table) -> pa.Table:
    """With what belongs to an item also where an attempt at it is missing, as the first record of the item has it."""
    absent = table.column("status").to_numpy() == MISSING
    if not absent.any() or absent.all():
        return table
    _, items = numbered([table.column("key")])
    present = np.flatnonzero(~absent)
    place = np.minimum(np.searchsorted(items[present], items), present.size - 1)  # rows stand in the order of items
    source = np.where(absent, present[place], np.arange(items.size))
    rows = pa.array(source, mask=items[source] != items)
    for name in _OF_ITEM:
        if name in table.column_names:
            column = table.column(name)
            table = table.set_column(
                table.column_names.index(name), name, pc.coalesce(one_array(column), one_array(column).take(rows))
            )
    return table


def _labelled(table: pa.Table, truth: pa.Table, files: tuple[str, ...]) -> pa.Table:
    """With the labels by people: those of a model and trial, or those that are about every one."""
    labels: dict[tuple[str, str | None, int | None], float] = {}
    for row in truth.select(["key", "model", "trial", "label", "file", "line"]).to_pylist():
        name = (row["key"], row["model"], row["trial"])
        if name in labels and labels[name] != row["label"]:
            what = f"id {row['key']!r} is labelled a second time, and otherwise"
            raise InputError(what, file=files[row["file"]], line=row["line"])
        labels[name] = row["label"]
    truths = [
        next(
            (
                labels[name]
                for name in ((key, model, trial), (key, model, None), (key, None, trial), (key, None, None))
                if name in labels
            ),
            np.nan,
        )
        for key, model, trial in zip(
            table.column("key").to_pylist(),
            table.column("model").to_pylist(),
            table.column("trial").to_pylist(),
            strict=True,
        )
    ]
    return table.append_column("truth", pa.array(np.array(truths), from_pandas=True))


def column_of(table: pa.Table, name: str) -> pa.Array:
    """A column of the records, empty where no source has it."""
    if name in table.column_names:
        return one_array(table.column(name))
    kind = (
        pa.bool_()
        if name.endswith("_passed")
        else pa.float64()
        if name.startswith("check_")
        else TYPES.get(name, pa.float64())
    )
    return pa.nulls(table.num_rows, kind)
