"""The flight protocol's plan: from a configuration to judged batches, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.plan import RulePlan
from adjudge.protocols.flight import outputs, references
from adjudge.protocols.flight import samples as columns
from adjudge.protocols.flight.config import config_of
from adjudge.protocols.flight.fields import TASKS
from adjudge.protocols.flight.judge import score
from adjudge.protocols.flight.library import check, load
from adjudge.protocols.flight.measure import Partial, finish, partial
from adjudge.protocols.flight.partials import Errors
from adjudge.protocols.flight.read import FlightReader
from adjudge.protocols.flight.rules import FlightContext
from adjudge.verdict.agent import agent, check_citations

BATCH_ROWS = {"S1": 16_384, "M1": 16_384, "M3": 4096}
RECORD_SCHEMA = "flight-record/1"


class FlightPlan(RulePlan):
    """One configured evaluation of flight predictions."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        config = config_of(options)
        loaded = load(config.library) if isinstance(config.library, str) else check(config.library, "library")
        self.settings, self.task, self.library = config, TASKS[config.task], loaded.library
        self.config = msgspec.to_builtins(config) | {"library": loaded.content}
        self.use_rules("flight", FlightContext(self.task, loaded.library), config.rules)
        self.agent = agent(config.agent)
        self._jumps = loaded.library.jumps()
        self.use_digests(
            without=("outputs", "reference", "confidence"),
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
            models, names = read.models, read.names
            verdicts = self.agent.adjudicate_batch(evidence, models, names)
            check_citations(verdicts, evidence, self.agent, models, names)
            scores = score(read.batch, evidence, verdicts.eligible, read.completeness, self._jumps, read.has_reference)
            yield Judged(columns.table(read, verdicts, scores), evidence, columns.outputs(read), read.batch)

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """Judge again from the stored answers, states and reference, and compare everything that follows from them."""
        batch, completeness, has_reference, problems = columns.restore(samples, evidence, self.task)
        again = self.graph.evaluate(batch)
        problems += [f"evidence: {difference}" for difference in again.differences(evidence)]
        models, names = samples.column("model").to_pylist(), samples.column("sample").to_pylist()
        verdicts = self.agent.adjudicate_batch(again, models, names)
        scores = score(batch, again, verdicts.eligible, completeness, self._jumps, has_reference)
        return problems + columns.differences(samples, batch, verdicts, scores)

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers; of a batch that was just judged, the errors are known."""
        errors = None if batch is None else Errors(batch.errors, batch.persistence_errors)
        return partial(samples, evidence, self.task, errors)

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Task summary, model profiles and every estimate."""
        return finish(partials, self.settings, self.graph.layout, self.library)


plan = FlightPlan
