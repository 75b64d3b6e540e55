"""Reading triage inputs: results and manifest of one partition, matched by id, in the order of (id, group)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError, ProtocolViolation
from adjudge.protocols.base import Partition
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.words import check_label
from adjudge.readers.triage_results import NO_RAW, Result, id_of, key_of, manifest_row, result

BATCH_ROWS = 16_384


class Group(NamedTuple):
    """What varies between the records of one sample: the configuration (run, model, mode) and the trial."""

    configuration: str
    trial: int

    @property
    def name(self) -> str:
        """The group as it stands in the column `model`."""
        return f"{self.configuration}|{self.trial}"

    @classmethod
    def parse(cls, name: str) -> Group:
        """The group of a name."""
        configuration, _, trial = name.rpartition("|")
        return cls(configuration, int(trial))


class Entry(NamedTuple):
    """What the manifest says of a sample, and where."""

    label: str | None
    meta: msgspec.Raw
    place: tuple[int, int]


class Lookup(dict[Any, Any]):
    """A table that is filled as it is asked."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Any) -> Any:
        value = self[key] = self._make(key)
        return value


@dataclass
class Rows:
    """The records of a partition; those from `received` on stand for samples without a record."""

    files: tuple[str, ...]
    results: list[Result] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    file: list[int] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    unreadable: dict[int, str] = field(default_factory=dict)
    received: int = 0
    manifest: dict[str, Entry] | None = None

    def place(self, index: int) -> tuple[str | None, int | None]:
        """File and line of a record."""
        return (self.files[self.file[index]], self.line[index]) if index < self.received else (None, None)

    def error(self, index: int, what: str, hint: str | None = None) -> InputError:
        """An error that names the record's file and line."""
        file, line = self.place(index)
        return InputError(what, file=file, line=line, hint=hint)


class TriageReader:
    """Turns one partition into rows in order; the tables that do not change are made once."""

    def __init__(self, config: TriageConfig) -> None:
        self.config, self.classes = config, config.classes()
        self.runs = config.run_names()
        self._groups = [Lookup(self._namer(run)) for run in self.runs]

    def _namer(self, run: str | None) -> Callable[[tuple[str | None, bool | None, int]], Group]:
        def name(key: tuple[str | None, bool | None, int]) -> Group:
            model, tools, trial = key
            mode = self.config.mode if tools is None else "tools" if tools else "no-tools"
            parts = (model or self.config.model, mode)
            return Group("|".join(parts if run is None else (run, *parts)), trial)

        return name

    def key(self, run: int) -> Callable[[str, int, bytes], tuple[str, str | None]]:
        """How the split reads the key of a record of one run; the group is only asked where a manifest is."""
        groups, grouped = self._groups[run], bool(self.config.manifest)

        def read(path: str, line: int, text: bytes) -> tuple[str, str | None]:
            if not grouped:
                return id_of(text), None
            try:
                name, rest = key_of(text)
            except InputError as error:
                raise InputError(error.what, file=path, line=line) from None
            return name, groups[rest].name

        return read

    def calibration_key(self, path: str, line: int, text: bytes) -> tuple[str, None]:
        """The key of a calibration record."""
        del path, line
        return id_of(text), None

    def batches(self, partition: Partition) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
        """The partition's rows, and batch by batch which of them in the order of (id, group); no sample is cut."""
        rows = self._rows(partition)
        self._refuse_overlap(rows, partition)
        rows.manifest = self._manifest(partition)
        if rows.manifest is not None:
            self._match(rows, rows.manifest, partition)
        if not rows.results:
            return
        order, starts = _order(rows)
        edges = np.append(starts, order.size)
        start = 0
        while start < order.size:
            end = int(edges[min(int(np.searchsorted(edges, start + BATCH_ROWS)), edges.size - 1)])
            yield rows, order[start:end]
            start = end

    def _rows(self, partition: Partition) -> Rows:
        rows = Rows(partition.files)
        percent = self.config.percent
        results, files, lines = rows.results, rows.file, rows.line
        for index, groups in enumerate(self._groups):
            start = len(results)
            for file, line, text in partition.rows[role(index)]:
                try:
                    found, odd = result(text, percent=percent)
                except msgspec.DecodeError as error:
                    raise InputError(f"is not JSON: {error}", file=partition.files[file], line=line) from None
                except InputError as error:
                    raise InputError(error.what, file=partition.files[file], line=line) from None
                if odd is not None:
                    rows.unreadable[len(results)] = odd
                results.append(found)
                files.append(file)
                lines.append(line)
            rows.groups += [groups[row.model, row.use_tools, row.trial] for row in results[start:]]
        rows.received = len(results)
        return rows

    def _manifest(self, partition: Partition) -> dict[str, Entry] | None:
        if not self.config.manifest:
            return None
        found: dict[str, Entry] = {}
        for file, line, text in partition.rows["manifest"]:
            name, label, meta = manifest_row(text)
            path = partition.files[file]
            if name in found:
                there, at = found[name].place
                raise InputError(
                    f"id {name!r} stands in the manifest a second time; first at {partition.files[there]}:{at}",
                    file=path,
                    line=line,
                )
            if label is not None:
                label = check_label(label, self.classes, strip=self.config.strip_labels, file=path, line=line)
            found[name] = Entry(label, meta, (file, line))
        return found

    def _refuse_overlap(self, rows: Rows, partition: Partition) -> None:
        """A sample in both the calibration and the results: the threshold would be chosen on the test."""
        if not self.config.calibration:
            return
        chosen = {id_of(text): (file, line) for file, line, text in partition.rows["calibration"]}
        for index, row in enumerate(rows.results):
            if row.id in chosen:
                file, line = chosen[row.id]
                where, at = rows.place(index)
                raise ProtocolViolation(
                    f"{where}:{at}: id {row.id!r} also stands in the calibration, at {partition.files[file]}:{line}; "
                    "a threshold is never chosen on the samples that it is tested on"
                )

    def _match(self, rows: Rows, manifest: dict[str, Entry], partition: Partition) -> None:
        """Refuse (or drop) records whose id the manifest does not have; add a row for every record that is missing."""
        unmatched = [index for index, row in enumerate(rows.results) if row.id not in manifest]
        if unmatched and self.config.unmatched == "refuse":
            raise rows.error(
                min(unmatched, key=rows.place),
                f"id {rows.results[min(unmatched, key=rows.place)].id!r} is not in the manifest.",
                "(--unmatched ignore leaves such records out and counts them)",
            )
        if unmatched:
            _drop(rows, set(unmatched))
        if partition.limited:
            return
        have: dict[str, set[str]] = {}
        for row, group in zip(rows.results, rows.groups, strict=True):
            have.setdefault(row.id, set()).add(group.name)
        every = set(partition.groups)
        for name in manifest:
            present = have.get(name, set())
            if len(present) != len(every):
                absent = sorted(every - present)
                rows.results += [Result(name, meta=NO_RAW)] * len(absent)
                rows.groups += [Group.parse(group) for group in absent]


