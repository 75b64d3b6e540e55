"""The verdict on every triage record: the first link of the chain of rules that failed decides."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from adjudge.errors import RunError
from adjudge.evidence.atoms import citation_column
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, FAIL, PASS
from adjudge.protocols.common.columns import coded
from adjudge.protocols.triage.rules import CHAIN

VERDICTS = ("right", "missing", "errored", "unparsed", "abstained", "wrong")
_BUCKET = np.array(
    [BUCKETS.index(name) for name in ("passed", "missing", "errored", "unparsed", "abstained", "failed")]
)


def adjudicate(evidence: Evidence) -> dict[str, pa.Array]:
    """Verdict, bucket and citations: the link that failed is cited; a right answer passed the chain and cites all of it."""
    chain = evidence.layout.positions_of(*CHAIN)
    outcome = evidence.outcome[chain]
    failed = outcome == FAIL
    right = (outcome == PASS).all(axis=0)
    undecided = ~(right | failed.any(axis=0))
    if undecided.any():
        raise RunError(f"{int(undecided.sum())} records have no verdict: a rule of the chain could not be applied")
    verdict = np.where(right, 0, failed.argmax(axis=0) + 1)
    cites = np.zeros((evidence.layout.width, len(VERDICTS)), dtype=bool)
    cites[chain, 0] = True
    cites[chain, np.arange(1, len(VERDICTS))] = True
    return {
        "bucket": coded(_BUCKET[verdict], BUCKETS, np.int32),
        "verdict": coded(verdict, VERDICTS, np.int32),
        "cites": citation_column(np.packbits(cites, axis=0, bitorder="little")[:, verdict]),
    }
