"""The flight protocol's plan: from a configuration to judged batches, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.agents import agent_of
from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.columns import codes
from adjudge.protocols.common.plan import RulePlan
from adjudge.protocols.flight import outputs, references
from adjudge.protocols.flight import reread as again
from adjudge.protocols.flight import samples as columns
from adjudge.protocols.flight.batch import ANSWERED, STATUSES
from adjudge.protocols.flight.config import config_of
from adjudge.protocols.flight.fields import TASKS
from adjudge.protocols.flight.finish import finish
from adjudge.protocols.flight.judge import score
from adjudge.protocols.flight.library import check, load
from adjudge.protocols.flight.partials import Partial, partial
from adjudge.protocols.flight.read import FlightReader
from adjudge.protocols.flight.rules import FlightContext
from adjudge.verdict.adjudicator import Adjudicator, Cases

BATCH_ROWS = {"S1": 16_384, "M1": 16_384, "M3": 4096}
RECORD_SCHEMA = "flight-record/1"


class FlightPlan(RulePlan):
    """One configured evaluation of flight predictions."""

    adjudicator: Adjudicator

    def __init__(self, options: Mapping[str, Any]) -> None:
        config = config_of(options)
        loaded = load(config.library) if isinstance(config.library, str) else check(config.library, "library")
        self.settings, self.task, self.library = config, TASKS[config.task], loaded.library
        self.config = msgspec.to_builtins(config) | {"library": loaded.content}
        self.use_rules("flight", FlightContext(self.task, loaded.library), config.rules)
        judge = agent_of(config.agent, config.agent_options, seed=config.seed)
        self.adjudicator = Adjudicator(judge, self.rules, task=config.task, top=config.top_k)
        self._jumps = loaded.library.jumps()
        self.use_digests(
            without=("outputs", "reference", "confidence", "agent_options"),
            constraint_library=loaded.content,
            rules=self.rules,
            schema=[RECORD_SCHEMA, [str(field) for field in columns.schema(self.task)]],
        )

    def inputs(self) -> Sequence[Input]:
        """Outputs and reference, keyed by id (or line)."""
        settings, by_line = self.settings, self.settings.match == "line"
        answers = outputs.OutputReader(self.task, repairs=settings.repairs, by_line=by_line)
        truth = references.ReferenceReader(self.task, by_line=by_line)
        roles = [
            Input("outputs", tuple(settings.outputs), None, outputs.EXPECTED, True, answers.read, outputs.KEYS),
            Input(
                "reference", tuple(settings.reference), None, references.EXPECTED, False, truth.read, references.KEYS
            ),
        ]
        return [role for role in roles if role.paths]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of samples with their evidence, verdicts and scores."""
        reader = FlightReader(self.task, batch_rows=BATCH_ROWS[self.task.name])
        for read in reader.read(partition):
            evidence = self.graph.evaluate(read.batch)
            raw = columns.outputs(read)
            answers = raw.column("response")
            cases = Cases(read.models, read.names, answers.to_pylist, read.batch.status == ANSWERED)
            verdicts, tables = self.adjudicator.judge(evidence, cases)
            scores = score(read.batch, evidence, verdicts.eligible, self._jumps)
            yield Judged(columns.table(read, verdicts, scores), evidence, raw, read.batch, tables)

    def asked(self, samples: pa.Table) -> NDArray[np.bool_]:
        """An agent is asked about answers."""
        answered: NDArray[np.bool_] = codes(samples, "status", STATUSES) == ANSWERED
        return answered

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """Judge again from the stored answers, states and reference, and compare everything that follows from them."""
        batch = columns.restore(samples, evidence, self.task)
        judged = self.graph.evaluate(batch)
        problems = columns.contradictions(batch)
        problems += [f"evidence: {difference}" for difference in judged.differences(evidence)]
        verdicts = self.adjudicator.stored_verdicts(samples, judged)
        scores = score(batch, judged, verdicts.eligible, self._jumps)
        return problems + columns.differences(samples, batch, verdicts, scores)

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """Take every answer out of its text again; a text that was cut at the bound is left."""
        return again.differences(self.task, samples, outputs, repairs=self.settings.repairs)

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        judged = columns.restore(samples, evidence, self.task) if batch is None else batch
        return partial(samples, evidence, judged, self.graph.evaluate)

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Task summary, model profiles and every estimate."""
        return finish(partials, self.settings, {self.task.name: self.graph.layout}, self.library)


plan = FlightPlan
