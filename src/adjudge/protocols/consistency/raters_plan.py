"""The plan for any number of raters over a declared label space: the agreement part alone, without a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.errors import ConfigError
from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, Outcome
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.columns import coded
from adjudge.protocols.common.plan import BatchPlan
from adjudge.protocols.consistency import raters as r
from adjudge.protocols.consistency.config import PATHS, ConsistencyConfig
from adjudge.protocols.consistency.policy import LABELS
from adjudge.protocols.consistency.raters_metrics import RatersPartial, finish, partial
from adjudge.protocols.consistency.rows import Rating
from adjudge.verdict.gates import Gate


class RatersPlan(BatchPlan):
    """One configured evaluation of raters."""

    source = "the ratings give"
    unread = ""

    def __init__(self, config: ConsistencyConfig) -> None:
        self.settings = config
        self.labels = tuple(config.labels or LABELS)
        self.positive = config.positive or self.labels[0]
        if self.positive not in self.labels:
            raise ConfigError(f"positive label {self.positive!r} is not one of {', '.join(self.labels)}")
        self.config = msgspec.to_builtins(config)
        self.use_rules("consistency", r.RatersContext(config.reference), config.rules)
        self.use_digests(without=PATHS, rules=self.rules, labels=list(self.labels))

    def default_gates(self) -> Sequence[Gate]:
        """Only the gates that were asked for: raters of one's own have no bounds of ours."""
        config = self.settings
        gates = []
        if config.pa_gate is not None:
            gates.append(Gate("pa", "percent_agreement", ">=", config.pa_gate))
        if config.kappa_gate is not None:
            gates.append(Gate("kappa", "kappa", ">=", config.kappa_gate, undefined=config.kappa_undefined))
        return gates

    def inputs(self) -> Sequence[Input]:
        """The raters' files."""
        reader = r.RatingReader(self.labels, skip_bad=self.settings.on_bad_row == "skip")
        paths = tuple(self.settings.raters)
        return [Input("raters", paths, None, r.EXPECTED, read=reader.read, keys=Rating)]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of items with their evidence."""
        settings, names = self.settings, partition.groups
        if len(names) < 2:
            raise ConfigError(f"there is one rater, {names[0]}; agreement needs two (a file each, or a column `rater`)")
        if settings.reference is not None and settings.reference not in names:
            raise ConfigError(f"reference {settings.reference!r} is not one of the raters {', '.join(names)}")
        for batch, items in r.batches(partition, settings.reference, skip_bad=settings.on_bad_row == "skip"):
            evidence = self.graph.evaluate(batch)
            table = r.table(batch, items, names, self.labels, self.decided(batch, evidence))
            yield Judged(table, evidence, pa.table({"ratings": pa.array(batch.rated())}), batch)

    def restore(self, samples: pa.Table) -> r.RatingBatch:
        """The ratings as they were."""
        return r.restore(samples, self.labels, self.settings.reference)

    def decided(self, batch: r.RatingBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """A verdict on too few ratings rests on their number, any other on whether they agree."""
        verdicts = batch.verdicts()
        cites = np.zeros(evidence.outcome.shape, dtype=bool)
        cites[evidence.layout.positions_of("rating.too_few")] = verdicts >= r.TOO_FEW
        cites[evidence.layout.positions_of("rating.disagreement")] = verdicts < r.TOO_FEW
        return {
            "bucket": coded(r.BUCKET_OF[verdicts], BUCKETS),
            "verdict": coded(verdicts, r.VERDICTS),
            "cites": pack_citations(cites & (evidence.outcome <= Outcome.FAIL)),
        }

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """There are no texts, but the number of ratings an item."""
        same = outputs.column("ratings").to_pylist() == self.restore(samples).rated().tolist()
        return [] if same else ["ratings are not those of samples.parquet"]

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> RatersPartial:
        """What one batch adds to the numbers."""
        del evidence
        return partial(samples, self.restore(samples) if batch is None else batch, self.labels)

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Pairwise agreement, agreement of all, and judges against the reference."""
        return finish(partials, self.labels, self.positive, self.settings)
