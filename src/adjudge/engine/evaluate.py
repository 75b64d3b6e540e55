"""From files to a run: split, judge every partition (here or in a worker), measure, gate, write."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from adjudge.engine.judges import agent_problems
from adjudge.engine.matching import Matching
from adjudge.engine.metrics import Counted, metrics_document, metrics_of, problems_of, verdict_word
from adjudge.engine.runner import (
    MOST_PARTIALS,
    Pool,
    Recipe,
    Runner,
    Serial,
    environment,
    plan_of,
    recipe,
    rule_versions,
)
from adjudge.engine.split import Part, Split, Wanted, raw_rows, split
from adjudge.errors import ConfigError, PromiseBroken
from adjudge.protocols.base import Judged, Partition, Plan, Protocol
from adjudge.provenance.manifest import SCHEMA_VERSION, Manifest, RunFile
from adjudge.provenance.redact import redacted_value
from adjudge.readers.records import columns_of
from adjudge.runs.tables import StoredBatches
from adjudge.runs.writer import AGENT, CHARTS, INTAKE, METRICS, REPORT, RULES, PartWriter, RunWriter
from adjudge.stats.estimate import declaration
from adjudge.verdict.adjudicator import AGENT_TABLE
from adjudge.verdict.gates import Gate, refuse_unfailing


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


Report = Callable[[Path], tuple[bytes, str]]
"""From a whole run folder to report.html and the digest of the data block it embeds; the CLI wires the report room in."""


@dataclass(frozen=True)
class Options:
    """How an evaluation runs; none of this changes a number."""

    out: Path | None = None
    workers: int = 1
    cluster: str | None = None
    limit: int | None = None
    force: bool = False
    gates: tuple[Gate, ...] = ()
    command: tuple[str, ...] = ()
    on_progress: Callable[[int, int], None] | None = None
    on_answer: Callable[[int, int, str], None] | None = None
    report: Report | None = None


def evaluate(chosen: Protocol, config: Mapping[str, Any], options: Options) -> Path:
    """Run one evaluation and return the directory it left.

    On an error nothing is left, except on one of the report, which is drawn when the run is whole and in its place.
    """
    if options.workers < 1:
        raise ConfigError(f"workers is {options.workers}, expected 1 or more")
    if options.limit is not None and options.limit < 1:
        raise ConfigError(f"limit is {options.limit}, expected 1 or more")
    started = datetime.now(UTC)
    clock = _Clock()
    runner = _runner(options, chosen.name)
    settings, wanted = _wanted(config, options)
    refuse_unfailing(options.gates, partial(declaration, metrics_of(chosen)))
    plan = chosen.plan(settings)
    if (wanted.columns or wanted.json_path) and not plan.inputs():
        raise ConfigError(f"--column and --json-path are not for {chosen.name}, which reads tables of its own")
    out = options.out or Path("runs") / f"{chosen.name}-{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    with RunWriter(out, force=options.force) as writer, runner:
        plan_recipe = recipe(chosen.name, plan)
        cut = split(plan.inputs(), writer.scratch, runner, plan_recipe, wanted)
        clock.lap("read")
        _begin_judging(plan, cut, options)
        jobs = _jobs(plan_recipe, cut, writer, limited=options.limit is not None)
        partials: list[Any] = []
        counted = Counted()
        total, rows = max(cut.rows.values(), default=0), 0
        whole = plan.whole(writer.folder)
        if whole is not None:
            results: Iterable[Done] = [written(plan, whole, writer.folder, 0)]
        else:
            results = runner.map(work if runner.shared else partial(work, plan=plan), jobs)
        for done in results:
            writer.add_samples(done.samples)
            writer.list_files(done.files)
            if done.held is not None:
                done.held.unlink()
            partials += done.partials
            if len(partials) > MOST_PARTIALS:
                partials = plan.folded(partials)
            counted.merge(done.counted)
            rows += done.rows
            if options.on_progress is not None:
                options.on_progress(rows, max(total, rows))
        cut.check_unchanged()
        cut.partitions.clear()
        writer.clear_scratch()
        clock.lap("judge")
        measured = plan.finish(partials)
        partials.clear()
        document, broken = metrics_document(chosen, plan, measured, counted, (*plan.default_gates(), *options.gates))
        if broken:
            raise PromiseBroken(broken)
        clock.lap("measure")
        writer.write_json(METRICS, document)
        writer.write_json(INTAKE, counted.intake(cut.notes))
        writer.write_json(CHARTS, measured.charts)
        for name, content in plan.files(measured).items():
            writer.write_bytes(name, content)
        if plan.adjudicator is not None:
            writer.write_json(AGENT, plan.adjudicator.document())
        writer.write_json(RULES, {"schema_version": SCHEMA_VERSION, "rules": plan.rules})
        manifest = Manifest(
            schema_version=SCHEMA_VERSION,
            protocol=chosen.name,
            protocol_version=chosen.version,
            rule_versions=rule_versions(chosen.name, plan.config),
            command=redacted_value(list(options.command)),
            config=redacted_value(
                {
                    **plan.config,
                    "limit": options.limit,
                    "columns": wanted.columns,
                    "json_path": wanted.json_path,
                    "gates": [gate.name for gate in options.gates],
                }
            ),
            digests={**plan.digests, **measured.digests},
            seeds={"seed": int(plan.config.get("seed", 0))},
            inputs=[*cut.inputs, *plan.read],
            files=[],
            environment=environment(),
            notes=[*document["notes"], *cut.notes],
            timestamp=started.isoformat(timespec="seconds"),
            timings={},
            verdict=verdict_word(document["pass"]),
        )
        clock.lap("write")
        manifest.timings = clock.laps
        path = writer.commit(manifest)
        if options.report is not None:
            try:
                page, manifest.digests["report_data"] = options.report(path)
                writer.add_file(REPORT, page, manifest)
            except BaseException as error:
                error.add_note(f"the run is whole at {path}, without its page (adjudge report {path} -o report.html)")
                raise
        return path


def _wanted(config: Mapping[str, Any], options: Options) -> tuple[dict[str, Any], Wanted]:
    """The protocol's own settings, and what is said of the input, which is the same for every protocol."""
    settings = {key: value for key, value in config.items() if key not in {"columns", "json_path"}}
    columns, path = config.get("columns") or {}, config.get("json_path")
    if isinstance(columns, list | tuple):
        columns = columns_of(list(columns))
    if not isinstance(columns, dict) or not all(isinstance(name, str) for pair in columns.items() for name in pair):
        raise ConfigError("columns is no table of OUR key = THEIR key")
    if path is not None and not isinstance(path, str):
        raise ConfigError(f"json_path is {path!r}, expected a path such as $.details")
    return settings, Wanted(options.limit, path, columns)


