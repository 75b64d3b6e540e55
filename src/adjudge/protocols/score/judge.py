"""Verdict and bucket of every attempt: the first link of the chain that failed decides and is cited."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, FAIL, PASS
from adjudge.protocols.common.columns import coded
from adjudge.protocols.score.batch import ScoreBatch
from adjudge.protocols.score.rules import CHAIN
from adjudge.readers.logs.record import SCORED

VERDICTS = ("passed", "failed", "scored", "abstained", "unparsed", "errored", "missing")
"""`scored`: there is a score and no threshold to hold it to; its bucket is `passed`."""

_SCORED = VERDICTS.index("scored")
_BUCKET = np.array([BUCKETS.index("passed" if word == "scored" else word) for word in VERDICTS], dtype=np.int8)


def decided(batch: ScoreBatch, evidence: Evidence) -> dict[str, pa.Array]:
    """The columns that follow from the batch and its evidence."""
    with np.errstate(invalid="ignore"):
        reached = np.where(np.isnan(batch.threshold), _SCORED, np.where(batch.score >= batch.threshold, 0, 1))
    reached = np.where(batch.success >= 0, 1 - batch.success, reached)
    verdict = np.where(batch.status == SCORED, reached, batch.status + _SCORED).astype(np.int8)
    chain = evidence.layout.positions_of(*CHAIN)
    outcome = evidence.outcome[chain]
    judged = _BUCKET[verdict] == 0
    cites = np.zeros((evidence.layout.width, batch.n), dtype=bool)
    cites[chain] = np.where(judged, outcome == PASS, outcome == FAIL)
    return {
        "bucket": coded(_BUCKET[verdict], BUCKETS),
        "verdict": coded(verdict, VERDICTS),
        "cites": pack_citations(cites),
    }
