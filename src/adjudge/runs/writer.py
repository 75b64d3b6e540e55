"""Writing a run: it grows in a workplace beside its place, and is renamed when it is whole.

A workplace is locked while its process lives, and removed by the next run if that died.
"""

from __future__ import annotations

import glob
import hashlib
import os
import secrets
import shutil
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from threading import Thread
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.errors import OutputError
from adjudge.evidence.table import SCHEMA, Evidence
from adjudge.provenance.canonical import file_digest, pretty
from adjudge.provenance.manifest import Manifest, RunFile
from adjudge.runs.tables import TableFile, one_batch

_HOST = socket.gethostname()  # locks of one machine need not hold on another that shares the disk


_TRIES = 1000  # somebody else's sweep may come between as often as there are others


class Workplace:
    """`run` becomes the run at `place`, `old` is the one it replaces, `added` comes to it later; `.scratch` is spilled work."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.folder = place.parent
        self._lock: int | None = None
        self._new_parents: list[Path] = []

    @property
    def run(self) -> Path:
        """Where the run grows."""
        return self.folder / "run"

    def open(self) -> None:
        """Make the folder, after those of processes that died."""
        parents = (self.place.parent, *self.place.parent.parents)
        self._new_parents = [parent for parent in parents if not parent.exists()]
        for _ in range(_TRIES):
            self.place.parent.mkdir(parents=True, exist_ok=True)
            _sweep(self.place.parent)
            self.folder = self.place.parent / f".{self.place.name}.{_HOST}.{secrets.token_hex(4)}.adjudge"
            with suppress(FileNotFoundError):  # somebody who made no run there removed the empty parent
                self.folder.mkdir()
            with suppress(BlockingIOError, FileNotFoundError):  # somebody took the new folder for a dead one
                self._lock = _locked(self.folder)
                if self._lock is None or os.path.samestat(os.fstat(self._lock), self.folder.stat()):
                    return
            self._unlock()
        raise OutputError(f"{self.place}: no folder can be made in {self.place.parent}; name another one (--out)")

    def settle(self, *, replace: bool, claim: bool) -> None:
        """Put the run in its place. `claim` says that nothing may be there, not even an empty folder."""
        if replace and self.place.exists():
            self.place.rename(self.folder / "old")
        elif claim:
            try:
                self.place.mkdir()
            except FileExistsError:
                raise OutputError(f"{self.place} appeared while the run was made; it is left as it is") from None
        try:
            self.run.rename(self.place)  # fails where the folder is not empty
        except BaseException:
            with suppress(OSError):
                self.place.rmdir()  # ours, and only if it is empty
            raise
        sync(self.place.parent)

    def add(self, files: dict[str, bytes]) -> None:
        """Add files to the run in its place, all or none: whoever clears the folder moves those that are left."""
        waiting = self.folder / "adding"
        waiting.mkdir()
        for name, data in files.items():
            (waiting / name).write_bytes(data)
            sync(waiting / name)
        waiting.rename(self.folder / "added")
        _move_added(self.folder, self.place)
        sync(self.place)

    def close(self) -> None:
        """Remove the folder, and parents that were made for nothing; a run that was not replaced goes back to its place."""
        if self.folder != self.place.parent:
            _clear(self.folder, self.place)
        self._unlock()
        with suppress(OSError):  # the first that is not empty stays, and those above it
            for parent in self._new_parents:
                parent.rmdir()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sync(path: Path) -> None:
    """Have a file or folder on the disk before what follows."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _sweep(parent: Path) -> None:
    """Remove the folders of processes that died in the middle of a run."""
    for folder in parent.glob(f".*.{glob.escape(_HOST)}.*.adjudge"):
        try:
            lock = _locked(folder)
        except OSError:  # in use, or gone
            continue
        if lock is not None:
            _clear(folder, parent / folder.name[1:].removesuffix(".adjudge").rpartition(f".{_HOST}.")[0])
            os.close(lock)


def _clear(folder: Path, place: Path) -> None:
    old = folder / "old"
    try:
        if old.exists() and not place.exists():
            old.rename(place)
        _move_added(folder, place)
    except OSError:
        return  # the next run tries again
    shutil.rmtree(folder, ignore_errors=True)


