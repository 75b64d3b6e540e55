"""The check protocol's plan: from a rule file to judged batches, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.check import rows
from adjudge.protocols.check import samples as columns
from adjudge.protocols.check.batch import CheckBatch, read
from adjudge.protocols.check.compiled import compiled
from adjudge.protocols.check.config import config_of, document_of
from adjudge.protocols.check.counts import Partial, partial
from adjudge.protocols.check.judge import decided
from adjudge.protocols.check.metrics import finish
from adjudge.protocols.check.reading import rule_file
from adjudge.protocols.check.sandbox import Sandbox
from adjudge.protocols.common.columns import codes
from adjudge.protocols.common.plan import BatchPlan
from adjudge.verdict.adjudicator import Adjudicator, Cases
from adjudge.verdict.agent import rule_verdicts
from adjudge.verdict.gates import Gate


class CheckPlan(BatchPlan):
    """One configured evaluation of structured outputs."""

    source = "the stored answers give"
    unread = f"beyond the answers in them, and where they were cut at {rows.TEXT_LIMIT:,} characters"
    adjudicator: Adjudicator

    def __init__(self, options: Mapping[str, Any]) -> None:
        config = config_of(options)
        document = document_of(config.rule_file)
        self.settings = config
        self.sandbox = Sandbox(config.memory_mb, config.seconds)
        self.compiled = compiled(rule_file(document), self.sandbox)
        text = {
            "name": Path(document.where).name,
            "yaml": document.text,
        }  # with the order of its parts, and their lines
        self.config = msgspec.to_builtins(config) | {"rule_file": text}
        self.use_rules("check", self.compiled, config.rules)
        self.use_agent(config.agent, config.agent_options, seed=config.seed, task="check", top=5)
        self.use_digests(
            without=("outputs", "reference", "rule_file", "seconds", "memory_mb", "agent_options"),
            rule_file=document.content,
            rules=self.rules,
        )

    def default_gates(self) -> Sequence[Gate]:
        """The gates of the rule file."""
        return self.compiled.file.gates

    def inputs(self) -> Sequence[Input]:
        """Outputs and reference, keyed by id (or line)."""
        settings, by_line = self.settings, self.settings.match == "line"
        answers = rows.OutputReader(self.compiled, repairs=settings.repairs, by_line=by_line).read
        expected = rows.EXPECTED["outputs", self.compiled.file.extract]
        keys = rows.key_tree(self.compiled, reference=False)
        outputs = Input("outputs", tuple(settings.outputs), None, expected, limited=True, read=answers, keys=keys)
        truth = rows.ReferenceReader(self.compiled, by_line=by_line).read
        expected, keys = rows.EXPECTED["reference", "json"], rows.key_tree(self.compiled, reference=True)
        reference = Input("reference", tuple(settings.reference), None, expected, read=truth, keys=keys)
        return [outputs, reference] if reference.paths else [outputs]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of samples with their evidence, verdicts and scores."""
        for batch, outputs in read(partition, self.compiled, self.sandbox):
            evidence = self.graph.evaluate(batch)
            raw = columns.raw_outputs(outputs, partition.files)
            if self.adjudicator.by_rules:
                verdicts, tables = self.adjudicator.judge_by_rules(evidence)
            else:
                answers = raw.column("response").to_pylist
                models, names = (batch.columns[name].to_pylist() for name in ("model", "id"))
                cases = Cases(models, names, answers, batch.answered)
                verdicts, tables = self.adjudicator.judge(evidence, cases)
            gold = bool(self.settings.reference)
            table = columns.table(batch, outputs, decided(batch, evidence, verdicts), gold=gold)
            yield Judged(table, evidence, raw, batch, tables)

    def asked(self, samples: pa.Table) -> NDArray[np.bool_]:
        """An agent is asked about answers."""
        return np.equal(codes(samples, "status", rows.STATUSES), rows.ANSWERED)

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """Take every answer out of its text again; a text that was cut at the bound is left."""
        reader = rows.OutputReader(self.compiled, repairs=self.settings.repairs, by_line=False)
        return columns.reread(samples, outputs, reader)

    def restore(self, samples: pa.Table) -> CheckBatch:
        """The answers as they were."""
        return columns.restore(samples, self.compiled, self.sandbox)

    def decided(self, batch: CheckBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """Verdicts, buckets, citations and scores."""
        return decided(batch, evidence, rule_verdicts(evidence))

    def decided_again(self, batch: CheckBatch, evidence: Evidence, samples: pa.Table) -> dict[str, pa.Array]:
        """The same, from the verdicts that an agent gave and the run keeps."""
        return decided(batch, evidence, self.adjudicator.stored_verdicts(samples, evidence))

    def partial(self, samples: pa.Table, evidence: Evidence, batch: CheckBatch | None = None) -> Partial:
        """What one batch adds to the numbers."""
        return partial(samples, evidence, batch or self.restore(samples))

    def finish(self, partials: Sequence[Partial]) -> Measured:
        """Pass rates of samples and rules, accuracies, scores, slices, and the ranking of models."""
        return finish(partials, self.compiled, self.graph.layout, self.settings)


plan = CheckPlan
