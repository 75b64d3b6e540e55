"""The records of one partition: results and manifest matched by id, in the order of (id, group)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError, ProtocolViolation
from adjudge.protocols.base import Partition
from adjudge.protocols.common.columns import numbered
from adjudge.protocols.triage.config import TriageConfig

BATCH_ROWS = 32_768
MOST_ROWS, ROWS_A_GROUP = 1 << 18, 32
"""A batch of very many groups has some rows of each, since each group leaves counts in every batch."""
UNENCODED = frozenset({"key", "tools", "image", "rationale", "analysis", "raw_response"})
"""Columns of texts that are nearly all different."""
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Records as the columns of `rows.py`, each text column a dictionary, and `match`, their rows in the manifest.

    A record that is missing has its `key`, `group` and `match` alone.
    """

    table: pa.Table
    files: tuple[str, ...]
    manifest: pa.Table | None

    def place(self, row: int) -> tuple[str | None, int | None]:
        """File and line of a record."""
        return _place(self.table, self.files, row)

    def first(self, rows: NDArray[Any]) -> int:
        """Of these records the one that stands first in the input."""
        places = self.table.select(["file", "line"]).take(pa.array(rows))
        order = pc.sort_indices(places, sort_keys=[("file", "ascending"), ("line", "ascending")])
        return int(rows[order[0].as_py()])

    def error(self, row: int, what: str, hint: str | None = None) -> InputError:
        """An error that names the record's file and line."""
        file, line = self.place(row)
        return InputError(what, file=file, line=line, hint=hint)

    def manifest_place(self, row: int) -> tuple[str | None, int | None]:
        """File and line of a record's sample in the manifest."""
        return _place(self.manifest, self.files, self.table.column("match")[row].as_py())


def batches(partition: Partition, config: TriageConfig) -> Iterator[Rows]:
    """The partition's records in the order of (id, group), batch by batch. No sample is cut."""
    tables = [partition.tables[role(run)] for run in range(len(config.results))]
    rows = Rows(_encoded(pa.concat_tables(tables)), partition.files, None)
    if config.calibration:
        _refuse_overlap(rows, partition.tables["calibration"])
    if config.manifest:
        rows = _matched(replace(rows, manifest=_manifest(partition)), partition, ignore=config.unmatched == "ignore")
    rows, starts = _ordered(rows)
    edges = np.append(starts, rows.table.num_rows)
    start, size = 0, max(BATCH_ROWS, min(MOST_ROWS, ROWS_A_GROUP * len(partition.groups)))
    while start < rows.table.num_rows:
        end = int(edges[min(int(np.searchsorted(edges, start + size)), edges.size - 1)])
        yield replace(rows, table=rows.table.slice(start, end - start))
        start = end


def _matched(rows: Rows, partition: Partition, *, ignore: bool) -> Rows:
    """Refuse (or ignore) records whose id the manifest does not have; add a row for every record that is missing."""
    assert rows.manifest is not None  # noqa: S101 -- held by the caller, told to the type checker
    ids = rows.manifest.column("key")
    match = pc.index_in(rows.table.column("key"), value_set=ids)
    if match.null_count and not ignore:
        row = rows.first(np.flatnonzero(match.is_null()))
        raise rows.error(
            row,
            f"id {rows.table.column('key')[row].as_py()!r} is not in the manifest.",
            "(--unmatched ignore leaves such records out and counts them)",
        )
    table = rows.table.append_column("match", match)
    if match.null_count:
        table = table.filter(match.is_valid())
    if not partition.limited:
        table = pa.concat_tables([table, _missing(table, ids, partition.groups)], promote_options="default")
    return replace(rows, table=table.combine_chunks())


def role(run: int) -> str:
    """The input role of a run's files."""
    return "results" if run == 0 else f"results-{run + 1}"


def same_as_before(ids: pa.Array) -> NDArray[np.bool_]:
    """Of every id but the first, whether it is the one before it."""
    return np.asarray(pc.equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False), dtype=bool)


