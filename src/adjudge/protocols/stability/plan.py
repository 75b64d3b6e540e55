"""The stability plan: gold items and runs to judged items, aggregates with intervals, and gates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.errors import ConfigError
from adjudge.evidence.citations import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, Outcome
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.columns import coded
from adjudge.protocols.common.plan import BatchPlan, configured
from adjudge.protocols.stability import batch as b
from adjudge.protocols.stability.measure import Partial, finish
from adjudge.protocols.stability.rules import BOUNDS, StabilityContext
from adjudge.verdict.gates import Gate

STABLE, UNSTABLE, TOO_FEW = range(3)
VERDICTS = ("STABLE", "UNSTABLE", "TOO_FEW_RUNS")


class StabilityConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that changes a number."""

    gold: list[str] = []
    runs: list[str] = []
    min_runs: int = 2
    bounds: dict[str, float] = {}
    rules: list[str] = []
    seed: int = 0
    resamples: int = 2000


class StabilityPlan(BatchPlan):
    """One configured evaluation of answers under jitter."""

    source = "the measures give"

    def __init__(self, options: Mapping[str, Any]) -> None:
        config = configured("stability", options, StabilityConfig)
        for name in ("gold", "runs"):
            if not getattr(config, name):
                raise ConfigError(f"no {name} file was given (--{name} FILE)")
        unknown = set(config.bounds) - set(BOUNDS)
        if unknown:
            raise ConfigError(f"there is no measure {min(unknown)!r}; the measures are {', '.join(BOUNDS)}")
        if config.min_runs < 1:
            raise ConfigError(f"min_runs is {config.min_runs}, expected 1 or more")
        self.settings = config
        self.bounds = BOUNDS | config.bounds
        self.config = msgspec.to_builtins(config) | {"bounds": self.bounds}
        self.use_rules("stability", StabilityContext(self.bounds, config.min_runs), config.rules)
        self.use_digests(without=("gold", "runs"), rules=self.rules)

    def default_gates(self) -> Sequence[Gate]:
        """A bound on every aggregate, and no item with too few runs; a measure that is about no item passes."""
        return (
            Gate("runs", "items_with_too_few_runs", "==", 0.0),
            *(
                Gate(name, name, "<=" if name == "ned50" else ">=", bound, undefined="pass")
                for name, bound in self.bounds.items()
            ),
        )

    def inputs(self) -> Sequence[Input]:
        """Gold items and runs, keyed by qid."""
        return [
            Input(role, tuple(getattr(self.settings, role)), None, b.EXPECTED[role], read=b.READ[role], keys=kind)
            for role, kind in b.ROLES.items()
        ]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of gold items with their measures."""
        for batch, names, claims in b.read(partition):
            evidence = self.graph.evaluate(batch)
            table = pa.table(
                {
                    "sample": pa.array(names, pa.string()),
                    "model": pa.array(["runs"] * batch.n).dictionary_encode(),
                    **self.decided(batch, evidence),
                    **b.columns(batch),
                }
            )
            texts = [[claim[:2000] for claim in answers] for answers in claims]
            yield Judged(table, evidence, pa.table({"claims": pa.array(texts, pa.list_(pa.string()))}))

    def restore(self, samples: pa.Table) -> b.StabilityBatch:
        """The measures as they were."""
        return b.restore(samples)

    def decided(self, batch: b.StabilityBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """Verdict, bucket and citations: an item fails for what failed, and holds by all that was applied."""
        failed = evidence.outcome == Outcome.FAIL
        applied = failed | (evidence.outcome == Outcome.PASS)
        few, unstable = failed[0], failed[1:].any(axis=0)
        verdict = np.where(few, TOO_FEW, np.where(unstable, UNSTABLE, STABLE))
        bucket = np.where(batch.counts["runs"] == 0, BUCKETS.index("missing"), verdict != STABLE)
        return {
            "bucket": coded(bucket, BUCKETS),
            "verdict": coded(verdict, VERDICTS),
            "cites": pack_citations(np.where(verdict == STABLE, applied, failed)),
        }

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        del evidence, batch
        names = samples.column("sample").to_pylist()
        return Partial(
            batch=b.restore(samples),
            names=names,
            verdicts=samples.column("verdict").to_pylist(),
            buckets=samples.column("bucket").to_pylist(),
            digest=hashlib.sha256("\n".join(names).encode()).digest(),
        )

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Aggregates with intervals clustered by qid."""
        settings = self.settings
        return finish(partials, seed=settings.seed, resamples=settings.resamples, min_runs=settings.min_runs)


plan = StabilityPlan
