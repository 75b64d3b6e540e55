"""The example of the triage protocol: invented models over invented images, with and without tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adjudge.protocols.triage.generate import generate


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write results and manifest, and return the configuration that judges them."""
    return generate(folder, seed=seed, force=True).config()
