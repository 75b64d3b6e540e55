"""YAML files of the user: configurations, gates, rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adjudge.readers.settings import text_of, yaml_of


def read_yaml(path: str | Path) -> Any:
    """What a YAML file holds."""
    return yaml_of(text_of(path), path)
