"""One partition from records to evidence: the unit of work, in this process or another."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from adjudge.engine.split import Slice
from adjudge.protocols.base import Partition, Plan, protocol
from adjudge.provenance.canonical import canonical
from adjudge.runs.writer import PartWriter


@dataclass(frozen=True)
class Job:
    """What a worker needs; the plan is rebuilt from its configuration."""

    protocol: str
    config: bytes
    part: int
    slices: dict[str, Slice]
    groups: tuple[str, ...]
    files: tuple[str, ...]
    limited: bool
    folder: Path


@dataclass(frozen=True)
class Done:
    """What a worker gives back: samples batch by batch, and what each batch adds to the numbers."""

    part: int
    samples: list[tuple[int, pa.Table]]
    partials: list[Any]
    rows: int


@lru_cache(maxsize=2)
def plan_of(name: str, config: bytes) -> Plan:
    """The plan of a configuration, made once a process."""
    import msgspec

    return protocol(name).plan(msgspec.json.decode(config))


@contextmanager
def no_collector() -> Iterator[None]:
    """Without the cyclic garbage collector: the work makes many small objects and no cycles, and it looks at them all."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@no_collector()
def work(job: Job, plan: Plan | None = None) -> Done:
    """Judge one partition, write its evidence and outputs, and return the rest."""
    made = plan or plan_of(job.protocol, job.config)
    partition = Partition(
        rows={role: piece.rows() for role, piece in job.slices.items()},
        groups=job.groups,
        files=job.files,
        limited=job.limited,
    )
    writer = PartWriter(job.folder, job.part)
    samples: list[tuple[int, pa.Table]] = []
    partials: list[Any] = []
    try:
        for table, evidence, outputs in made.judge(partition):
            first = writer.add(evidence, outputs)
            samples.append((first, table))
            partials.append(made.partial(table, evidence))
    finally:
        writer.close()
    return Done(job.part, samples, partials, writer.rows)


def config_bytes(plan: Plan) -> bytes:
    """The configuration as it crosses to a worker."""
    return canonical(plan.config)
