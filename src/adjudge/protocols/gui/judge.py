"""Verdict and bucket of every step: fully correct, not, or a prediction for no recorded step."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, Severity
from adjudge.protocols.common.columns import coded
from adjudge.protocols.gui.batch import MISSING, UNMATCHED, UNPARSED, GuiBatch

CORRECT, INCORRECT, OTHER_STEP = range(3)
VERDICTS = ("correct", "incorrect", "unmatched")
_FAILED, _UNPARSED, _MISSING = (BUCKETS.index(name) for name in ("failed", "unparsed", "missing"))
_NO_BUCKET = -1


def decided(batch: GuiBatch, evidence: Evidence) -> dict[str, pa.Array]:
    """The columns that follow from the evidence: a step is correct unless a critical rule failed, which it then cites.

    A prediction for no step is in no bucket, so that the buckets add up to the steps.
    """
    critical = evidence.failed(Severity.CRITICAL)
    correct = ~critical.any(axis=0)
    bucket = np.where(correct, BUCKETS.index("passed"), _FAILED)
    for status, place in ((UNPARSED, _UNPARSED), (MISSING, _MISSING), (UNMATCHED, _NO_BUCKET)):
        bucket[batch.status == status] = place
    verdict = np.where(correct, CORRECT, INCORRECT)
    verdict[batch.status == UNMATCHED] = OTHER_STEP
    return {
        "bucket": coded(bucket, BUCKETS, np.int32),
        "verdict": coded(verdict, VERDICTS, np.int32),
        "cites": pack_citations(critical | correct),
        "distance": pa.array(batch.distance[0], from_pandas=True),
    }
