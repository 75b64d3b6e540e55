"""The consistency protocol's plan: from a configuration to judged pairs, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition, Plan
from adjudge.protocols.common.plan import BatchPlan
from adjudge.protocols.consistency import rows as r
from adjudge.protocols.consistency import samples as columns
from adjudge.protocols.consistency.batch import PairBatch, PairReader
from adjudge.protocols.consistency.config import GATES, PATHS, ConsistencyConfig, config_of
from adjudge.protocols.consistency.counts import Partial, partial
from adjudge.protocols.consistency.judge import Judge
from adjudge.protocols.consistency.metrics import finish
from adjudge.protocols.consistency.policy import LABELS, check, load
from adjudge.protocols.consistency.rows import BlockReader
from adjudge.protocols.consistency.rules import PairContext
from adjudge.verdict.gates import Gate


class PairPlan(BatchPlan):
    """One configured evaluation of two validators over the protocol's own labels."""

    source = "the evidence and the policy give"

    def __init__(self, config: ConsistencyConfig) -> None:
        self.settings = config
        self.policy = load(config.policy) if isinstance(config.policy, str) else check(config.policy, "policy")
        self.config = msgspec.to_builtins(config) | {"policy": self.policy.content}
        self.use_rules("consistency", PairContext(config.reason_limit), config.rules)
        self.use_digests(without=PATHS, policy=self.policy.content, rules=self.rules, labels=list(LABELS))
        self.judge_of = Judge(self.policy, self.graph)

    def default_gates(self) -> Sequence[Gate]:
        """The protocol's four gates."""
        config = self.settings
        chosen = {name: getattr(config, name) for name in GATES}
        pa, kappa, abstain = (GATES[name] if bound is None else bound for name, bound in chosen.items())
        return (
            Gate("pa", "percent_agreement", ">=", pa),
            Gate("kappa", "kappa", ">=", kappa, undefined=config.kappa_undefined),
            Gate("abstain", "abstain_rate", "<=", abstain),
            Gate("red_flags", "shipped_with_red_flag", "==", 0.0),
        )

    def inputs(self) -> Sequence[Input]:
        """Pairs, or two agents and their answers, keyed by qid."""
        skip_bad = self.settings.on_bad_row == "skip"
        return [
            Input(
                role,
                tuple(getattr(self.settings, role)),
                None,
                r.EXPECTED[role],
                limited=role == "pairs",
                read=BlockReader(role, skip_bad=skip_bad).read,
                keys=r.ROW_TYPES[role],
            )
            for role in ("pairs", "scholar", "auditor", "answers")
            if getattr(self.settings, role)
        ]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of items with their evidence and finals."""
        reader = PairReader(paired=bool(self.settings.pairs), skip_bad=self.settings.on_bad_row == "skip")
        for read in reader.read(partition):
            evidence = self.graph.evaluate(read.batch)
            finals = self.judge_of.decide(read.batch, evidence)
            table = columns.table(read, finals, self.judge_of.reasons)
            yield Judged(table, evidence, columns.outputs(read))

    def restore(self, samples: pa.Table) -> PairBatch:
        """The pairs as they were."""
        return columns.restore(samples)

    def decided(self, batch: PairBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """Finals, reasons, buckets and citations."""
        return columns.decided(self.judge_of.decide(batch, evidence), self.judge_of.reasons)

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        del batch
        return partial(samples, evidence, self.judge_of.reasons)

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Agreement, finals and every estimate."""
        return finish(
            partials, self.policy.table, self.graph.layout, seed=self.settings.seed, resamples=self.settings.resamples
        )


def plan(options: Mapping[str, Any]) -> Plan:
    """Pairs with a policy, or raters of any label space."""
    settings = config_of(options)
    if settings.raters or settings.labels is not None:
        from adjudge.protocols.consistency.raters_plan import RatersPlan

        return RatersPlan(settings)
    return PairPlan(settings)