def _move_added(folder: Path, place: Path) -> None:
    for path in sorted((folder / "added").glob("*"), reverse=True):  # the page before the manifest that lists it
        path.replace(place / path.name)


def _locked(folder: Path) -> int | None:
    """The folder, open and locked until it is closed; None where the system has no locks."""
    try:
        import fcntl
    except ImportError:  # on Windows nothing is locked, and nothing of a dead process removed
        return None
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(number)
        if isinstance(error, OSError) and not isinstance(error, BlockingIOError):
            return None
        raise
    return number


SAMPLES, METRICS, RULES, CHARTS, INTAKE, MANIFEST, REPORT, AGENT, VALIDATION = (
    "samples.parquet",
    "metrics.json",
    "rules.json",
    "charts.json",
    "intake.json",
    "manifest.json",
    "report.html",
    "agent.json",
    "validation.json",
)


_PART, _ROW = pa.field("part", pa.uint16(), nullable=False), pa.field("row", pa.uint32(), nullable=False)
GROWING = ".growing-*"
"""How a file is named until it is whole."""


class RunWriter:
    """A run in the making. Leaving the `with` block without `commit` removes every trace of it."""

    def __init__(self, out: Path, *, force: bool = False) -> None:
        self.out, self.force = out, force
        self._workplace = Workplace(out.resolve())
        self._claim = True
        self._listed: dict[str, RunFile] = {}
        self._clearing: Thread | None = None

    def __enter__(self) -> Self:
        self._check_place()
        self._claim = not self.out.exists()
        try:
            self._workplace.open()
            for folder in (self.folder, self.folder / "evidence", self.folder / "outputs", self.scratch):
                folder.mkdir()
        except BaseException as error:
            self._workplace.close()
            if isinstance(error, OSError):
                raise OutputError(f"cannot write to {self.out.parent}: {error.strerror}") from None
            raise
        self._samples = TableFile(self.folder / SAMPLES)
        return self

    def _check_place(self) -> None:
        """Refuse a place where something is that may not be replaced; an empty folder may."""
        if not self.out.exists() or _empty(self.out):
            return
        if not self.force:
            raise OutputError(f"{self.out} exists already; choose another --out, or --force to replace it")
        if not (self.out / MANIFEST).exists():
            raise OutputError(f"{self.out} exists and is no run of adjudge, so --force does not replace it")

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._samples.abandon()
        self._cleared()
        self._workplace.close()

    @property
    def folder(self) -> Path:
        """Where the run grows."""
        return self._workplace.run

    @property
    def scratch(self) -> Path:
        """A folder for what the work spills; it never becomes part of the run."""
        return self._workplace.folder / ".scratch"

    def add_samples(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Append the samples of a partition; partitions come in order."""
        for batch in batches:
            self._samples.add(batch)

    def clear_scratch(self) -> None:
        """Begin to remove what the work spilled, beside what comes next: it may be much."""
        self._clearing = Thread(target=shutil.rmtree, args=(self.scratch,), kwargs={"ignore_errors": True})
        self._clearing.start()

    def list_files(self, files: Iterable[RunFile]) -> None:
        """Take over what is known of files that are whole, so that nobody reads them again."""
        self._listed |= {file.path: file for file in files}

    def write_json(self, name: str, value: Any) -> bytes:
        """Write one JSON file of the run and return its bytes."""
        data = pretty(value)
        (self.folder / name).write_bytes(data)
        return data

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write one file of the run."""
        (self.folder / name).write_bytes(data)

    def _finish(self, manifest: Manifest) -> None:
        """Close the tables and list every file with its digest in the manifest: the folder is a whole run."""
        samples = self._samples.close()
        if samples is not None:
            self.list_files([samples.listed(SAMPLES)])
        self._cleared()
        shutil.rmtree(self.scratch, ignore_errors=True)
        for left in self.folder.rglob(GROWING):
            left.unlink()  # half a partition of a worker that was lost; another one has written the whole
        paths = sorted(self.folder.rglob("*"))
        manifest.files = [
            self._file(path.relative_to(self.folder).as_posix(), path) for path in paths if path.is_file()
        ]
        self.write_json(MANIFEST, manifest)
        for path in (*paths, self.folder / MANIFEST, self.folder):
            sync(path)

    def _cleared(self) -> None:
        if self._clearing is not None:
            self._clearing.join()

    def _file(self, name: str, path: Path) -> RunFile:
        known = self._listed.get(name)
        return known or RunFile(path=name, bytes=path.stat().st_size, sha256=file_digest(path))

    def commit(self, manifest: Manifest) -> Path:
        """Put the run in its place in one step."""
        self._finish(manifest)
        self._check_place()
        try:
            self._workplace.settle(replace=self.force, claim=self._claim)
        except OSError as error:
            raise OutputError(f"cannot put the run in place at {self.out}: {error.strerror}") from None
        return self.out

    def add_file(self, name: str, data: bytes, manifest: Manifest) -> None:
        """Add a file to the run that is in its place, and list it."""
        manifest.files.append(RunFile(path=name, bytes=len(data), sha256=hashlib.sha256(data).hexdigest()))
        manifest.files.sort(key=lambda file: PurePosixPath(file.path))
        self._workplace.add({name: data, MANIFEST: pretty(manifest)})


def add_to_run(place: Path, files: Mapping[str, bytes], manifest: Manifest) -> None:
    """Add files to a finished run, or replace them, and list them; all or none."""
    others = [entry for entry in manifest.files if entry.path not in files]
    added = [
        RunFile(path=name, bytes=len(data), sha256=hashlib.sha256(data).hexdigest()) for name, data in files.items()
    ]
    manifest.files = sorted([*others, *added], key=lambda entry: PurePosixPath(entry.path))
    workplace = Workplace(place.resolve())
    workplace.open()
    try:
        workplace.add({**files, MANIFEST: pretty(manifest)})
    finally:
        workplace.close()


class PartWriter:
    """One partition, batch by batch: its evidence, outputs and further tables go to files, its samples wait here."""

    def __init__(self, folder: Path, part: int) -> None:
        self.part, self.rows = part, 0
        self.samples: list[pa.RecordBatch] = []
        self._folder = folder
        self._files: dict[str, TableFile] = {}
        self._file("evidence", SCHEMA)

    def add(
        self, samples: pa.Table, evidence: Evidence, outputs: pa.Table, tables: Mapping[str, pa.Table] | None = None
    ) -> None:
        """Append one batch; the `row` of further `tables` counts from its first sample."""
        rows = pa.array(np.arange(self.rows, self.rows + evidence.n, dtype=np.uint32))
        parts = pa.array(np.full(evidence.n, self.part, dtype=np.uint16))
        self.samples.append(one_batch(samples.add_column(0, _PART, parts).add_column(1, _ROW, rows)))
        self._file("evidence").add(evidence.to_arrow(self.rows))
        self._file("outputs").add(one_batch(outputs.add_column(0, _ROW, rows)))
        for kind, table in (tables or {}).items():
            moved = pc.add(table.column("row"), pa.scalar(self.rows, pa.uint32()))
            self._file(kind).add(one_batch(table.set_column(0, _ROW, moved)))
        self.rows += evidence.n

    def close(self) -> list[RunFile]:
        """Finish the files, and say what they are."""
        written = []
        for name, table in self._files.items():
            file = table.close()
            if file is not None:
                file.path.replace(self._folder / name)
                written.append(file.listed(name))
        return written

    def _file(self, kind: str, schema: pa.Schema | None = None) -> TableFile:
        name = f"{kind}/part-{self.part:05d}.parquet"
        if name not in self._files:
            (self._folder / kind).mkdir(exist_ok=True)
            self._files[name] = TableFile(self._growing(name), schema)
        return self._files[name]

    def _growing(self, name: str) -> Path:
        """A file under a name of its own until it is whole: where a worker is lost a partition is written twice."""
        path = self._folder / name
        return path.with_name(f".growing-{path.name}.{socket.gethostname()}.{os.getpid()}")


def _empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
