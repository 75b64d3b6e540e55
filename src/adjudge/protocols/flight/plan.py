"""The flight protocol's plan: from a configuration to judged batches, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.evidence.atoms import NOT_ASKED
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.rule import Layout, Position, rule_sets
from adjudge.evidence.table import Evidence, Reasons
from adjudge.evidence.vocabulary import NOT_APPLICABLE
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.columns import codes
from adjudge.protocols.common.plan import RulePlan
from adjudge.protocols.flight import references, rows
from adjudge.protocols.flight import samples as columns
from adjudge.protocols.flight.batch import FlightBatch, FlightReader
from adjudge.protocols.flight.config import check, config_of, load
from adjudge.protocols.flight.fields import ANSWERED, STATUSES, TASKS, Task
from adjudge.protocols.flight.finish import finish, merged_by_task
from adjudge.protocols.flight.judge import score
from adjudge.protocols.flight.partials import Partial, partial
from adjudge.protocols.flight.rules import FlightContext
from adjudge.runs.section import schema
from adjudge.verdict.adjudicator import Adjudicator, Cases

BATCH_ROWS = {"S1": 16_384, "M1": 16_384, "M3": 4096}


class FlightPlan(RulePlan):
    """One configured evaluation of flight predictions."""

    unread = f"beyond the answers in them, and where they were cut at {rows.TEXT_LIMIT:,} characters"
    adjudicator: Adjudicator

    def __init__(self, options: Mapping[str, Any]) -> None:
        config = config_of(options)
        loaded = load(config.library) if isinstance(config.library, str) else check(config.library, "library")
        self.settings, self.library = config, loaded.library
        self.tasks = [TASKS[name] for name in config.tasks]
        self.config = msgspec.to_builtins(config) | {"library": loaded.content}
        widest = max(self.tasks, key=lambda task: task.steps)
        self.use_rules("flight", FlightContext(widest, loaded.library, len(self.tasks) > 1), config.rules)
        self.rules_of = {task.name: self._rules_of(task) for task in self.tasks}
        self.use_agent(config.agent, config.agent_options, seed=config.seed, task=config.task, top=config.top_k)
        self._jumps = loaded.library.jumps()
        self.use_digests(
            without=("outputs", "reference", "confidence", "agent_options"),
            constraint_library=loaded.content,
            rules=self.rules,
            schema=[config.task, schema(__package__, "record"), list(map(str, columns.schema(self.tasks)))],
        )

    def _rules_of(self, task: Task) -> TaskRules:
        if len(self.tasks) == 1:
            return TaskRules(task, self.graph, self.graph.layout)
        context = FlightContext(task, self.library, True)
        sets = rule_sets("flight", tuple(self.settings.rules))
        graph = VerifierGraph([rule for rules in sets for rule in rules.build(context)])
        return TaskRules(task, graph, self.graph.layout)

    def _reader(self) -> rows.OutputReader:
        settings = self.settings
        offsets = {name: settings.offset_of(name) for name in TASKS} if settings.match == "line" else None
        return rows.OutputReader(self.tasks, repairs=settings.repairs, offsets=offsets)

    def inputs(self) -> Sequence[Input]:
        """Outputs and reference, keyed by id (or line)."""
        settings, by_line = self.settings, self.settings.match == "line"
        truth = references.ReferenceReader(self.tasks, by_line=by_line)
        parts = (
            ("outputs", settings.outputs, rows.EXPECTED, self._reader().read, rows.KEYS),
            ("reference", settings.reference, references.EXPECTED, truth.read, references.KEYS),
        )
        return [
            Input(role, tuple(paths), None, expected, role == "outputs", read=read, keys=keys, in_order=by_line)
            for role, paths, expected, read, keys in parts
            if paths
        ]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of samples of one task with their evidence, verdicts and scores, in the order of their keys."""
        reader = self._reader()
        for task in sorted(self.tasks, key=lambda task: task.name):
            rules = self.rules_of[task.name]
            for read in FlightReader(task, reader, batch_rows=BATCH_ROWS[task.name]).read(partition):
                of_task = rules.evaluate(read.batch)
                evidence = rules.widened(of_task)
                raw = columns.outputs(read)
                answers = raw.column("response")
                cases = Cases(read.models, read.names, answers.to_pylist, read.batch.status == ANSWERED)
                verdicts, tables = self.adjudicator.judge(evidence, cases)
                scores = score(read.batch, of_task, verdicts.eligible, self._jumps)
                yield Judged(columns.table(read, verdicts, scores, self.tasks), evidence, raw, read.batch, tables)

    def asked(self, samples: pa.Table) -> NDArray[np.bool_]:
        """An agent is asked about answers."""
        answered: NDArray[np.bool_] = codes(samples, "status", STATUSES) == ANSWERED
        return answered

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """Judge again from the stored answers, states and reference, and compare everything that follows from them."""
        rules = self._rules_for(samples)
        batch = columns.restore(samples, rules.narrowed(evidence), rules.task)
        of_task = rules.evaluate(batch)
        judged = rules.widened(of_task)
        problems = columns.contradictions(batch)
        problems += [f"evidence: {difference}" for difference in judged.differences(evidence)]
        verdicts = self.adjudicator.stored_verdicts(samples, judged)
        scores = score(batch, of_task, verdicts.eligible, self._jumps)
        return problems + columns.differences(samples, batch, verdicts, scores)

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """Take every answer out of its text again; a text that was cut at the bound is left."""
        return columns.reread(self._rules_for(samples).task, samples, outputs, repairs=self.settings.repairs)

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        rules = self._rules_for(samples)
        of_task = rules.narrowed(evidence)
        judged = columns.restore(samples, of_task, rules.task) if batch is None else batch
        return partial(samples, of_task, judged, rules.evaluate)

    def folded(self, partials: Sequence[Any]) -> list[Any]:
        """One partial a task: each has sums of every model and flight."""
        return list(merged_by_task(partials))

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Task summaries, model profiles and every estimate."""
        layouts = {name: rules.layout for name, rules in self.rules_of.items()}
        return finish(partials, self.settings, layouts, self.library)

    def _rules_for(self, samples: pa.Table) -> TaskRules:
        """The rules of a batch, whose samples are of one task."""
        return self.rules_of[str(samples.column("task")[0].as_py()) if samples.num_rows else self.tasks[0].name]


class TaskRules:
    """The rules of one task, and the places of their atoms in the layout of the run."""

    def __init__(self, task: Task, graph: VerifierGraph, whole: Layout) -> None:
        self.task, self.graph, self.whole = task, graph, whole
        self.layout = graph.layout
        self.alone = self.layout.width == whole.width
        where = {_about(place): number for number, place in enumerate(whole.positions)}
        self._places = np.array([where[_about(place)] for place in self.layout.positions])
        self._codes = np.array([whole.codes.index(code) for code in self.layout.codes], dtype=np.int16)

    def evaluate(self, batch: FlightBatch) -> Evidence:
        """Every rule of the task over one batch."""
        return self.graph.evaluate(batch)

    def widened(self, evidence: Evidence) -> Evidence:
        """The evidence of the task in the layout of the run; what is not asked of it is not applicable."""
        if self.alone:
            return evidence
        shape = (self.whole.width, evidence.n)
        outcome, severity = np.full(shape, NOT_APPLICABLE, dtype=np.uint8), np.zeros(shape, dtype=np.uint8)
        observed, code = np.full(shape, np.nan), np.empty(shape, dtype=np.int16)
        code[:] = self.whole.slot_code[:, None]
        outcome[self._places], severity[self._places] = evidence.outcome, evidence.severity
        observed[self._places], code[self._places] = evidence.observed, self._codes[evidence.code]
        reasons_of_task = evidence.reasons
        codes = np.full(shape, len(reasons_of_task.texts), dtype=np.int32)
        codes[self._places] = -1 if reasons_of_task.codes is None else reasons_of_task.codes
        reasons = Reasons.of(codes, [*reasons_of_task.texts, NOT_ASKED])
        return Evidence(self.whole, outcome, severity, observed, code, reasons)

    def narrowed(self, evidence: Evidence) -> Evidence:
        """The evidence of the task out of that of the run."""
        if self.alone:
            return evidence
        translate = np.full(len(self.whole.codes), -1, dtype=np.int16)
        translate[self._codes] = np.arange(self._codes.size)
        places = self._places
        reasons_of_run = evidence.reasons
        none = np.full((places.size, evidence.n), -1, dtype=np.int32)
        codes = none if reasons_of_run.codes is None else reasons_of_run.codes[places]
        outcome, severity, observed = evidence.outcome[places], evidence.severity[places], evidence.observed[places]
        reasons = Reasons.of(codes, reasons_of_run.texts)
        return Evidence(self.layout, outcome, severity, observed, translate[evidence.code[places]], reasons)


def _about(place: Position) -> tuple[str, str | None, int]:
    """What tells an atom from the others of its sample."""
    return place.rule["code"], place.slot["field"], place.slot["step"]


plan = FlightPlan
