"""Protocol `check`: the user's own rules over any structured output."""

from __future__ import annotations

from adjudge.protocols.base import Packaged

PROTOCOL = Packaged(__name__, version="2", title="Structured outputs against your own rules")
