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
from adjudge.protocols.consistency.policy import DEFAULT, LABELS, check, load
from adjudge.protocols.consistency.rules import PairContext
from adjudge.verdict.gates import Gate


class PairPlan(BatchPlan):
    """One configured evaluation of two validators over the protocol's own labels."""

    source = "the evidence and the policy give"
    unread = "beyond the length of reasons, personal data and quotes in them, and whether a claim refuses"

    def __init__(self, config: ConsistencyConfig) -> None:
        self.settings = config
        policy = config.policy or DEFAULT
        self.policy = load(policy) if isinstance(policy, str) else check(policy, "policy")
        self.config = msgspec.to_builtins(config) | {"policy": self.policy.content}
        self.use_rules("consistency", PairContext(config.reason_limit, config.flags), config.rules)
        self.use_digests(without=PATHS, policy=self.policy.content, rules=self.rules, labels=list(LABELS))
        self.judge_of = Judge(self.policy, self.graph)

    def default_gates(self) -> Sequence[Gate]:
        """The protocol's gates; where nothing can carry flags, that on red flags is not among them."""
        config = self.settings
        bounds = GATES | {name: bound for name in GATES if (bound := getattr(config, name)) is not None}
        gates = (
            Gate("pa", "percent_agreement", ">=", bounds["pa_gate"]),
            Gate("kappa", "kappa", ">=", bounds["kappa_gate"], undefined=config.kappa_undefined),
            Gate("abstain", "abstain_rate", "<=", bounds["abstain_gate"]),
            Gate("paired", "paired_share", ">=", bounds["paired_gate"]),
        )
        can_carry_flags = config.pairs or config.answers
        return (*gates, Gate("red_flags", "shipped_with_red_flag", "==", 0.0)) if can_carry_flags else gates

    def inputs(self) -> Sequence[Input]:
        """Pairs, or two agents and their answers, keyed by qid."""
        settings = self.settings
        meaning, skip_bad = r.Meaning(settings.map, settings.flags), settings.on_bad_row == "skip"
        readers = {role: r.BlockReader(role, meaning, skip_bad=skip_bad) for role in r.ROW_TYPES}
        return [
            Input(
                role, paths, None, r.EXPECTED[role], limited=role == "pairs", read=reader.read, keys=r.ROW_TYPES[role]
            )
            for role, reader in readers.items()
            if (paths := tuple(getattr(settings, role)))
        ]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of items with their evidence and finals."""
        settings = self.settings
        skip_bad = settings.on_bad_row == "skip"
        reader = PairReader(paired=bool(settings.pairs), flags=len(settings.flags), skip_bad=skip_bad)
        for read in reader.read(partition):
            evidence = self.graph.evaluate(read.batch)
            table = columns.table(read, settings.flags, self.decided(read.batch, evidence))
            yield Judged(table, evidence, columns.outputs(read), read.batch)

    def restore(self, samples: pa.Table) -> PairBatch:
        """The pairs as they were."""
        return columns.restore(samples, self.settings.flags)

    def decided(self, batch: PairBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """Finals, reasons, buckets and citations."""
        return self.judge_of.decide(batch, evidence)

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """Look into every reason and claim again; what was masked or cut is left."""
        return columns.reread(samples, self.restore(samples), outputs)

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        batch = self.restore(samples) if batch is None else batch
        return partial(samples, batch, evidence, self.judge_of.reasons)

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Agreement, finals and every estimate."""
        return finish(partials, self.policy.table, self.graph.layout, self.settings)


def plan(options: Mapping[str, Any]) -> Plan:
    """Pairs with a policy, or raters of any label space."""
    settings = config_of(options)
    if settings.raters:
        from adjudge.protocols.consistency.raters_plan import RatersPlan

        return RatersPlan(settings)
    return PairPlan(settings)
