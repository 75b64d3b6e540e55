"""metrics.json: the flat metrics, every estimate, buckets and gates; no time in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.protocols.base import Measured, Plan, Protocol
from adjudge.provenance.manifest import SCHEMA_VERSION
from adjudge.stats.estimate import Estimate
from adjudge.verdict.gates import Gate, judge


def metrics_document(chosen: Protocol, plan: Plan, measured: Measured, gates: Sequence[Gate]) -> dict[str, Any]:
    """The document, from the numbers alone, so that `verify` can make it again."""
    by_name: dict[str, Estimate] = {}
    for name, where, estimate in measured.estimates:
        by_name[f"{where.partition('=')[2]}/{name}" if where else name] = estimate
    if len({where for _, where, _ in measured.estimates}) == 1:
        by_name |= {name: estimate for name, _, estimate in measured.estimates}
    outcomes, passed = judge(gates, by_name)
    return {
        "schema_version": SCHEMA_VERSION,
        "protocol": chosen.name,
        "protocol_version": chosen.version,
        "digests": {**plan.digests, **measured.digests},
        "pass": passed,
        "gates": outcomes,
        "buckets": measured.buckets,
        **measured.top,
        "metrics": measured.metrics,
        "estimates": [
            {"name": name, "slice": where, **estimate.to_dict()} for name, where, estimate in measured.estimates
        ],
        "notes": measured.notes,
    }
