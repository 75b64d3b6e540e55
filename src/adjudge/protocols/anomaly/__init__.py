"""Protocol `anomaly`: a detector of attacks on sensor streams under a reviewer's contract."""

from __future__ import annotations

from adjudge.protocols.base import Packaged

PROTOCOL = Packaged(__name__, version="2", title="A detector under a reviewer's contract")
