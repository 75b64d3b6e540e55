"""The example of the flight protocol: generated data, and the library and flags that judge it in the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from adjudge.protocols.flight.config import fitting_library
from adjudge.protocols.flight.generate import generate

FLIGHTS, SECONDS = 24, 26


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write the data set and return the configuration of the demo."""
    files = generate(folder, seed=seed, task="S1", flights=FLIGHTS, seconds=SECONDS, force=True)
    prior = msgspec.json.decode(files.confidence.read_bytes())
    return {
        "task": "S1",
        "outputs": [str(path) for path in files.outputs.values()],
        "reference": [str(files.reference)],
        "confidence": {item["model_name"]: item["c_score"] for item in prior["results"]},
        "library": fitting_library(),
    }
