"""The example of the consistency protocol: pairs of a Scholar and an Auditor over invented questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adjudge.protocols.consistency.generate import generate


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write the pairs and return the configuration that judges them."""
    return {"pairs": [str(generate(folder, seed=seed, force=True))], "policy": "refusal-aware"}
