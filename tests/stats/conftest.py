import json
from pathlib import Path

import pytest
from hypothesis import settings

REFERENCE = Path(__file__).parent.parent / "reference"

# The first example pays for imports; how long an example takes is no property of the code.
settings.register_profile("stats", deadline=None)
settings.load_profile("stats")


@pytest.fixture(scope="session")
def reference():
    """Published values by file name, each with its source."""

    def read(name):
        return json.loads((REFERENCE / f"{name}.json").read_text(encoding="utf-8"))

    return read
