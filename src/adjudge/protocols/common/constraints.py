"""Constraints and their echoes as they are compared: the order of a list, and what it says twice, do not matter."""

from __future__ import annotations

from typing import Any

import msgspec

_DEEPEST = 50


def comparable(value: Any) -> bytes:
    """The value in one form for all that mean the same: lists as sets, keys in order."""
    return msgspec.json.encode(_sorted(value), order="sorted")


def _sorted(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:  # as it stands: nobody means an order there
        return value
    if isinstance(value, dict):
        return {key: _sorted(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        parts = {msgspec.json.encode(_sorted(part, depth + 1), order="sorted") for part in value}
        return [msgspec.Raw(part) for part in sorted(parts)]
    return value
