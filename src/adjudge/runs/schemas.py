"""JSON Schemas: those that a package publishes as files in its folder json_schemas, and that of manifest.json."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec

from adjudge.provenance.manifest import Manifest

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def published(package: str) -> dict[str, dict[str, Any]]:
    """The schemas of a package by name; none where it has no such folder."""
    folder = files(package) / "json_schemas"
    names = sorted(file.name.removesuffix(".json") for file in folder.iterdir()) if folder.is_dir() else []
    return {name: schema(package, name) for name in names}


def schema(package: str, name: str) -> dict[str, Any]:
    """One schema of a package."""
    text = (files(package) / "json_schemas" / f"{name}.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Any])


def of_struct(kind: type, **more: Any) -> dict[str, Any]:
    """The schema of a declared struct."""
    return {"$schema": DRAFT, **more, **msgspec.json.schema(kind)}


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas that all protocols share, by name."""
    return {"manifest": of_struct(Manifest, title="manifest.json of a run"), **published(__package__)}
