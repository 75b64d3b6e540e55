"""Writing a run: into a temporary folder beside its place, renamed when whole."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.errors import OutputError
from adjudge.evidence.table import Evidence
from adjudge.provenance.canonical import file_digest, pretty
from adjudge.provenance.manifest import Manifest, RunFile
from adjudge.runs.evidence_file import EvidenceFile

SAMPLES, METRICS, RULES, CHARTS, MANIFEST, REPORT = (
    "samples.parquet",
    "metrics.json",
    "rules.json",
    "charts.json",
    "manifest.json",
    "report.html",
)


GROWING = ".growing-*"
"""How a file is named until it is whole."""


class RunWriter:
    """A run in the making. Leaving the `with` block without `commit` removes every trace of it."""

    def __init__(self, out: Path, *, force: bool = False) -> None:
        self.out, self.force = out, force
        self.folder = out.parent / f".{out.name}.{os.getpid()}.part"
        self._samples: pq.ParquetWriter | None = None

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
        if self._samples is not None:
            self._samples.close()
            self._samples = None
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def scratch(self) -> Path:
        """A folder for what the work spills; it never becomes part of the run."""
        return self.folder / ".scratch"

    def add_samples(self, part: int, table: pa.Table, first_row: int) -> None:
        """Append the samples of one batch."""
        table = with_place(table, part, first_row)
        if self._samples is None:
            self._samples = pq.ParquetWriter(
                self.folder / SAMPLES,
                table.schema,
                compression="lz4",
                use_dictionary=[f.name for f in table.schema if pa.types.is_dictionary(f.type)],
                column_encoding={
                    f"{f.name}.list.element": "BYTE_STREAM_SPLIT" for f in table.schema if _is_numbers(f.type)
                },
                write_statistics=["part", "row", "sample"],
            )
        self._samples.write_table(table, row_group_size=max(1, table.num_rows))

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
        if self._samples is not None:
            self._samples.close()
            self._samples = None
        shutil.rmtree(self.scratch, ignore_errors=True)
        for left in self.folder.rglob(GROWING):
            left.unlink()  # half a partition of a worker that was lost; another one has written the whole
        manifest.files = [
            RunFile(path=path.relative_to(self.folder).as_posix(), bytes=path.stat().st_size, sha256=file_digest(path))
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != MANIFEST
        ]
        self.write_json(MANIFEST, manifest)

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


def with_place(table: pa.Table, part: int, first_row: int) -> pa.Table:
    """Samples with their partition and row, by which evidence finds them."""
    parts = pa.array(np.full(table.num_rows, part, dtype=np.uint16))
    return table.add_column(0, "part", parts).add_column(1, "row", _row_numbers(first_row, table.num_rows))


def _row_numbers(first: int, count: int) -> pa.Array:
    return pa.array(np.arange(first, first + count, dtype=np.uint32))


def _is_numbers(kind: pa.DataType) -> bool:
    """Lists of doubles, whose bytes compress fastest one place at a time."""
    return bool(pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type))


class PartWriter:
    """The evidence and outputs of one partition, batch by batch."""

    def __init__(self, folder: Path, part: int) -> None:
        self.rows = 0
        # Under a name of its own until it is whole: the same partition may be written twice where a worker was lost.
        self._whole: dict[Path, Path] = {}
        self._stream = self._growing(folder / "evidence" / f"part-{part:05d}.parquet").open("wb")
        self._evidence = EvidenceFile(self._stream)
        self._outputs_path = folder / "outputs" / f"part-{part:05d}.parquet"
        self._outputs: pq.ParquetWriter | None = None

    def add(self, evidence: Evidence, outputs: pa.Table) -> int:
        """Append one batch; returns the row of its first sample."""
        first = self.rows
        self._evidence.add(evidence, first)
        outputs = outputs.add_column(0, "row", _row_numbers(first, outputs.num_rows))
        if self._outputs is None:
            self._outputs = pq.ParquetWriter(
                self._growing(self._outputs_path),
                outputs.schema,
                compression="lz4",
                use_dictionary=[f.name for f in outputs.schema if pa.types.is_dictionary(f.type)],
                write_statistics=["row"],
            )
        self._outputs.write_table(outputs, row_group_size=max(1, outputs.num_rows))
        self.rows += evidence.n
        return first

    def close(self) -> None:
        """Finish both files."""
        with self._stream:
            self._evidence.close()
        if self._outputs is not None:
            self._outputs.close()
        for growing, whole in self._whole.items():
            growing.replace(whole)

    def _growing(self, path: Path) -> Path:
        growing = path.with_name(f".growing-{path.name}.{socket.gethostname()}.{os.getpid()}")
        self._whole[growing] = path
        return growing


def _empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