def _place(table: pa.Table, files: Sequence[str], row: int) -> tuple[str | None, int | None]:
    file, line = (table.column(name)[row].as_py() for name in ("file", "line"))
    return (None, None) if file is None else (files[file], line)


def _encoded(table: pa.Table) -> pa.Table:
    """The table in one piece, its texts as dictionaries of the words that stand in it; ids and long texts stay as they are."""
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        column = column.combine_chunks()
        words = pa.types.is_string(column.type) and name not in UNENCODED
        columns[name] = column.dictionary_encode() if words else column
    return pa.table(columns)


def _manifest(partition: Partition) -> pa.Table:
    """The manifest's samples; one that stands twice is an InputError."""
    table = _encoded(partition.tables["manifest"])
    ids = table.column("key")
    if len(pc.unique(ids)) < len(ids):
        rows = Rows(table, partition.files, None)
        seen: dict[str, int] = {}
        for row, name in enumerate(ids.to_pylist()):
            if name in seen:
                file, line = rows.place(seen[name])
                raise rows.error(row, f"id {name!r} stands in the manifest a second time; first at {file}:{line}")
            seen[name] = row
    return table


def _refuse_overlap(rows: Rows, calibration: pa.Table) -> None:
    """A sample in both the calibration and the results: the threshold would be chosen on the test."""
    ids = calibration.column("key").combine_chunks()
    shared = pc.index_in(rows.table.column("key"), value_set=ids).is_valid()
    if pc.any(shared).as_py():
        row = shared.index(True).as_py()
        name = rows.table.column("key")[row].as_py()
        file, line = _place(calibration, rows.files, pc.indices_nonzero(pc.equal(ids, name))[-1].as_py())
        where, at = rows.place(row)
        raise ProtocolViolation(
            f"{where}:{at}: id {name!r} also stands in the calibration, at {file}:{line}; "
            "a threshold is never chosen on the samples that it is tested on"
        )


def _missing(table: pa.Table, ids: pa.ChunkedArray, groups: Sequence[str]) -> pa.Table:
    """A row for every sample of the manifest and every group that has no record of it."""
    group = pc.index_in(table.column("group").cast(pa.string()), value_set=pa.array(groups, pa.string()))
    present = np.zeros((len(ids), len(groups)), dtype=bool)
    present[table.column("match").to_numpy(), group.to_numpy()] = True
    sample, group_of = (places.astype(np.int32) for places in np.nonzero(~present))
    names = pa.DictionaryArray.from_arrays(pa.array(group_of), pa.array(groups, pa.string()))
    return pa.table({"key": ids.take(pa.array(sample)), "group": names, "match": pa.array(sample)})


def _ordered(rows: Rows) -> tuple[Rows, Ints]:
    """The rows by (id, group), and where each sample starts; a record that stands twice is an InputError."""
    groups = rows.table.column("group").combine_chunks()
    names = groups.dictionary.to_pylist()
    _, samples = numbered([rows.table.column("key")])
    answers = samples * len(names) + np.argsort(np.argsort(names))[groups.indices.to_numpy()]
    order = np.argsort(answers)
    ordered = replace(rows, table=rows.table.take(pa.array(order)))
    samples, answers = samples[order], answers[order]
    twice = np.flatnonzero(np.diff(answers) == 0)
    if twice.size:
        both = np.arange(twice[0], twice[0] + 2)
        first = ordered.first(both)
        second = int(both.sum()) - first
        file, line = ordered.place(first)
        configuration, _, trial = ordered.table.column("group")[second].as_py().rpartition("|")
        raise ordered.error(
            second,
            f"id {ordered.table.column('key')[second].as_py()!r} of {configuration}, trial {trial}, stands here a "
            f"second time; first at {file}:{line}. Each sample is answered once a trial.",
        )
    return ordered, np.flatnonzero(np.append(True, np.diff(samples) != 0))
