"""One partition from records to evidence: the unit of work, in this process or another."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from adjudge.engine.judges import agent_problems
from adjudge.engine.matching import Matching
from adjudge.engine.metrics import Counted
from adjudge.engine.plans import Recipe, plan_of
from adjudge.engine.promises import problems_of
from adjudge.engine.split import Part, raw_rows
from adjudge.errors import PromiseBroken
from adjudge.protocols.base import Judged, Partition, Plan
from adjudge.provenance.manifest import RunFile
from adjudge.runs.tables import StoredBatches
from adjudge.runs.writer import PartWriter
from adjudge.verdict.adjudicator import AGENT_TABLE


@dataclass(frozen=True)
class Job:
    """What a worker needs."""

    recipe: Recipe
    part: int
    parts: dict[str, Part]
    groups: tuple[str, ...]
    files: tuple[str, ...]
    limited: bool
    folder: Path
    scratch: Path


@dataclass(frozen=True)
class Done:
    """What a worker gives back: samples batch by batch, what each batch adds to the numbers, the files it has written.

    `held` is the file that samples from another process are in; nobody needs it once they are taken from it.
    """

    samples: Iterable[pa.RecordBatch]
    partials: list[Any]
    files: list[RunFile]
    rows: int
    counted: Counted
    held: Path | None = None


def work(job: Job, plan: Plan | None = None) -> Done:
    """Judge one partition, write its evidence and outputs, and return the rest; without a `plan`, for another process."""
    job_plan = plan or plan_of(job.recipe)
    tables = {role: part.table() for role, part in job.parts.items()}
    partition = Partition(
        rows={role: raw_rows(tables[role]) for role, part in job.parts.items() if part.raw},
        tables={role: tables[role] for role, part in job.parts.items() if not part.raw},
        groups=job.groups,
        files=job.files,
        limited=job.limited,
    )
    keys = {role: tables[role].column("key") for role, part in job.parts.items() if part.matched}
    limited = [role for role, part in job.parts.items() if part.limited] if job.limited else []
    done = written(job_plan, job_plan.judge(partition), job.folder, job.part)
    done.counted.matching = Matching.of(keys, limited)
    done.counted.read_ids.add_like(job.part, keys.values(), done.counted.ids)
    if plan is not None or not done.rows:
        return done
    # A partition may be judged twice where a worker was lost.
    path = job.scratch / f"samples-{job.part:05d}.{socket.gethostname()}.{os.getpid()}"
    return replace(done, samples=StoredBatches.of(done.samples, path), held=path)


def written(plan: Plan, batches: Iterable[Judged], folder: Path, part: int) -> Done:
    """Write the evidence and outputs of a partition and return the rest."""
    writer = PartWriter(folder, part)
    partials: list[Any] = []
    counted = Counted()
    try:
        for judged in batches:
            broken = problems_of(judged.samples, judged.evidence)
            if broken:
                raise PromiseBroken(broken)
            counted.tally.add(judged.samples, judged.evidence)
            counted.ids.add(part, judged.samples.column(plan.key_column))
            _count_judge(plan, judged, counted)
            writer.add(judged.samples, judged.evidence, judged.outputs, judged.tables)
            partials.append(plan.partial(judged.samples, judged.evidence, judged.batch))
    finally:
        files = writer.close()
    counted.ids.close()
    return Done(writer.samples, partials, files, writer.rows, counted)


def _count_judge(plan: Plan, judged: Judged, counted: Counted) -> None:
    """Hold what an agent other than the rules answered to the promises, and count it."""
    adjudicator = plan.adjudicator
    if adjudicator is None or adjudicator.by_rules:
        return
    answers = judged.outputs.column("response").to_pylist()
    table = judged.tables[AGENT_TABLE]
    broken = list(agent_problems(judged.samples, judged.evidence, table, adjudicator, answers))
    if broken:
        raise PromiseBroken(broken)
    counted.judges.add(judged.samples, judged.evidence, judged.tables)
