"""The records of one partition: results and manifest matched by id, in the order of (id, group)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError, ProtocolViolation
from adjudge.protocols.base import Partition
from adjudge.protocols.triage.batch import TIMES
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.facts import NUMBERS, Facts, Group, Said, Setup, code_of, facts_of, unpacked

BATCH_ROWS = 32_768
Ints = NDArray[np.int64]
_NO_SLICES = "[]"
_SHORT = 32  # bytes of an id


@dataclass
class Manifest:
    """What the manifest says of the samples of a partition, and where."""

    ids: pa.StringArray
    label: NDArray[np.int8]
    file: NDArray[np.int32]
    line: Ints
    slices: Words | None

    @classmethod
    def of(cls, table: pa.Table, files: tuple[str, ...]) -> Manifest:
        """From its records; one that stands twice is an InputError."""
        ids = table.column("key").combine_chunks()
        file, line = (table.column(name).to_numpy() for name in ("file", "line"))
        if len(pc.unique(ids)) < len(ids):
            seen: dict[str, int] = {}
            for at, name in enumerate(ids.to_pylist()):
                if name in seen:
                    first = seen[name]
                    raise InputError(
                        f"id {name!r} stands in the manifest a second time; first at {files[file[first]]}:{line[first]}",
                        file=files[file[at]],
                        line=int(line[at]),
                    )
                seen[name] = at
        slices = Words.of(table.column("slices")) if "slices" in table.column_names else None
        return cls(ids, table.column("label").to_numpy(), file, line, slices)


@dataclass
class Words:
    """A column of texts that are few: the texts, and the place of each row's in them."""

    texts: list[str]
    codes: Ints

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Words:
        """From a column without nulls."""
        found = column.combine_chunks().dictionary_encode()
        return cls(found.dictionary.to_pylist(), found.indices.to_numpy().astype(np.int64))

    def add(self, texts: list[str], codes: Ints) -> None:
        """Further rows, with texts of their own."""
        self.codes = np.concatenate([self.codes, codes + len(self.texts)])
        self.texts = self.texts + texts

    def keep(self, rows: NDArray[Any]) -> None:
        """Some of the rows alone."""
        self.codes = self.codes[rows]


@dataclass
class Rows:
    """The records of a partition, each with the place of its facts; those from `received` on stand for missing ones."""

    files: tuple[str, ...]
    ids: pa.StringArray
    line: Ints
    numbers: NDArray[np.void]
    facts: list[Facts]
    fact: Ints
    slices: Words | None
    received: int
    manifest: Manifest | None = None
    match: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @cached_property
    def setups(self) -> list[Setup]:
        """How the records of each of the facts were made."""
        return [each.setup for each in self.facts]

    @cached_property
    def saids(self) -> list[Said]:
        """What the records of each of the facts say."""
        return [each.said or Said() for each in self.facts]

    @cached_property
    def groups(self) -> list[Group]:
        """The groups, by name."""
        return sorted({setup.group for setup in self.setups}, key=lambda group: group.name)

    @cached_property
    def group(self) -> NDArray[np.int32]:
        """The place of each record's group in `groups`."""
        places = {group: index for index, group in enumerate(self.groups)}
        return np.array([places[setup.group] for setup in self.setups], dtype=np.int32)[self.fact]

    def id(self, index: int) -> str:
        """The id of a record."""
        name: str = self.ids[index].as_py()
        return name

    def place(self, index: int) -> tuple[str | None, int | None]:
        """File and line of a record."""
        if index >= self.received:
            return None, None
        return self.files[self.numbers["file"][index]], int(self.line[index])

    def first(self, indices: NDArray[Any]) -> int:
        """The record of some that stands first in the input."""
        return int(min(indices.tolist(), key=lambda index: (self.numbers["file"][index], self.line[index])))

    def error(self, index: int, what: str, hint: str | None = None) -> InputError:
        """An error that names the record's file and line."""
        file, line = self.place(index)
        return InputError(what, file=file, line=line, hint=hint)


