"""The check protocol's plan: from a rule file to judged batches, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.check import rows
from adjudge.protocols.check import samples as columns
from adjudge.protocols.check.batch import CheckBatch, read
from adjudge.protocols.check.compiled import compiled
from adjudge.protocols.check.config import config_of, document_of, kept
from adjudge.protocols.check.judge import decided
from adjudge.protocols.check.metrics import Partial, finish, partial
from adjudge.protocols.check.rulefile import rule_file
from adjudge.protocols.check.rules import CheckContext
from adjudge.protocols.check.sandbox import Sandbox
from adjudge.protocols.common.plan import BatchPlan
from adjudge.verdict.agent import agent, check_citations
from adjudge.verdict.gates import Gate


class CheckPlan(BatchPlan):
    """One configured evaluation of structured outputs."""

    source = "the stored answers give"

    def __init__(self, options: Mapping[str, Any]) -> None:
        config = config_of(options)
        document = document_of(config.rule_file)
        self.settings = config
        self.sandbox = Sandbox(config.memory_mb, config.seconds)
        self.compiled = compiled(rule_file(document), self.sandbox)
        self.config = msgspec.to_builtins(config) | {"rule_file": kept(document)}
        self.use_rules("check", CheckContext(self.compiled), config.rules)
        self.agent = agent(config.agent)
        self.use_digests(
            without=("outputs", "reference", "rule_file", "seconds", "memory_mb"),
            rule_file=document.content,
            rules=self.rules,
        )

    def default_gates(self) -> Sequence[Gate]:
        """The gates of the rule file."""
        return self.compiled.file.gates

    def inputs(self) -> Sequence[Input]:
        """Outputs and reference, keyed by id (or line)."""
        settings, by_line = self.settings, self.settings.match == "line"
        outputs = rows.OutputReader(self.compiled, repairs=settings.repairs, by_line=by_line)
        roles = [
            Input(
                "outputs",
                tuple(settings.outputs),
                None,
                rows.EXPECTED["outputs", self.compiled.file.extract],
                limited=True,
                read=outputs.read,
                keys=rows.key_tree(self.compiled, reference=False),
            ),
            Input(
                "reference",
                tuple(settings.reference),
                None,
                rows.EXPECTED["reference", "json"],
                read=rows.ReferenceReader(self.compiled, by_line=by_line).read,
                keys=rows.key_tree(self.compiled, reference=True),
            ),
        ]
        return [role for role in roles if role.paths]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of samples with their evidence, verdicts and scores."""
        for found in read(partition, self.compiled, self.sandbox):
            evidence = self.graph.evaluate(found.batch)
            models, names = found.models, found.samples.to_pylist()
            verdicts = self.agent.adjudicate_batch(evidence, models, names)
            check_citations(verdicts, evidence, self.agent, models, names)
            table = columns.table(found, decided(found.batch, evidence, verdicts), self.compiled, gold=self._gold)
            yield Judged(table, evidence, columns.outputs(found, partition.files), found.batch)

    def restore(self, samples: pa.Table) -> CheckBatch:
        """The answers as they were."""
        return columns.restore(samples, self.compiled, self.sandbox, gold=self._gold)

    def decided(self, batch: CheckBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """Verdicts, buckets, citations and scores."""
        models, names = (batch.columns[name].to_pylist() for name in ("model", "id"))
        return decided(batch, evidence, self.agent.adjudicate_batch(evidence, models, names))

    def partial(self, samples: pa.Table, evidence: Evidence, batch: CheckBatch | None = None) -> Partial:
        """What one batch adds to the numbers."""
        return partial(samples, evidence, batch or self.restore(samples))

    def finish(self, partials: Sequence[Partial]) -> Measured:
        """Pass rates of samples and rules, accuracies, scores, slices, and the ranking of models."""
        return finish(partials, self.compiled, self.graph.layout, self.settings)

    @property
    def _gold(self) -> bool:
        return bool(self.settings.reference)


plan = CheckPlan
