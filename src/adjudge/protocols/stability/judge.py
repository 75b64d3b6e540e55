"""Verdict and bucket of every gold item: stable, unstable, or with too few runs to say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, Outcome
from adjudge.protocols.common.columns import coded
from adjudge.protocols.stability.batch import StabilityBatch

STABLE, UNSTABLE, TOO_FEW = range(3)
VERDICTS = ("STABLE", "UNSTABLE", "TOO_FEW_RUNS")


def decided(batch: StabilityBatch, evidence: Evidence) -> dict[str, pa.Array]:
    """Verdict, bucket and citations: an item fails for what failed, and holds by all that was applied."""
    failed = evidence.outcome == Outcome.FAIL
    applied = failed | (evidence.outcome == Outcome.PASS)
    too_few = failed[evidence.layout.positions_of("runs")].any(axis=0)
    unstable = failed.any(axis=0) & ~too_few
    verdict = np.where(too_few, TOO_FEW, np.where(unstable, UNSTABLE, STABLE))
    bucket = np.where(batch.counts["runs"] == 0, BUCKETS.index("missing"), verdict != STABLE)
    return {
        "bucket": coded(bucket, BUCKETS),
        "verdict": coded(verdict, VERDICTS),
        "cites": pack_citations(np.where(verdict == STABLE, applied, failed)),
    }
