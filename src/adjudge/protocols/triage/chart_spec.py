"""The frame that every chart of the triage protocol shares."""

from __future__ import annotations

from typing import Any

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


def spec(name: str, title: str, description: str, body: dict[str, Any]) -> dict[str, Any]:
    """A chart by name, with its title and what it shows."""
    return {
        "name": name,
        "spec": {
            "$schema": _SCHEMA,
            "title": {"text": title, "subtitle": description, "anchor": "start", "offset": 14},
            "description": f"{title}. {description}",
            "config": {"view": {"stroke": "#bbbbbb"}, "axis": {"labelOverlap": True}},
            **body,
        },
    }
