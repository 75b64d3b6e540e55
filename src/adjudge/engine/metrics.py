"""metrics.json: the flat metrics, every estimate, buckets and gates; no time in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.engine import judges, matching
from adjudge.engine.judges import JudgeTally
from adjudge.engine.matching import IdDigest, Matching
from adjudge.engine.promises import Tally
from adjudge.evidence.layout import Layout
from adjudge.protocols.base import Measured, Plan, Protocol
from adjudge.provenance.manifest import SCHEMA_VERSION
from adjudge.stats.estimate import Estimate
from adjudge.stats.metric import Metric, declaration, headline, stored
from adjudge.verdict.gates import Gate, judge


@dataclass
class Counted:
    """What the engine counts itself, for every protocol alike."""

    tally: Tally = field(default_factory=Tally)
    matching: Matching = field(default_factory=Matching)
    ids: IdDigest = field(default_factory=IdDigest)
    """Of the records that the samples are about; `read_ids` of all that were read."""
    read_ids: IdDigest = field(default_factory=IdDigest)
    judges: JudgeTally = field(default_factory=JudgeTally)

    def merge(self, other: Counted) -> None:
        """Add what was counted of other partitions."""
        self.tally.merge(other.tally)
        self.matching.merge(other.matching)
        self.ids.merge(other.ids)
        self.read_ids.merge(other.read_ids)
        self.judges.merge(other.judges)

    def intake(self, notes: Sequence[str]) -> dict[str, Any]:
        """What intake.json says of the input, which nothing in the run repeats."""
        digests = {"ids_sha256": self.ids.hexdigest(), "read_ids_sha256": self.read_ids.hexdigest()}
        return {**self.matching.to_dict(), **digests, "notes": list(notes)}


def verdict_word(passed: bool | None) -> str | None:
    """Whether all gates pass, as the manifest says it."""
    return {True: "pass", False: "fail", None: None}[passed]


def metrics_of(chosen: Protocol) -> Sequence[Metric]:
    """The metrics of a protocol, and those that the engine adds to every run."""
    return (*chosen.metrics(), *matching.METRICS, *judges.METRICS)


def metrics_document(
    chosen: Protocol, plan: Plan, measured: Measured, counted: Counted, gates: Sequence[Gate]
) -> tuple[dict[str, Any], list[str]]:
    """The document, from the numbers alone, so that `verify` can make it again; and the promises that it breaks."""
    by_name: dict[str, Estimate] = {}
    for name, where, estimate in measured.estimates:
        by_name[f"{where.partition('=')[2]}/{name}" if where else name] = estimate
    if len({where for _, where, _ in measured.estimates if where}) == 1:
        by_name |= {name: estimate for name, _, estimate in measured.estimates}
    protocol_names = {name for name, _, _ in measured.estimates}
    counted_here = (*counted.matching.estimates(), *counted.judges.estimates())
    counts = [named for named in counted_here if named.name not in protocol_names]
    by_name |= {name: estimate for name, _, estimate in counts}
    metrics = metrics_of(chosen)
    names = [named.name for named in (*measured.estimates, *counts)]
    outcomes, passed = judge(gates, by_name)
    tally = counted.tally
    buckets, problems = tally.closed(measured.buckets) if measured.buckets else (tally.of_models(), [])
    tables = [*measured.sections]
    if plan.adjudicator is not None:
        tables += counted.judges.sections(plan.adjudicator.document())
    sections = {"sections": [section.to_dict() for section in tables]} if tables else {}
    document = {
        "schema_version": SCHEMA_VERSION,
        "protocol": chosen.name,
        "protocol_version": chosen.version,
        "digests": {**plan.digests, **measured.digests},
        "pass": passed,
        "gates": outcomes,
        "buckets": buckets,
        "headline": headline(metrics, names),
        "declared": stored(metrics, names),
        **_top(measured.top, metrics),
        **sections,
        "metrics": measured.metrics,
        "estimates": [
            {"name": name, "slice": where, **estimate.to_dict()}
            for name, where, estimate in (*measured.estimates, *counts)
        ],
        "notes": [*counted.matching.notes(), *counted.tally.notes(Layout.of(plan.rules)), *measured.notes],
    }
    return document, problems


def _top(top: dict[str, Any], metrics: Sequence[Metric]) -> dict[str, Any]:
    """The protocol's keys; what can be compared takes its direction, unit and range from the metric of the same name."""
    outcomes = top.get("comparable")
    if not isinstance(outcomes, list):
        return top
    return {**top, "comparable": [{**_declared(outcome, metrics), **outcome} for outcome in outcomes]}


def _declared(outcome: dict[str, Any], metrics: Sequence[Metric]) -> dict[str, Any]:
    metric = declaration(metrics, outcome["name"])
    if metric is None:
        return {}
    declared: dict[str, Any] = {}
    if metric.better is not None:
        declared["higher_is_better"] = metric.better == "higher"
    if outcome["kind"] == "mean":
        declared |= {"unit": metric.unit} if metric.unit else {}
        declared |= {"span": metric.high - metric.low} if metric.low is not None and metric.high is not None else {}
    return declared
