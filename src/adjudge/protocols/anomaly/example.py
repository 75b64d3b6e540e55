"""The example of the anomaly protocol: a short version of the simulated flights, judged with the residual detector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adjudge.protocols.anomaly.simulate import write_example


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write the flights and return the configuration that judges them."""
    return write_example(folder, seed=seed, flights=16, seconds=40.0, rate=20.0) | {"resamples": 500}
