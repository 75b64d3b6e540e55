"""The kinds of records that the consistency protocol reads."""

from __future__ import annotations

from adjudge.protocols.base import Role
from adjudge.protocols.consistency.raters import Rating
from adjudge.protocols.consistency.rows import AgentRow, AnswerRow, PairRow

ROLES = {
    "pairs": Role(PairRow, (("qid",), ("scholar",), ("auditor",)), "adjudge consistency --pairs FILE"),
    "scholar": Role(AgentRow, (("qid",), ("label", "votes")), "adjudge consistency --scholar FILE --auditor …"),
    "answers": Role(
        AnswerRow, (("qid",), ("answer_json", "flags")), "adjudge consistency --scholar … --auditor … --answers FILE"
    ),
    "raters": Role(Rating, (("item", "qid", "id"), ("label",)), "adjudge consistency --raters FILE …"),
}
