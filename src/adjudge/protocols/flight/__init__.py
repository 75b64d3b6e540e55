"""Protocol `flight`: a model's prediction of the next flight state, against physics and safety."""

from __future__ import annotations

from adjudge.protocols.base import Packaged

PROTOCOL = Packaged(__name__, version="3", title="Flight-state predictions against physics and safety")
