"""Canonical JSON and content digests: the same content gives the same bytes and the same hash everywhere."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import ConfigError


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces; a number that JSON cannot carry is a ConfigError, never NaN in a file."""
    _refuse_nan(value, "$")
    return msgspec.json.encode(value, order="sorted")


def pretty(value: Any) -> bytes:
    """The JSON that stands in the run directory: readable, one byte sequence for one value, a newline at the end."""
    _refuse_nan(value, "$")
    plain = json.loads(msgspec.json.encode(value))
    return (json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def digest(value: Any) -> str:
    """SHA-256 over the canonical JSON of a value."""
    return hashlib.sha256(canonical(value)).hexdigest()


def short(value: Any) -> str:
    """The first 16 hex digits of `digest`, as shown to people."""
    return digest(value)[:16]


def file_digest(path: Path) -> str:
    """SHA-256 over the bytes of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _refuse_nan(value: Any, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where} is {value}, which JSON cannot carry; a number that does not exist is null")
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_nan(item, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _refuse_nan(item, f"{where}[{index}]")
