"""Writing a run: into a temporary folder beside its place, renamed when whole."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from adjudge.errors import OutputError
from adjudge.evidence.table import SCHEMA, Evidence
from adjudge.provenance.canonical import file_digest, pretty
from adjudge.provenance.manifest import Manifest, RunFile
from adjudge.runs.tables import TableFile, one_batch

SAMPLES, METRICS, RULES, CHARTS, INTAKE, MANIFEST, REPORT = (
    "samples.parquet",
    "metrics.json",
    "rules.json",
    "charts.json",
    "intake.json",
    "manifest.json",
    "report.html",
)


_PART, _ROW = pa.field("part", pa.uint16(), nullable=False), pa.field("row", pa.uint32(), nullable=False)
GROWING = ".growing-*"
"""How a file is named until it is whole."""


class RunWriter:
    """A run in the making. Leaving the `with` block without `commit` removes every trace of it."""

    def __init__(self, out: Path, *, force: bool = False) -> None:
        self.out, self.force = out, force
        self.folder = out.parent / f".{out.name}.{os.getpid()}.part"
        self._samples = TableFile(self.folder / SAMPLES)
        self._listed: dict[str, RunFile] = {}
        self._clearing: Thread | None = None

    def __enter__(self) -> Self:
        if self.out.exists() and not self.force:
            raise OutputError(f"{self.out} exists already; choose another --out, or --force to replace it")
        if self.out.exists() and not ((self.out.is_dir() and (self.out / MANIFEST).exists()) or _empty(self.out)):
            raise OutputError(f"{self.out} exists and is no run of adjudge, so --force does not replace it")
        try:
            self.folder.mkdir(parents=True)
            (self.folder / "evidence").mkdir()
            (self.folder / "outputs").mkdir()
            self.scratch.mkdir()
        except OSError as error:
            raise OutputError(f"cannot write to {self.out.parent}: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._samples.abandon()
        self._cleared()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def scratch(self) -> Path:
        """A folder for what the work spills; it never becomes part of the run."""
        return self.folder / ".scratch"

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

    def finish(self, manifest: Manifest) -> None:
        """Close the tables and list every file with its digest in the manifest: the folder is a whole run."""
        samples = self._samples.close()
        if samples is not None:
            self.list_files([samples.listed(SAMPLES)])
        self._cleared()
        shutil.rmtree(self.scratch, ignore_errors=True)
        for left in self.folder.rglob(GROWING):
            left.unlink()  # half a partition of a worker that was lost; another one has written the whole
        manifest.files = [
            self._file(path.relative_to(self.folder).as_posix(), path)
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != MANIFEST
        ]
        self.write_json(MANIFEST, manifest)

    def _cleared(self) -> None:
        if self._clearing is not None:
            self._clearing.join()

    def _file(self, name: str, path: Path) -> RunFile:
        known = self._listed.get(name)
        return known or RunFile(path=name, bytes=path.stat().st_size, sha256=file_digest(path))

    def commit(self, manifest: Manifest) -> Path:
        """Put the run in its place in one step."""
        self.finish(manifest)
        try:
            if self.out.exists():
                old = self.out.parent / f".{self.out.name}.{os.getpid()}.old"
                self.out.rename(old)
                self.folder.rename(self.out)
                shutil.rmtree(old, ignore_errors=True)
            else:
                self.folder.rename(self.out)
        except OSError as error:
            raise OutputError(f"cannot put the run in place at {self.out}: {error.strerror}") from None
        return self.out


class PartWriter:
    """One partition, batch by batch: its evidence and outputs go to files, its samples wait in `samples`."""

    def __init__(self, folder: Path, part: int) -> None:
        self.part, self.rows = part, 0
        self.samples: list[pa.RecordBatch] = []
        self._folder, self._names = folder, [f"{kind}/part-{part:05d}.parquet" for kind in ("evidence", "outputs")]
        evidence, outputs = (self._growing(name) for name in self._names)
        self._evidence, self._outputs = TableFile(evidence, SCHEMA), TableFile(outputs)

    def add(self, samples: pa.Table, evidence: Evidence, outputs: pa.Table) -> None:
        """Append one batch."""
        rows = pa.array(np.arange(self.rows, self.rows + evidence.n, dtype=np.uint32))
        parts = pa.array(np.full(evidence.n, self.part, dtype=np.uint16))
        self.samples.append(one_batch(samples.add_column(0, _PART, parts).add_column(1, _ROW, rows)))
        self._evidence.add(evidence.to_arrow(self.rows))
        self._outputs.add(one_batch(outputs.add_column(0, _ROW, rows)))
        self.rows += evidence.n

    def close(self) -> list[RunFile]:
        """Finish both files, and say what they are."""
        found = []
        for name, file in zip(self._names, (self._evidence.close(), self._outputs.close()), strict=True):
            if file is not None:
                file.path.replace(self._folder / name)
                found.append(file.listed(name))
        return found

    def _growing(self, name: str) -> Path:
        """A file under a name of its own until it is whole: where a worker is lost a partition is written twice."""
        path = self._folder / name
        return path.with_name(f".growing-{path.name}.{socket.gethostname()}.{os.getpid()}")


def _empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
