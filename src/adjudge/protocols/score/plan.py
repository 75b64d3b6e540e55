"""The score plan: sources to judged batches, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.plan import BatchPlan
from adjudge.protocols.score import samples as stored
from adjudge.protocols.score.attempts import Partial, partial_of
from adjudge.protocols.score.batch import ScoreBatch, rows_of
from adjudge.protocols.score.config import config_of
from adjudge.protocols.score.judge import decided
from adjudge.protocols.score.metrics import finish
from adjudge.protocols.score.rows import EXPECTED, Row, ScoreRows
from adjudge.protocols.score.rules import ScoreContext
from adjudge.protocols.score.truth import EXPECTED as EXPECTED_TRUTH
from adjudge.protocols.score.truth import Label, read_truth
from adjudge.provenance.canonical import file_digest
from adjudge.provenance.manifest import InputFile
from adjudge.readers.blocks import tree_of
from adjudge.readers.logs.formats import RECORDS

_FILES = ("logs", "sources", "truth", "model")


class ScorePlan(BatchPlan):
    """One configured evaluation of logs."""

    source = "the stored scores give"
    unread = "beyond targets and slices; scores are those of the log, not read from answers"

    def __init__(self, options: Mapping[str, Any]) -> None:
        unread = options.get("sources") is None
        config = config_of(options)
        self.settings, self.checks = config, config.checks
        self.config = msgspec.to_builtins(config)
        self.use_rules(
            "score", ScoreContext(config.range[0], config.range[1], self.checks, config.decided), config.rules
        )
        self.use_digests(without=_FILES, rules=self.rules)
        self._rows = ScoreRows(config)
        sources = config.sources or []
        self._generic = tuple(source.path for source in sources if source.format == RECORDS)
        self._logs = tuple(source.path for source in sources if source.format != RECORDS)
        # Files beside the samples are read when the plan is made for the first time, and not again by workers.
        self.read = [_input(path) for source in sources for path in source.files[1:]] if unread else []

    def inputs(self) -> Sequence[Input]:
        """The user's own records, other tools' logs, and labels by people."""
        keys = None if self.settings.wide else tree_of(Row)
        inputs = []
        if self._generic:
            read = self._rows.generic
            inputs.append(
                Input("scores", self._generic, None, EXPECTED, limited=True, read=read, keys=keys, matched=False)
            )
        if self._logs:
            tables = self._rows.log
            inputs.append(Input("logs", self._logs, None, "", limited=True, tables=tables, matched=False))
        if self.settings.truth:
            tasks = {task for source in self.settings.sources or () for task in source.tasks}
            task = self.settings.task or (tasks.pop() if len(tasks) == 1 else "")
            files, read = tuple(self.settings.truth), partial(read_truth, task=task)
            inputs.append(Input("truth", files, None, EXPECTED_TRUTH, read=read, keys=tree_of(Label), matched=False))
        return inputs

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """All attempts of the partition with their evidence and verdicts; what is passed on as batch are their slots."""
        rows = rows_of(partition, self.settings)
        if rows is not None:
            batch = stored.batch_of(rows, len(self.checks), decided=self.settings.decided)
            evidence = self.graph.evaluate(batch)
            table = stored.table_of(rows, batch, decided(batch, evidence), self.checks, self.settings.slices)
            yield Judged(
                table, evidence, stored.outputs_of(rows, partition.files), rows.table.column("slot").to_numpy()
            )

    def restore(self, samples: pa.Table) -> ScoreBatch:
        """The batch as it was."""
        return stored.restore(samples, self.checks)

    def decided(self, batch: ScoreBatch, evidence: Evidence) -> Mapping[str, pa.Array]:
        """Bucket, verdict and citations."""
        return decided(batch, evidence)

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """Judge again, by thresholds that follow from the configuration."""
        problems = super().recheck(samples, evidence)
        return [*problems, *stored.threshold_problems(samples, self.settings.pass_at, decided=self.settings.decided)]

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """Read targets and slices again from what stands beside the answers."""
        return stored.reread(samples, outputs, self.settings.slices)

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        del evidence
        return partial_of(samples, self.checks, self.settings.slices, batch)

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Every estimate and section."""
        return finish(partials, self.settings)


def _input(path: str) -> InputFile:
    file = Path(path)
    return InputFile(role="beside", name=file.name, bytes=file.stat().st_size, sha256=file_digest(file))


plan = ScorePlan
