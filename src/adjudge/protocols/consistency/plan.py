"""The consistency protocol's plan: from a configuration to judged pairs, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.errors import ConfigError
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.registry import rule_sets
from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition, Plan
from adjudge.protocols.consistency import rows as r
from adjudge.protocols.consistency import samples as columns
from adjudge.protocols.consistency.blocks import BlockReader
from adjudge.protocols.consistency.judge import Judge, check_citations
from adjudge.protocols.consistency.measure import finish
from adjudge.protocols.consistency.partials import Partial, partial
from adjudge.protocols.consistency.policy import DEFAULT, LABELS, check, load
from adjudge.protocols.consistency.read import PairReader
from adjudge.protocols.consistency.rules import PairContext
from adjudge.provenance.canonical import digest
from adjudge.verdict.gates import Gate

PA_GATE, KAPPA_GATE, ABSTAIN_GATE = 0.90, 0.75, 0.02
MOST_LABELS = 127
_PATHS = ("pairs", "scholar", "auditor", "answers", "raters")


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


def configured(options: Mapping[str, Any]) -> ConsistencyConfig:
    """The checked configuration."""
    try:
        config = msgspec.convert(dict(options), ConsistencyConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"consistency: {error}") from None
    for name, value, allowed in (
        ("on_bad_row", config.on_bad_row, ("error", "skip")),
        ("kappa_undefined", config.kappa_undefined, ("unknown", "pass")),
    ):
        if value not in allowed:
            raise ConfigError(f"{name} is {value!r}, expected one of {', '.join(allowed)}")
    if config.resamples < 100:
        raise ConfigError(f"resamples is {config.resamples}, expected 100 or more")
    if config.labels is not None and len(set(config.labels)) < max(2, len(config.labels)):
        raise ConfigError(f"labels are {', '.join(config.labels)}; a label space has two different labels or more")
    if config.labels is not None and len(config.labels) > MOST_LABELS:
        raise ConfigError(f"labels are {len(config.labels)}; a label space has at most {MOST_LABELS}")
    given = [name for name in ("pairs", "raters") if getattr(config, name)]
    given += ["scholar and auditor"] if config.scholar or config.auditor else []
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise ConfigError(f"expected one of --pairs, --scholar with --auditor, or --raters; found {found}")
    if bool(config.scholar) != bool(config.auditor):
        raise ConfigError("--scholar and --auditor come together: one file of each agent's labels")
    if config.answers and not config.scholar:
        raise ConfigError("--answers goes with --scholar and --auditor; a pairs file carries its own answers")
    return config


def content_digest(config: dict[str, Any]) -> str:
    """The digest of what was asked, whatever the files are called."""
    return digest({key: value for key, value in config.items() if key not in _PATHS})


class PairPlan(Plan):
    """One configured evaluation of two validators over the protocol's own labels."""

    def __init__(self, config: ConsistencyConfig) -> None:
        self.settings = config
        self.policy = load(config.policy) if isinstance(config.policy, str) else check(config.policy, "policy")
        self.config = msgspec.to_builtins(config) | {"policy": self.policy.content}
        sets = rule_sets("consistency", tuple(config.rules))
        context = PairContext(config.reason_limit)
        self.graph = VerifierGraph([rule for rules in sets for rule in rules.build(context)])
        self.rules = [rule.table() for rule in self.graph.rules]
        self.judge_of = Judge(self.policy, self.graph)
        self.digests = {
            "config": content_digest(self.config),
            "policy": digest(self.policy.content),
            "rules": digest(self.rules),
            "labels": digest(list(LABELS)),
        }

    def default_gates(self) -> Sequence[Gate]:
        """The protocol's four gates."""
        config = self.settings
        pa, kappa, abstain = (
            default if value is None else value
            for value, default in (
                (config.pa_gate, PA_GATE),
                (config.kappa_gate, KAPPA_GATE),
                (config.abstain_gate, ABSTAIN_GATE),
            )
        )
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

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """Judge again from the stored columns and compare everything that follows from them."""
        batch = columns.restore(samples)
        again = self.graph.evaluate(batch)
        problems = [f"evidence: {difference}" for difference in again.differences(evidence)]
        return problems + columns.differences(samples, self.judge_of.decide(batch, again), self.judge_of.reasons)

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        del batch
        return partial(samples, evidence, self.judge_of.reasons)

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Agreement, finals and every estimate."""
        return finish(
            partials,
            self.policy.table,
            self.graph.layout,
            seed=self.settings.seed,
            resamples=self.settings.resamples,
        )


def plan(options: Mapping[str, Any]) -> Plan:
    """Pairs with a policy, or raters of any label space."""
    settings = configured(options)
    if settings.raters or settings.labels is not None:
        from adjudge.protocols.consistency.raters_plan import RatersPlan

        return RatersPlan(settings)
    return PairPlan(settings)
