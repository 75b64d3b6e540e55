"""Protocol `gui`: a GUI agent's actions along recorded episodes."""

from __future__ import annotations

from adjudge.protocols.base import Packaged

PROTOCOL = Packaged(__name__, version="2", title="A GUI agent's actions along recorded episodes")
