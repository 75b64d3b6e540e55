"""Protocol `triage`: a classifier that may say "uncertain"."""

from __future__ import annotations

from adjudge.protocols.base import Packaged

PROTOCOL = Packaged(__name__, version="3", title="Triage: real, fake or uncertain")
