"""Charts are Vega-Lite specifications in a package's folder vega, JSON with holes that a protocol fills with its rows."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

import msgspec

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

Spec = dict[str, Any]

_HOLE = re.compile(r"\$(\w+)")


def chart(package: str, template: str, /, name: str = "", **values: Any) -> Spec:
    """A chart of a run, with the name by which `report --chart` knows it (that of its file where none is given)."""
    return {"name": name or template, "spec": {"$schema": SCHEMA, **filled(package, template, **values)}}


def filled(package: str, template: str, /, **values: Any) -> Spec:
    """A specification, or a part of one, in which `"$key"` became the value of the key, and `… $key …` a text with it.

    A layer with `"if": "$key"` is left out where the value is empty.
    """
    spec: Spec = _fill(_read(package, template), values)
    return spec


@cache
def _read(package: str, template: str) -> Spec:
    return msgspec.json.decode((files(package) / "vega" / f"{template}.json").read_bytes(), type=Spec)


def _fill(part: Any, values: dict[str, Any]) -> Any:
    if isinstance(part, dict):
        return {key: _fill(item, values) for key, item in part.items() if key != "if"}
    if isinstance(part, list):
        kept = (item for item in part if not isinstance(item, dict) or _fill(item.get("if", True), values))
        return [_fill(item, values) for item in kept]
    if not isinstance(part, str) or "$" not in part:
        return part
    hole = _HOLE.fullmatch(part)
    return Template(part).substitute(values) if hole is None else values[hole[1]]