class TriageReader:
    """Turns the tables of one partition into rows in order."""

    def __init__(self, config: TriageConfig) -> None:
        self.config = config

    def batches(self, partition: Partition) -> Iterator[tuple[Rows, Ints]]:
        """The partition's rows, and batch by batch which of them in the order of (id, group); no sample is cut."""
        rows = self._rows(partition)
        self._refuse_overlap(rows, partition)
        if self.config.manifest:
            rows.manifest = Manifest.of(partition.tables["manifest"], partition.files)
            self._match(rows, rows.manifest, partition)
        if not len(rows.ids):
            return
        order, starts = _order(rows)
        edges = np.append(starts, order.size)
        start = 0
        while start < order.size:
            end = int(edges[min(int(np.searchsorted(edges, start + BATCH_ROWS)), edges.size - 1)])
            yield rows, order[start:end]
            start = end

    def _rows(self, partition: Partition) -> Rows:
        tables = [partition.tables[role(index)] for index in range(len(self.config.results))]
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        numbers = unpacked(table.column("numbers"))
        texts = (*partition.groups, *pc.unique(table.column("facts")).drop_null().to_pylist())
        facts, fact = _facts(texts, numbers["facts"])
        return Rows(
            partition.files,
            table.column("key").combine_chunks(),
            table.column("line").to_numpy(),
            numbers,
            facts,
            fact,
            Words.of(table.column("slices")) if self.config.slices else None,
            table.num_rows,
        )

    def _refuse_overlap(self, rows: Rows, partition: Partition) -> None:
        """A sample in both the calibration and the results: the threshold would be chosen on the test."""
        if not self.config.calibration:
            return
        chosen = partition.tables["calibration"]
        ids = chosen.column("key").combine_chunks()
        shared = pc.indices_nonzero(pc.is_in(rows.ids, value_set=ids)).to_pylist()
        if shared:
            name = rows.id(shared[0])
            there = pc.indices_nonzero(pc.equal(ids, name)).to_pylist()[-1]
            file, line = (chosen.column(column)[there].as_py() for column in ("file", "line"))
            where, at = rows.place(shared[0])
            raise ProtocolViolation(
                f"{where}:{at}: id {name!r} also stands in the calibration, at {partition.files[file]}:{line}; "
                "a threshold is never chosen on the samples that it is tested on"
            )

    def _match(self, rows: Rows, manifest: Manifest, partition: Partition) -> None:
        """Refuse (or drop) records whose id the manifest does not have; add a row for every record that is missing."""
        rows.match = pc.index_in(rows.ids, value_set=manifest.ids).fill_null(-1).to_numpy().astype(np.int64)
        unmatched = np.flatnonzero(rows.match < 0)
        if unmatched.size and self.config.unmatched == "refuse":
            index = rows.first(unmatched)
            raise rows.error(
                index,
                f"id {rows.id(index)!r} is not in the manifest.",
                "(--unmatched ignore leaves such records out and counts them)",
            )
        if unmatched.size:
            _keep(rows, np.flatnonzero(rows.match >= 0))
        if not partition.limited:
            _add_missing(rows, manifest, sorted({each.setup.group for each in facts_of(partition.groups)}))


def role(run: int) -> str:
    """The input role of a run's files."""
    return "results" if run == 0 else f"results-{run + 1}"


def _facts(texts: Sequence[str], codes: NDArray[np.uint64]) -> tuple[list[Facts], Ints]:
    """The facts that some records have, and the place of each record's in them."""
    known = {code_of(text): text for text in texts}
    order = sorted(known)
    place = np.searchsorted(np.array(order, dtype=np.uint64), codes)
    used = np.bincount(place, minlength=len(order)) > 0
    return facts_of(known[order[at]] for at in np.flatnonzero(used).tolist()), (np.cumsum(used) - 1)[place]


