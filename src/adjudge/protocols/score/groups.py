"""Item and group of a record: what is asked, and which model's trial of which task answered it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.common.columns import one_array
from adjudge.readers.logs.record import NUMBER, SCORED

_NAMES = msgspec.json.Decoder(tuple[str, str, int, bool, bool])
_SLASH = pa.scalar("/", pa.string())
_IN_KEY_OR_GROUP = ("id", "model", "task", "trial")


class Group(NamedTuple):
    """A model's trial of a task. `graded`: some of its scores are neither 0 nor 1.

    `fill`: its items that others have are missing, because nothing else says which were planned.
    """

    model: str
    task: str
    trial: int
    graded: bool
    fill: bool

    @classmethod
    def parse(cls, text: str) -> Group:
        """The group behind its name."""
        return cls(*_NAMES.decode(text))

    @property
    def name(self) -> str:
        """All of it as text, for the engine, which collects the names of groups over all input."""
        return msgspec.json.encode(self).decode()


def item_name(task: str, sample: str) -> str:
    """What is asked: a sample of a task."""
    return f"{task}/{sample}" if task else sample


def id_name(value: str | float) -> str:
    """An id as text: 7 and 7.0 are the same."""
    if isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def keyed(table: pa.Table, file: int, *, fill: bool) -> pa.Table:
    """Records with their item as key, their group, which says model, task and trial, and the file they come from."""
    n = table.num_rows
    if "named" not in table.column_names:
        table = table.append_column("named", pa.array(np.ones(n, dtype=bool)))
    model, task = (one_array(table.column(name)).dictionary_encode() for name in ("model", "task"))
    score, kind = table.column("score").to_numpy(), table.column("kind").to_numpy()
    graded = (table.column("status").to_numpy() == SCORED) & (kind == NUMBER) & (score != 0.0) & (score != 1.0)
    parts = [model.indices.to_numpy(), task.indices.to_numpy(), table.column("trial").to_numpy(), graded]
    pairs, place = _distinct(parts, n)
    models, tasks = model.dictionary.to_pylist(), task.dictionary.to_pylist()
    groups = [Group(models[m], tasks[t], trial, bool(g), fill).name for m, t, trial, g in pairs.tolist()]
    ids = one_array(table.column("id"))
    if tasks != [""]:
        text = pa.scalar(tasks[0], pa.string()) if len(tasks) == 1 else task.dictionary_decode()
        named = pc.binary_join_element_wise(text, ids, _SLASH)
        ids = pc.if_else(pc.equal(text, ""), ids, named) if "" in tasks else named
    return pa.table(
        {
            "key": ids,
            "group": pa.DictionaryArray.from_arrays(pa.array(place), pa.array(groups, pa.string())),
            "file": pa.array(np.full(n, file, dtype=np.int32)),
            **{name: table.column(name) for name in table.column_names if name not in _IN_KEY_OR_GROUP},
        }
    )


def ungrouped(table: pa.Table) -> pa.Table:
    """Records with the model, task and trial of their group as columns; words are numbered in their order."""
    column = one_array(table.column("group"))
    groups, place = [Group.parse(name) for name in column.dictionary.to_pylist()], column.indices.to_numpy()
    trials = np.array([group.trial for group in groups], dtype=np.int32)
    return (
        table.drop_columns(["group"])
        .append_column("model", _numbered([group.model for group in groups], place))
        .append_column("task", _numbered([group.task for group in groups], place))
        .append_column("trial", pa.array(trials[place]))
    )


def _numbered(words: list[str], place: NDArray[np.int32]) -> pa.DictionaryArray:
    distinct, code = np.unique(np.array(words, dtype=object), return_inverse=True)
    return pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)[place]), pa.array(distinct, pa.string()))


def _distinct(parts: list[NDArray[Any]], n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The different rows of some columns, and which of them each row is."""
    if n and all(bool((part == part[0]).all()) for part in parts):
        return np.array([[int(part[0]) for part in parts]]), np.zeros(n, dtype=np.int32)
    pairs, place = np.unique(np.column_stack(parts).astype(np.int64), axis=0, return_inverse=True)
    return pairs, place.reshape(-1).astype(np.int32)
