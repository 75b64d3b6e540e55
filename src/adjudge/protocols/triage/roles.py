"""The kinds of records that the triage protocol reads."""

from __future__ import annotations

from adjudge.protocols.base import Role
from adjudge.readers.triage_results import ManifestRow, Result

ROLES = {
    "results": Role(Result, (("id",), ("prediction",)), "adjudge triage --results FILE"),
    "manifest": Role(ManifestRow, (("id",), ("label",)), "adjudge triage --results … --manifest FILE"),
}
