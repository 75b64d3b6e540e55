"""The kinds of records that the stability protocol reads."""

from __future__ import annotations

from adjudge.protocols.base import Role
from adjudge.protocols.stability.batch import Gold, RunRow

ROLES = {
    "gold": Role(Gold, (("qid",), ("question",)), "adjudge consistency stability --gold FILE --runs …"),
    "runs": Role(RunRow, (("qid",), ("run_id",)), "adjudge consistency stability --gold … --runs FILE"),
}
