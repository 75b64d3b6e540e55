"""The consistency protocol's plan: from a configuration to judged pairs, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.errors import ConfigError
from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition, Plan
from adjudge.protocols.common.plan import BatchPlan, check_choices, check_resamples, configured
from adjudge.protocols.consistency import rows as r
from adjudge.protocols.consistency import samples as columns
from adjudge.protocols.consistency.batch import PairBatch
from adjudge.protocols.consistency.blocks import BlockReader
from adjudge.protocols.consistency.judge import Judge, check_citations
from adjudge.protocols.consistency.measure import finish
from adjudge.protocols.consistency.partials import Partial, partial
from adjudge.protocols.consistency.policy import DEFAULT, LABELS, check, load
from adjudge.protocols.consistency.read import PairReader
from adjudge.protocols.consistency.rules import PairContext
from adjudge.verdict.gates import Gate

GATES = {"pa_gate": 0.90, "kappa_gate": 0.75, "abstain_gate": 0.02}
"""The bounds that hold where the configuration gives none."""
MOST_LABELS = 127
PATHS = ("pairs", "scholar", "auditor", "answers", "raters")


class ConsistencyConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that changes a number."""

    pairs: list[str] = []
    scholar: list[str] = []
    auditor: list[str] = []
    answers: list[str] = []
    raters: list[str] = []
    labels: list[str] | None = None
    ordered: bool = False
    reference: str | None = None
    positive: str | None = None
    policy: Any = DEFAULT
    on_bad_row: str = "error"
    pa_gate: float | None = None
    kappa_gate: float | None = None
    abstain_gate: float | None = None
    kappa_undefined: str = "unknown"
    reason_limit: int = 280
    rules: list[str] = []
    seed: int = 0
    resamples: int = 2000


def config_of(options: Mapping[str, Any]) -> ConsistencyConfig:
    """The checked configuration."""
    config = configured("consistency", options, ConsistencyConfig)
    check_choices(config, {"on_bad_row": ("error", "skip"), "kappa_undefined": ("unknown", "pass")})
    check_resamples(config.resamples)
    if config.labels is not None and len(set(config.labels)) < max(2, len(config.labels)):
        raise ConfigError(f"labels are {', '.join(config.labels)}; a label space has two different labels or more")
    if config.labels is not None and len(config.labels) > MOST_LABELS:
        raise ConfigError(f"labels are {len(config.labels)}; a label space has at most {MOST_LABELS}")
    inputs = [name for name in ("pairs", "raters") if getattr(config, name)]
    inputs += ["scholar and auditor"] if config.scholar or config.auditor else []
    if len(inputs) != 1:
        named = " and ".join(inputs) or "none"
        raise ConfigError(f"expected one of --pairs, --scholar with --auditor, or --raters; found {named}")
    if bool(config.scholar) != bool(config.auditor):
        raise ConfigError("--scholar and --auditor come together: one file of each agent's labels")
    if config.answers and not config.scholar:
        raise ConfigError("--answers goes with --scholar and --auditor; a pairs file carries its own answers")
    return config


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
                keys=r.ROLES[role],
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
            check_citations(finals, evidence, read.samples)
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
