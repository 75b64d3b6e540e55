"""ScoreBatch: the columns of a batch of attempts, as rules and measures read them; and how records become batches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.common.columns import one_array
from adjudge.protocols.score.config import ScoreConfig
from adjudge.protocols.score.groups import Group
from adjudge.readers.logs.record import MISSING, NO_KIND, TYPES

BATCH_ROWS = 32_768
MOST_MODELS = 1000
_NUMBERED = re.compile(r"#\d+$")

Floats = NDArray[np.float64]
Codes = NDArray[np.int8]


@dataclass
class ScoreBatch:
    """Attempts as columns; NaN is no value. `checks` and `passed` are shaped (checks, n), passed −1 where nothing is said."""

    status: Codes
    score: Floats
    threshold: Floats
    checks: Floats
    passed: Codes
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


def rows_of(partition: Partition, config: ScoreConfig) -> Iterator[Rows]:
    """The attempts of one partition, batch by batch; an item is never cut."""
    groups = [Group.parse(text) for text in partition.groups]
    _refuse_many(groups)
    tables = [table for role, table in partition.tables.items() if role != "truth"]
    table = _filled(_plain(pa.concat_tables(tables, promote_options="default")), groups, partition)
    if not table.num_rows:
        return
    table = _ordered(table, partition.files)
    if "truth" in partition.tables:
        table = _labelled(table, partition.tables["truth"], partition.files)
    graded = {group.task for group in groups if group.graded}
    clustered = any(group.trial > 1 for group in groups)
    starts = np.flatnonzero(np.append(True, _changes(table.column("key"))))
    edges = _edges(starts, table.num_rows)
    for low, high in itertools.pairwise(edges):
        part = table.slice(low, high - low).combine_chunks()
        tasks = one_array(part.column("task"))
        bound = [
            (np.nan if name in graded else 1.0) if config.pass_at is None else config.pass_at
            for name in tasks.dictionary.to_pylist()
        ]
        yield Rows(part, np.array(bound)[tasks.indices.to_numpy()], clustered)


def sample_names(items: pa.ChunkedArray, trials: NDArray[np.int32]) -> pa.Array:
    """The name of every attempt: the item, with its trial where it is not the first or the item's own name looks so."""
    names = one_array(items)
    numbered = trials != 1
    if pc.any(pc.match_substring(names, "#")).as_py() and pc.any(pc.match_substring_regex(names, r"#\d+$")).as_py():
        numbered |= np.array([bool(_NUMBERED.search(name)) for name in names.to_pylist()])
    if not numbered.any():
        return names
    suffixed = pc.binary_join_element_wise(names, pa.array(trials).cast(pa.string()), "#")
    return pc.if_else(pa.array(numbered), suffixed, names)


def _refuse_many(groups: Sequence[Group]) -> None:
    models = {group.model for group in groups}
    if len(models) > MOST_MODELS:
        some = ", ".join(sorted(models)[:3])
        what = f"the input has {len(models):,} models ({some} …), more than {MOST_MODELS:,}"
        raise InputError(what, hint="Is it the right column? --column model=NAME says which one names the model.")


