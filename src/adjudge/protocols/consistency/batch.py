"""A batch of items as columns: what the rules of the consistency protocol read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

REFUSAL = "not in context"
AGENTS = ("scholar", "auditor")

PAIRED, ONLY_SCHOLAR, ONLY_AUDITOR, BAD_ROW, UNKNOWN_ANSWER = range(5)
STATUSES = ("paired", "only_scholar", "only_auditor", "bad_row", "unknown_answer")

ABSENT = -1
"""In a column of small integers: the row does not say."""

NO_CLAIM, OTHER_CLAIM, REFUSAL_CLAIM = range(3)
CLAIMS = ("none", "other", "refusal_token")

NOT_A_MODEL, STABLE, UNSTABLE, CONTRADICTED = range(4)
SEEDING = ("not_a_model", "stable", "unstable", "votes_contradict_label")

Small = NDArray[np.int8]


@dataclass
class PairBatch:
    """Columns over n items. `reason_*` and `quotes`, `personal`, `seeding` have one row an agent (scholar, auditor)."""

    status: Small
    scholar: Small
    auditor: Small
    provenance: Small
    constraints: Small
    citations: Small
    out_of_scope: NDArray[np.int32]
    claim: Small
    answered: Small
    same_evidence: Small
    echoed: Small
    reason_length: NDArray[np.int32]
    personal: Small
    quotes: Small
    seeding: Small
    notes: dict[int, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Items in the batch."""
        return self.status.size

    @property
    def hard_flag(self) -> NDArray[np.bool_]:
        """Whether either red flag is raised."""
        raised: NDArray[np.bool_] = (self.provenance == 1) | (self.constraints == 1)
        return raised
