"""metrics.json: the flat metrics, every estimate, buckets and gates; no time in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.engine.matching import Matching
from adjudge.engine.promises import Tally
from adjudge.evidence.layout import Layout
from adjudge.protocols.base import Measured, Plan, Protocol
from adjudge.provenance.manifest import SCHEMA_VERSION
from adjudge.stats.estimate import Estimate
from adjudge.verdict.gates import Gate, judge


@dataclass
class Counted:
    """What the engine counts itself, for every protocol alike."""

    tally: Tally = field(default_factory=Tally)
    matching: Matching = field(default_factory=Matching)


def metrics_document(
    chosen: Protocol, plan: Plan, measured: Measured, counted: Counted, gates: Sequence[Gate]
) -> tuple[dict[str, Any], list[str]]:
    """The document, from the numbers alone, so that `verify` can make it again; and the promises that it breaks."""
    by_name: dict[str, Estimate] = {}
    for name, where, estimate in measured.estimates:
        by_name[f"{where.partition('=')[2]}/{name}" if where else name] = estimate
    if len({where for _, where, _ in measured.estimates}) == 1:
        by_name |= {name: estimate for name, _, estimate in measured.estimates}
    taken = {name for name, _, _ in measured.estimates}
    counts = [named for named in counted.matching.estimates() if named.name not in taken]
    by_name |= {name: estimate for name, _, estimate in counts}
    outcomes, passed = judge(gates, by_name)
    buckets, problems = counted.tally.closed(measured.buckets)
    sections = {"sections": [section.to_dict() for section in measured.sections]} if measured.sections else {}
    document = {
        "schema_version": SCHEMA_VERSION,
        "protocol": chosen.name,
        "protocol_version": chosen.version,
        "digests": {**plan.digests, **measured.digests},
        "pass": passed,
        "gates": outcomes,
        "buckets": buckets,
        **measured.top,
        **sections,
        "metrics": measured.metrics,
        "estimates": [
            {"name": name, "slice": where, **estimate.to_dict()}
            for name, where, estimate in (*measured.estimates, *counts)
        ],
        "notes": [*counted.matching.notes(), *counted.tally.notes(Layout.of(plan.rules)), *measured.notes],
    }
    return document, problems
