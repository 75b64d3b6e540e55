"""Protocol `consistency`: how far two validators of the same answers agree, and what ships."""

from __future__ import annotations

from adjudge.protocols.base import Packaged

PROTOCOL = Packaged(__name__, version="4", title="Agreement of two validators, and what ships")
