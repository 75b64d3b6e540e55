"""The example of the score protocol, for the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def example(folder: Path, seed: int) -> dict[str, Any] | None:
    """Nothing yet."""
    del folder, seed
    return None
