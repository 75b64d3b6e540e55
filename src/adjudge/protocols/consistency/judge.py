"""Arbitration of every pair: the policy's row for each item, its final, its bucket and the atoms it cites."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import ConfigError
from adjudge.evidence.atoms import citation_column, packed_bits
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, Outcome
from adjudge.protocols.common.columns import coded
from adjudge.protocols.consistency import encoding
from adjudge.protocols.consistency.batch import PairBatch
from adjudge.protocols.consistency.policy import FINALS, REJECT, Policy
from adjudge.protocols.consistency.rules import DECIDING

UNPAIRED = "UNPAIRED"
VERDICTS = (*FINALS, UNPAIRED)
_PASSED, _FAILED, _UNPARSED, _MISSING = (BUCKETS.index(name) for name in ("passed", "failed", "unparsed", "missing"))


class Judge:
    """A policy bound to the positions of the evidence."""

    def __init__(self, policy: Policy, graph: VerifierGraph) -> None:
        table = policy.table
        self.table = table
        self.reasons = (*table.reasons, *encoding.STATUSES[1:])
        self._why = np.array([table.reasons.index(row.why) for row in table.rows], dtype=np.int8)
        self._final = np.array([FINALS.index(row.final) for row in table.rows], dtype=np.int8)
        behind = {name: graph.layout.positions_of(*codes) for name, codes in DECIDING.items()}
        # What a row's own inputs rest on, and, for what ships, also what the rows before it looked at and left.
        width = graph.layout.width
        cites_own = np.zeros((width, len(table.rows)), dtype=np.bool_)
        for index, row in enumerate(table.rows):
            for name in row.when:
                cites_own[behind[name], index] = True
        seen = np.logical_or.accumulate(cites_own, axis=1)
        complete = np.zeros((width, 1), dtype=np.bool_)
        complete[graph.layout.positions_of("pair")] = True
        self._own, self._seen, self._complete = packed_bits(cites_own), packed_bits(seen), packed_bits(complete)
        self._weighed = packed_bits(np.where(cites_own.any(axis=0), cites_own, seen))

    def decide(self, batch: PairBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """The columns that follow from the evidence and the policy."""
        paired = batch.status == encoding.PAIRED
        row = self.table.lookup(
            {
                "hard_flag": batch.hard_flag,
                "citations": batch.citations,
                "scholar": np.where(paired, batch.scholar, 0),
                "auditor": np.where(paired, batch.auditor, 0),
                "claim": batch.claim == encoding.REFUSAL_CLAIM,
            }
        )
        final = np.where(paired, self._final[row], len(FINALS))
        why = np.where(paired, self._why[row], len(self.table.reasons) + batch.status - 1)
        rejected = paired & (final == FINALS.index(REJECT))
        unpaired = np.where(batch.status == encoding.BAD_ROW, _UNPARSED, _MISSING)
        bucket = np.where(paired, np.where(rejected, _FAILED, _PASSED), unpaired)
        return {
            "bucket": coded(bucket, BUCKETS),
            "verdict": coded(final, VERDICTS),
            "why": coded(why, self.reasons),
            "cites": citation_column(self._cites(row, paired, rejected, evidence)),
        }

    def _cites(
        self, row: NDArray[np.int16], paired: NDArray[np.bool_], rejected: NDArray[np.bool_], evidence: Evidence
    ) -> NDArray[np.uint8]:
        failed, applied = packed_bits(evidence.outcome == Outcome.FAIL), packed_bits(evidence.outcome <= Outcome.FAIL)
        against, seen = self._own.take(row, axis=1) & failed, self._seen.take(row, axis=1) & applied
        # A rejection rests on what failed; where its row names nothing that failed, on all it looked at.
        cites: NDArray[np.uint8] = np.where(rejected & against.any(axis=0), against, seen)
        weighing = np.flatnonzero(rejected & ~against.any(axis=0))
        if weighing.size:
            weighed = self._weighed[:, row[weighing]] & applied[:, weighing]
            cites[:, weighing] = np.where(weighed.any(axis=0), weighed, seen[:, weighing])
        groundless = rejected & ~(cites & failed).any(axis=0)
        if groundless.any():
            index = int(row[np.argmax(groundless)])
            raise ConfigError(
                f"policy {self.table.name}: row {index + 1} ({self.table.rows[index].why}) rejects items in which nothing "
                f"failed ({int(groundless.sum())} of {groundless.size}); a rejection rests on something that did"
            )
        cites[:, ~paired] = 0
        return np.where(cites.any(axis=0), cites, self._complete)