def _plain(table: pa.Table) -> pa.Table:
    """Every column as one kind: dictionaries for words with one dictionary, and columns that only some sources have."""
    for name in ("model", "task"):
        column = table.column(name).cast(pa.string()).combine_chunks().dictionary_encode()
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _filled(table: pa.Table, groups: Sequence[Group], partition: Partition) -> pa.Table:
    """With a row for every attempt that others of the task have and a model does not, in files without a list of samples."""
    wanted = {(group.model, group.task, group.trial) for group in groups if group.fill}
    if len(wanted) < 2 or partition.limited or not table.num_rows:
        return table
    keys = table.column("key").combine_chunks().dictionary_encode()
    tasks, models = (table.column(name).combine_chunks() for name in ("task", "model"))
    names, words, of_model = keys.dictionary.to_pylist(), tasks.dictionary.to_pylist(), models.dictionary.to_pylist()
    item_task = np.zeros(len(names), dtype=np.int64)
    item_task[keys.indices.to_numpy()] = tasks.indices.to_numpy()
    present: dict[tuple[str, str, int], set[int]] = {}
    for item, model, trial in zip(
        keys.indices.to_pylist(), models.indices.to_pylist(), table.column("trial").to_pylist(), strict=True
    ):
        present.setdefault((of_model[model], words[item_task[item]], trial), set()).add(item)
    rows: list[dict[str, Any]] = []
    for task_code, task in enumerate(words):
        items = set(np.flatnonzero(item_task == task_code).tolist())
        for model, of_task, trial in sorted(wanted):
            if of_task == task:
                rows += [
                    {"key": names[item], "model": model, "task": task, "trial": trial}
                    for item in items - present.get((model, task, trial), set())
                ]
    if not rows:
        return table
    absent = pa.table(
        {
            "key": pa.array([row["key"] for row in rows], pa.string()),
            "model": pa.array([row["model"] for row in rows], pa.string()),
            "task": pa.array([row["task"] for row in rows], pa.string()),
            "trial": pa.array([row["trial"] for row in rows], pa.int32()),
            "status": pa.array(np.full(len(rows), MISSING, dtype=np.int8)),
            "kind": pa.array(np.full(len(rows), NO_KIND, dtype=np.int8)),
            "named": pa.array(np.ones(len(rows), dtype=bool)),
        }
    )
    words_plain = table.set_column(table.column_names.index("model"), "model", models.cast(pa.string()))
    words_plain = words_plain.set_column(table.column_names.index("task"), "task", tasks.cast(pa.string()))
    return _plain(pa.concat_tables([words_plain, absent], promote_options="default"))


def _ordered(table: pa.Table, files: tuple[str, ...]) -> pa.Table:
    """By (item, model, trial); an attempt that stands twice is an InputError."""
    models = table.column("model").combine_chunks()
    rank = np.argsort(np.argsort(np.array(models.dictionary.to_pylist()))).astype(np.int32)[models.indices.to_numpy()]
    trials = table.column("trial").to_numpy()
    order = pc.sort_indices(
        pa.table({"key": table.column("key"), "rank": rank, "trial": trials}),
        sort_keys=[("key", "ascending"), ("rank", "ascending"), ("trial", "ascending")],
    )
    table = table.take(order)
    place = order.to_numpy()
    same = ~_changes(table.column("key")) & (np.diff(rank[place]) == 0) & (np.diff(trials[place]) == 0)
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


def _labelled(table: pa.Table, truth: pa.Table, files: tuple[str, ...]) -> pa.Table:
    """With the labels by people: those of a model and trial, or those that are about every one."""
    labels: dict[tuple[str, str | None, int | None], float] = {}
    for row in truth.select(["key", "model", "trial", "label", "file", "line"]).to_pylist():
        name = (row["key"], row["model"], row["trial"])
        if name in labels and labels[name] != row["label"]:
            what = f"id {row['key']!r} is labelled a second time, and otherwise"
            raise InputError(what, file=files[row["file"]], line=row["line"])
        labels[name] = row["label"]
    found = [
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
    return table.append_column("truth", pa.array(np.array(found), from_pandas=True))


def _changes(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Which rows differ from the one before, from the second row on."""
    array = one_array(column)
    flags = pc.not_equal(array.slice(1), array.slice(0, max(len(array) - 1, 0)))
    return np.asarray(flags.to_numpy(zero_copy_only=False), dtype=bool)


def _edges(starts: NDArray[np.intp], rows: int) -> list[int]:
    """Where batches begin: at items, about BATCH_ROWS apart."""
    edges = [0]
    for wanted in range(BATCH_ROWS, rows, BATCH_ROWS):
        edge = int(starts[min(int(np.searchsorted(starts, wanted)), starts.size - 1)])
        if edge > edges[-1]:
            edges.append(edge)
    return [*edges, rows]


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
