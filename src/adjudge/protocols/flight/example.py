"""The example of the flight protocol: generated data, and the library and flags that judge it in the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from adjudge.protocols.flight.generate import generate
from adjudge.protocols.flight.library import DEFAULT, load

FLIGHTS, SECONDS = 24, 26


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write the data set and return the configuration of the demo."""
    made = generate(folder, seed=seed, task="S1", flights=FLIGHTS, seconds=SECONDS, force=True)
    prior = msgspec.json.decode(made.confidence.read_bytes())
    return {
        "task": "S1",
        "outputs": [str(path) for path in made.outputs.values()],
        "reference": [str(made.reference)],
        "confidence": {item["model_name"]: item["c_score"] for item in prior["results"]},
        "library": demo_library(),
    }


def demo_library() -> dict[str, Any]:
    """ga-light/1 with the two options that real aircraft need: altitude offsets, and being on the ground."""
    content = load(DEFAULT).content
    content["name"] = "ga-light/1, relative altitude, airborne only"
    content["rules"]["altitude_consistency"]["relative_to_shown"] = True
    content["airborne_only"]["enabled"] = True
    return content
