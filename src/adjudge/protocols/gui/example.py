"""The example of the gui protocol: generated episodes, and an agent that clicks off target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adjudge.protocols.gui.generate import generate


def example(folder: Path, seed: int) -> dict[str, Any]:
    """The data set of the demo, and the configuration that judges the agent that clicks off target."""
    generate(folder, seed=seed, force=True)
    return {
        "episodes": [str(folder / "episodes.jsonl")],
        "predictions": [str(folder / "predictions_off_target.jsonl")],
        "outcomes": [str(folder / "outcomes_off_target.jsonl")],
        "space": "normalized",
        "bbox": "xyxy",
        "config_path": "example",
        "backend": "off_target",
    }
