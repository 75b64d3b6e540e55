"""The example of the stability protocol: gold questions and five runs of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adjudge.protocols.stability.generate import generate


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write the questions and runs, and return the configuration that judges them."""
    gold, runs = generate(folder, seed=seed, force=True)
    return {"gold": [str(gold)], "runs": [str(runs)]}