def role(run: int) -> str:
    """The input role of a run's files."""
    return "results" if run == 0 else f"results-{run + 1}"


def _drop(rows: Rows, gone: set[int]) -> None:
    keep = [index for index in range(len(rows.results)) if index not in gone]
    rows.unreadable = {new: rows.unreadable[old] for new, old in enumerate(keep) if old in rows.unreadable}
    rows.results = [rows.results[index] for index in keep]
    rows.groups = [rows.groups[index] for index in keep]
    rows.file = [rows.file[index] for index in keep]
    rows.line = [rows.line[index] for index in keep]
    rows.received = len(keep)


def _order(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers by (id, group), and where each sample starts; a record that stands twice is an InputError."""
    names = sorted({group.name for group in set(rows.groups)})
    rank = {Group.parse(name): index for index, name in enumerate(names)}
    ids = pa.array([row.id for row in rows.results], pa.string())
    codes = np.fromiter(map(rank.__getitem__, rows.groups), dtype=np.int32, count=len(rows.groups))
    table = pa.table({"id": ids, "group": codes})
    order: NDArray[np.int64] = (
        pc.sort_indices(table, sort_keys=[("id", "ascending"), ("group", "ascending")]).to_numpy().astype(np.int64)
    )
    ordered = ids.take(pa.array(order))
    same = np.asarray(pc.equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False), dtype=bool)
    twice = np.flatnonzero(same & (codes[order[1:]] == codes[order[:-1]]))
    if twice.size:
        one, two = sorted(
            (int(order[twice[0]]), int(order[twice[0] + 1])), key=lambda index: (rows.file[index], rows.line[index])
        )
        there, at = rows.place(one)
        group = rows.groups[one]
        raise rows.error(
            two,
            f"id {rows.results[two].id!r} of {group.configuration}, trial {group.trial}, stands here a second time; "
            f"first at {there}:{at}. Each sample is answered once a trial.",
        )
    return order, np.append(0, np.flatnonzero(~same) + 1)
