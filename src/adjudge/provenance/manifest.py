"""The manifest: what was evaluated, with what, and the digest of every file of the run."""

from __future__ import annotations

from typing import Any

import msgspec

SCHEMA_VERSION = "1.0"


class InputFile(msgspec.Struct, kw_only=True):
    """A file that was read: its role, its name (not its folder), size and content digest."""

    role: str
    name: str
    bytes: int
    sha256: str


class RunFile(msgspec.Struct, kw_only=True):
    """A file of the run."""

    path: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, kw_only=True):
    """manifest.json. Times stand here and nowhere else, so that the other files are equal on a re-run."""

    schema_version: str
    protocol: str
    protocol_version: str
    rule_versions: dict[str, str] = {}
    command: list[str]
    config: dict[str, Any]
    digests: dict[str, str]
    seeds: dict[str, int]
    inputs: list[InputFile]
    files: list[RunFile]
    environment: dict[str, str]
    notes: list[str]
    timestamp: str
    timings: dict[str, float]
    verdict: str | None = None
