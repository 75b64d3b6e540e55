"""Semantic stability, the second half of `consistency`: are answers the same under seed and prompt jitter."""

from __future__ import annotations

from adjudge.protocols.base import Packaged

PROTOCOL = Packaged(__name__, version="2", title="Answers under seed and prompt jitter")