def by_id(ids: pa.StringArray, group: NDArray[np.int32]) -> Ints:
    """Row numbers in the order of (id, group), ids by their bytes. Short ids are compared as numbers of eight bytes."""
    edges = np.frombuffer(ids.buffers()[1], dtype=np.int32)[ids.offset : ids.offset + len(ids) + 1]
    text = np.frombuffer(ids.buffers()[2] or b"", dtype=np.uint8)[edges[0] : edges[-1]]
    sizes = np.diff(edges)
    width = int(sizes.max())
    if width > _SHORT or not text.all():
        table = pa.table({"id": ids, "group": group})
        found = pc.sort_indices(table, sort_keys=[("id", "ascending"), ("group", "ascending")])
        return np.asarray(found.to_numpy(), dtype=np.int64)
    letters = np.zeros((len(ids), width // 8 * 8 + 8), dtype=np.uint8)
    if int(sizes.min()) == width > 0:
        letters[:, :width] = text.reshape(-1, width)
    else:
        letters[np.arange(letters.shape[1]) < sizes[:, None]] = text
    words = letters.view(">u8").astype(np.uint64).T
    keys = [group, *words[::-1]]
    return np.lexsort([key for key in keys if (key != key[0]).any()] or [group])


def same_as_before(ids: pa.Array) -> NDArray[np.bool_]:
    """Of every id but the first, whether it is the one before it."""
    return np.asarray(pc.equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False), dtype=bool)


def _keep(rows: Rows, kept: NDArray[Any]) -> None:
    rows.ids, rows.line, rows.numbers = rows.ids.take(pa.array(kept)), rows.line[kept], rows.numbers[kept]
    rows.match, rows.received = rows.match[kept], kept.size
    rows.fact = rows.fact[kept]
    if rows.slices is not None:
        rows.slices.keep(kept)


def _add_missing(rows: Rows, manifest: Manifest, groups: list[Group]) -> None:
    places = {group: index for index, group in enumerate(groups)}
    of_facts = np.array([places[each.setup.group] for each in rows.facts], dtype=np.int64)
    present = np.zeros((len(manifest.ids), len(groups)), dtype=bool)
    present[rows.match, of_facts[rows.fact]] = True
    sample, group = np.nonzero(~present)
    if not sample.size:
        return
    numbers = np.zeros(sample.size, dtype=NUMBERS)
    for name in ("confidence", *TIMES):
        numbers[name] = np.nan
    rows.ids = pa.concat_arrays([rows.ids, manifest.ids.take(pa.array(sample))])
    rows.line = np.concatenate([rows.line, np.zeros(sample.size, dtype=np.int64)])
    rows.numbers = np.concatenate([rows.numbers, numbers])
    rows.match = np.concatenate([rows.match, sample])
    rows.fact = np.concatenate([rows.fact, group + len(rows.facts)])
    rows.facts = rows.facts + [Facts(Setup(*each)) for each in groups]
    if rows.slices is not None:
        rows.slices.add([_NO_SLICES], np.zeros(sample.size, dtype=np.int64))


def _order(rows: Rows) -> tuple[Ints, Ints]:
    """Row numbers by (id, group), and where each sample starts; a record that stands twice is an InputError."""
    order = by_id(rows.ids, rows.group)
    same = same_as_before(rows.ids.take(pa.array(order)))
    group = rows.group[order]
    twice = np.flatnonzero(same & (group[1:] == group[:-1]))
    if twice.size:
        both = order[twice[0] : twice[0] + 2]
        one = rows.first(both)
        two = int(both.sum()) - one
        there, at = rows.place(one)
        of = rows.groups[rows.group[one]]
        raise rows.error(
            two,
            f"id {rows.id(two)!r} of {of.configuration}, trial {of.trial}, stands here a second time; "
            f"first at {there}:{at}. Each sample is answered once a trial.",
        )
    return order, np.append(0, np.flatnonzero(~same) + 1)
