"""Pieces of Vega-Lite specifications of which the charts of several protocols are put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

Spec = dict[str, Any]


def chart(name: str, title: Any, **body: Any) -> Spec:
    """A chart of a run, with the name by which `report --chart` knows it."""
    return {"name": name, "spec": {"$schema": SCHEMA, "title": title, **body}}


def layer(
    mark: str, encoding: Spec, *, data: Sequence[Spec] | None = None, where: str | None = None, **style: Any
) -> Spec:
    """One layer: a mark in a style, over the `data` or else the chart's own, only `where` an expression holds."""
    rows = {} if data is None else {"data": {"values": data}}
    chosen = {} if where is None else {"transform": [{"filter": where}]}
    return {**rows, **chosen, "mark": {"type": mark, **style}, "encoding": encoding}


def intervals(axis: Spec, value: str, colour: str, **encoding: Any) -> list[Spec]:
    """Two layers along the x axis: a line from `low` to `high`, and a point on the value."""
    return [
        layer("rule", {"x": {**axis, "field": "low"}, "x2": {"field": "high"}}, strokeWidth=2, color=colour),
        layer("point", {"x": {**axis, "field": value}, **encoding}, filled=True, size=90, color=colour),
    ]


def number(field: str, **more: Any) -> Spec:
    """A channel that shows a number."""
    return {"field": field, "type": "quantitative", **more}


def words(field: str, **more: Any) -> Spec:
    """A channel that shows words, in no order of their own."""
    return {"field": field, "type": "nominal", **more}


def tooltip(*names: str) -> list[Spec]:
    """What is shown of the row under the pointer."""
    return [{"field": name} for name in names]
