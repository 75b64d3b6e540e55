"""The triage protocol's plan: from a configuration to judged batches, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.registry import rule_sets
from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition, Plan
from adjudge.protocols.triage import samples as stored
from adjudge.protocols.triage.columns import Columns
from adjudge.protocols.triage.config import config_of
from adjudge.protocols.triage.operating import choose
from adjudge.protocols.triage.partials import Partial, partial
from adjudge.protocols.triage.read import TriageReader, role
from adjudge.protocols.triage.rows import EXPECTED, EXPECTED_IN_MANIFEST, ManifestRows, ResultRows, read_ids
from adjudge.protocols.triage.rules import TriageContext
from adjudge.protocols.triage.summary import finish
from adjudge.protocols.triage.words import verdict_words
from adjudge.provenance.canonical import digest
from adjudge.readers.keys import tree_of
from adjudge.readers.triage_results import ManifestRow, Result

RECORD_SCHEMA = "triage-record/1"
# The threshold that calibration results gave is no setting; two systems have two.
_FILES = ("results", "manifest", "calibration", "operating")


class TriagePlan(Plan):
    """One configured evaluation of triage results."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        config = config_of(options)
        if config.calibration and config.operating is None:
            config.operating = choose(config)
        self.settings, self.classes = config, config.classes()
        self.config = msgspec.to_builtins(config)
        sets = rule_sets("triage", tuple(config.rules))
        self.graph = VerifierGraph([rule for rules in sets for rule in rules.build(TriageContext(self.classes))])
        self.rules = [rule.table() for rule in self.graph.rules]
        self._reader, self._columns = TriageReader(config), Columns(config)
        self._results = [ResultRows(config, name) for name in config.run_names()]
        self._manifest = ManifestRows(config)
        self.digests = {
            "config": digest({key: value for key, value in self.config.items() if key not in _FILES}),
            "constraint_library": digest(verdict_words(self.classes, config.words)),
            "rules": digest(self.rules),
            "schema": digest([RECORD_SCHEMA, [str(field) for field in stored.schema(config.slices)]]),
        }

    def inputs(self) -> Sequence[Input]:
        """Every run's results, the manifest and the calibration, as columns."""
        settings, of_result = self.settings, tree_of(Result)
        roles = [
            Input(role(index), tuple(files), None, EXPECTED, limited=True, read=rows.read, keys=of_result)
            for index, (files, rows) in enumerate(zip(settings.results, self._results, strict=True))
        ]
        if settings.manifest:
            files = tuple(settings.manifest)
            read = self._manifest.read
            roles.append(Input("manifest", files, None, EXPECTED_IN_MANIFEST, read=read, keys=tree_of(ManifestRow)))
        if settings.calibration:
            # Thresholds are chosen when the plan is made; here its samples are held against the others.
            files = tuple(settings.calibration)
            roles.append(Input("calibration", files, None, EXPECTED, read=read_ids, keys=of_result, matched=False))
        return roles

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of records with their evidence and verdicts."""
        for rows in self._reader.batches(partition):
            read = self._columns.read(rows)
            evidence = self.graph.evaluate(read.batch)
            verdicts = stored.adjudicate(evidence)
            samples = stored.table(read, verdicts, self.classes, self.settings.slices)
            yield Judged(samples, evidence, read.outputs, read.batch)

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """Judge again from the stored answers and compare everything that follows from them."""
        batch = stored.restore(samples, self.classes)
        again = self.graph.evaluate(batch)
        problems = [f"evidence: {difference}" for difference in again.differences(evidence)]
        return problems + stored.differences(samples, batch, stored.adjudicate(again))

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        del evidence
        if batch is None:
            batch = stored.restore(samples, self.classes)
        return partial(samples, batch, self.classes, self.settings.slices)

    def finish(self, partials: Sequence[Any]) -> Measured:
        """The configurations and every estimate."""
        return finish(partials, self.settings)


plan = TriagePlan
