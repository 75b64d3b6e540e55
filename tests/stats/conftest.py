import json
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parent.parent / "reference"


@pytest.fixture(scope="session")
def reference():
    """Published values by file name, each with its source."""

    def read(name):
        return json.loads((REFERENCE / f"{name}.json").read_text(encoding="utf-8"))

    return read
