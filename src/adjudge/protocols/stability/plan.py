"""The stability plan: gold items and runs to judged items, aggregates with intervals, and gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.plan import BatchPlan
from adjudge.protocols.stability import rows, samples
from adjudge.protocols.stability.batch import StabilityBatch, read
from adjudge.protocols.stability.config import config_of
from adjudge.protocols.stability.judge import decided
from adjudge.protocols.stability.metrics import finish
from adjudge.protocols.stability.rules import StabilityContext
from adjudge.verdict.gates import Gate


class StabilityPlan(BatchPlan):
    """One configured evaluation of answers under jitter."""

    source = "the measures give"
    unread = "beyond how many claims there are, how far they differ and whether they refuse"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.settings = config_of(options)
        self.config = msgspec.to_builtins(self.settings)
        context = StabilityContext(self.settings.bounds, self.settings.min_runs)
        self.use_rules("stability", context, self.settings.rules)
        self.use_digests(without=("gold", "runs"), rules=self.rules)

    def default_gates(self) -> Sequence[Gate]:
        """No item with too few runs, none that is unstable, and a bound on every aggregate (one about no item passes)."""
        return (
            Gate("runs", "items_with_too_few_runs", "==", 0.0),
            Gate("unstable", "unstable", "==", 0.0),
            *(
                Gate(name, name, "<=" if name == "ned50" else ">=", bound, undefined="pass")
                for name, bound in self.settings.bounds.items()
            ),
        )

    def inputs(self) -> Sequence[Input]:
        """Gold items and runs, keyed by qid."""
        paths = {name: tuple(getattr(self.settings, name)) for name in rows.ROLES}
        return [
            Input(name, paths[name], None, rows.EXPECTED[name], read=rows.READ[name], keys=role.keys)
            for name, role in rows.ROLES.items()
        ]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of gold items with their measures."""
        for batch, names, claims in read(partition):
            evidence = self.graph.evaluate(batch)
            table = samples.table(batch, names, decided(batch, evidence))
            yield Judged(table, evidence, samples.outputs(claims), batch)

    def restore(self, samples_table: pa.Table) -> StabilityBatch:
        """The measures as they were."""
        return samples.restore(samples_table)

    def decided(self, batch: StabilityBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """Verdict, bucket and citations."""
        return decided(batch, evidence)

    def reread(self, samples_table: pa.Table, outputs: pa.Table) -> list[str]:
        """Measure the claims again; what a gold item wants of them is not kept."""
        return samples.reread(self.restore(samples_table), outputs)

    def partial(self, samples_table: pa.Table, evidence: Evidence, batch: StabilityBatch | None = None) -> pa.Table:
        """The stored measures."""
        del evidence, batch
        return samples_table

    def finish(self, partials: Sequence[pa.Table]) -> Measured:
        """Aggregates with intervals clustered by qid."""
        return finish(partials, self.settings)


plan = StabilityPlan
