"""One partition from records to evidence: the unit of work, in this process or another."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from adjudge.engine.light import without_pandas
from adjudge.engine.plans import Recipe, plan_of
from adjudge.engine.split import Part
from adjudge.protocols.base import Judged, Partition, Plan
from adjudge.provenance.manifest import RunFile
from adjudge.runs.table_file import Batch, stored
from adjudge.runs.writer import PartWriter


@dataclass(frozen=True)
class Job:
    """What a worker needs. Samples go through the file of a slot, where there are slots."""

    recipe: Recipe
    part: int
    parts: dict[str, Part]
    groups: tuple[str, ...]
    files: tuple[str, ...]
    limited: bool
    folder: Path
    scratch: Path
    slot: int | None = None


@dataclass(frozen=True)
class Done:
    """What a worker gives back: samples batch by batch, what each batch adds to the numbers, the files it has written.

    `held` is a file that nobody needs once the samples are taken from it.
    """

    samples: list[Batch]
    partials: list[Any]
    files: list[RunFile]
    rows: int
    held: Path | None = None


@contextmanager
def quick_memory() -> Iterator[None]:
    """Memory management for many short-lived arrays.

    Without the cyclic garbage collector, which looks at all objects, and the work makes no cycles; and with Arrow on the
    system's allocator, which gives the same pages again: its own asks the kernel for fresh ones a quarter of the time.
    """
    enabled, pool = gc.isenabled(), pa.default_memory_pool()
    gc.disable()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(pool)
        if enabled:
            gc.enable()


@quick_memory()
@without_pandas()
def work(job: Job, plan: Plan | None = None) -> Done:
    """Judge one partition, write its evidence and outputs, and return the rest; without a `plan`, for another process."""
    made = plan or plan_of(job.recipe)
    partition = Partition(
        rows={role: part.rows() for role, part in job.parts.items() if part.raw},
        tables={role: part.table() for role, part in job.parts.items() if not part.raw},
        groups=job.groups,
        files=job.files,
        limited=job.limited,
    )
    found = written(made, made.judge(partition), job.folder, job.part)
    if plan is not None:
        return found
    if job.slot is not None:
        return replace(found, samples=stored(found.samples, job.scratch / f"samples-{job.slot}"))
    # A partition may be judged twice where a worker was lost.
    path = job.scratch / f"samples-{job.part:05d}.{socket.gethostname()}.{os.getpid()}"
    return replace(found, samples=stored(found.samples, path), held=path)


def written(plan: Plan, batches: Iterable[Judged], folder: Path, part: int) -> Done:
    """Write the evidence and outputs of a partition and return the rest."""
    writer = PartWriter(folder, part)
    partials: list[Any] = []
    try:
        for samples, evidence, outputs in batches:
            writer.add(samples, evidence, outputs)
            partials.append(plan.partial(samples, evidence))
    finally:
        files = writer.close()
    return Done(writer.samples, partials, files, writer.rows)