def _begin_judging(plan: Plan, cut: Split, options: Options) -> None:
    """Tell an agent what it will judge; one that costs something may refuse."""
    if plan.adjudicator is None:
        return
    agent = plan.adjudicator.agent
    if not agent.language_model:
        return
    from adjudge.agents.llm import LanguageModelAgent
    from adjudge.agents.validation import identity, read_validation, refuse_unvalidated

    if isinstance(agent, LanguageModelAgent):
        if options.workers > 1 or options.cluster is not None:
            raise ConfigError(
                f"--agent {agent.name} asks from this process alone, --agent-concurrency requests at a time; leave "
                "--workers and --cluster out"
            )
        agent.on_answer = options.on_answer
    agent.check_budget(max(cut.rows.values(), default=0))
    if isinstance(agent, LanguageModelAgent) and (options.gates or plan.default_gates()):
        validation = None if agent.options.validation is None else read_validation(Path(agent.options.validation))
        refuse_unvalidated(identity(plan.adjudicator.document()), validation, agent.options.min_kappa)
    agent.begin([file.sha256 for file in (*cut.inputs, *plan.read)])


def _runner(options: Options, protocol: str) -> Runner:
    if options.cluster is not None:
        from adjudge.engine.cluster import Cluster

        return Cluster(options.cluster, options.workers)
    return Serial() if options.workers == 1 else Pool(options.workers, protocol)


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = round(now - self._last, 3)
        self._last = now


def _jobs(plan_recipe: Recipe, cut: Split, writer: RunWriter, *, limited: bool) -> Iterator[Job]:
    for part, parts in enumerate(cut.partitions):
        yield Job(plan_recipe, part, parts, cut.groups, cut.files, limited, writer.folder, writer.scratch)
