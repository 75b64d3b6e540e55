"""What all tests share: the public data beside the project, and small flight runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The public data sets; a test that needs them is marked realdata."""
    folder = Path(os.environ.get("ADJUDGE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the public data sets are not at {folder}; set ADJUDGE_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def write_lines():
    """Write records as JSON Lines; strings are written as they are."""

    def write(path: Path, rows: list[Any]) -> str:
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(path)

    return write
