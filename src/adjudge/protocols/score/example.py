"""The example of the score protocol: two invented models on one task, in logs of Inspect's shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adjudge.protocols.score.generate import write_example


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write the logs, and return the configuration that judges them."""
    return {"logs": [str(path) for path in write_example(folder, seed, force=True)]}
