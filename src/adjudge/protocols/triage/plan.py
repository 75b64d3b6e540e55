"""The triage protocol's plan: from a configuration to judged batches, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.plan import BatchPlan
from adjudge.protocols.triage import samples as stored
from adjudge.protocols.triage.batch import Columns, TriageBatch
from adjudge.protocols.triage.config import config_of
from adjudge.protocols.triage.counts import Partial, partial
from adjudge.protocols.triage.matching import batches, role
from adjudge.protocols.triage.operating import choose
from adjudge.protocols.triage.rows import EXPECTED, EXPECTED_IN_MANIFEST, ManifestRows, ResultRows, read_ids
from adjudge.protocols.triage.rules import TriageContext
from adjudge.protocols.triage.summary import finish
from adjudge.protocols.triage.words import verdict_words
from adjudge.readers.blocks import tree_of
from adjudge.readers.triage_results import ManifestRow, Result

RECORD_SCHEMA = "triage-record/1"
# The threshold that calibration results gave is no setting; two systems have two.
_FILES = ("results", "manifest", "calibration", "operating")


class TriagePlan(BatchPlan):
    """One configured evaluation of triage results."""

    source = "the evidence gives"
    derived = ("operating",)
    unread = "beyond the words of verdicts, errors and confidences"

    def __init__(self, options: Mapping[str, Any]) -> None:
        config = config_of(options)
        if config.calibration and config.operating is None:
            config.operating = choose(config)
        self.settings, self.classes = config, config.classes()
        self.config = msgspec.to_builtins(config)
        self.use_rules("triage", TriageContext(self.classes), config.rules)
        self.use_digests(
            without=_FILES if config.split_by else (*_FILES, "split_by"),  # runs of version 1 have no such setting
            constraint_library=verdict_words(self.classes, config.words),
            rules=self.rules,
            schema=[RECORD_SCHEMA, [str(field) for field in stored.schema(config.slices)]],
        )
        self._columns = Columns(config)

    def inputs(self) -> Sequence[Input]:
        """Every run's results, the manifest and the calibration, as columns."""
        settings, of_result = self.settings, tree_of(Result)
        roles = []
        for run, (files, name) in enumerate(zip(settings.results, settings.run_names(), strict=True)):
            read = ResultRows(settings, name).read
            roles.append(Input(role(run), tuple(files), None, EXPECTED, limited=True, read=read, keys=of_result))
        if settings.manifest:
            read, keys = ManifestRows(settings).read, tree_of(ManifestRow)
            roles.append(Input("manifest", tuple(settings.manifest), None, EXPECTED_IN_MANIFEST, read=read, keys=keys))
        if settings.calibration:
            # Thresholds are chosen when the plan is made; here its samples are held against the others.
            paths = tuple(settings.calibration)
            roles.append(Input("calibration", paths, None, EXPECTED, read=read_ids, keys=of_result, matched=False))
        return roles

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of records with their evidence and verdicts."""
        for rows in batches(partition, self.settings):
            read = self._columns.read(rows)
            evidence = self.graph.evaluate(read.batch)
            samples = stored.table(read, evidence, self.classes)
            yield Judged(samples, evidence, read.outputs, read.batch)

    def restore(self, samples: pa.Table) -> TriageBatch:
        """The records as they were."""
        return stored.restore(samples, self.classes)

    def decided(self, batch: TriageBatch, evidence: Evidence) -> Mapping[str, pa.Array]:
        """Verdicts, buckets, citations and the states of confidences."""
        return stored.decided(batch, evidence)

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """As in every plan, and whether each group is that of its configuration and trial."""
        trials = zip(samples.column("configuration").to_pylist(), samples.column("trial").to_pylist(), strict=True)
        renamed = samples.column("model").to_pylist() != [f"{configuration}|{trial}" for configuration, trial in trials]
        wrong = [f"samples.parquet: model is not what {self.source}"] if renamed else []
        return super().recheck(samples, evidence) + wrong

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """Read every verdict from its word again, and which confidences are no numbers."""
        return stored.reread(samples, outputs, self.classes, ResultRows(self.settings, None).answer)

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        del evidence
        batch = self.restore(samples) if batch is None else batch
        return partial(samples, batch, self.classes, self.settings.slices)

    def finish(self, partials: Sequence[Any]) -> Measured:
        """The configurations and every estimate."""
        return finish(partials, self.settings)


plan = TriagePlan
