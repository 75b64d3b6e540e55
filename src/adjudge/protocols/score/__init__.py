"""Protocol `score`: any evaluation that left a score per sample."""

from __future__ import annotations

from adjudge.protocols.base import Packaged

PROTOCOL = Packaged(
    __name__,
    version="2",
    title="Scores of any evaluation, as reported by its log",
    unproven="that the harness judged rightly: scores are as the log reports them",
)
