"""Small drawings of the page, as SVG that stretches with its column: dot and whisker, and the bar of buckets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from adjudge.report import numbers

_MARGIN = 4.0


def whisker(cell: Mapping[str, Any], column: Mapping[str, Any]) -> Markup:
    """One estimate on its column's scale: a line from low to high and a dot at the value."""
    low, high = column["scale"]["low"], column["scale"]["high"]
    parts = ['<line class="rail" x1="0%" x2="100%" y1="11" y2="11"/>']
    parts += _dot_and_whisker(cell, low, high, middle=11, reach=4, radius="4.5")
    label = escape(f"{cell['label']}, {column['label']}: {cell['text']} ({cell['note']})")
    return _svg("plot", 22, label, parts)


def delta(metric: Mapping[str, Any]) -> Markup:
    """A difference on a scale that has zero in the middle; what lies within the margin is shaded."""
    end = metric["scale"]["end"]
    parts = ['<line class="rail" x1="0%" x2="100%" y1="13" y2="13"/>']
    if metric["margin"] is not None:
        first, last = (float(_place(side * min(metric["margin"], end), -end, end)) for side in (-1.0, 1.0))
        parts.append(f'<rect class="margin" x="{first:.3f}%" width="{last - first:.3f}%" y="2" height="22"/>')
    parts.append('<line class="zero" x1="50%" x2="50%" y1="1" y2="25"/>')
    parts += _dot_and_whisker(metric, -end, end, middle=13, reach=5, radius="5")
    label = escape(f"{metric['label']}: {metric['verdict']}, {metric['text']}")
    return _svg(f"plot delta {escape(metric['verdict'])}", 26, label, parts)


def bar(row: Mapping[str, Any], names: Sequence[str]) -> Markup:
    """Where the samples of one row ended; the pieces add up to the whole width."""
    parts, left = [], 0.0
    for name in names:
        count = row["counts"][name]
        width = 100.0 * count / row["n"] if row["n"] else 0.0
        if count:
            tip = escape(f"{name}: {numbers.count(count)} of {numbers.count(row['n'])} ({row['shares'][name]})")
            parts.append(
                f'<rect class="bucket {escape(name)}" x="{left:.4f}%" y="0" width="{width:.4f}%" height="22" '
                f'data-tip="{tip}"/>'
            )
        left += width
    counted = ", ".join(f"{name} {row['counts'][name]}" for name in names)
    return _svg("bar", 22, escape(f"{row['label']}: {counted}, n {row['n']}"), parts)


def legend(names: Sequence[str]) -> Markup:
    """The colours of the buckets."""
    items = "".join(
        f'<span class="key"><svg width="12" height="12" aria-hidden="true">'
        f'<rect class="bucket {escape(name)}" width="12" height="12" rx="2"/></svg> {escape(name)}</span>'
        for name in names
    )
    return Markup(f'<p class="legend">{items}</p>')  # noqa: S704 -- every name is escaped above


def _dot_and_whisker(
    cell: Mapping[str, Any], low: float, high: float, *, middle: int, reach: int, radius: str
) -> list[str]:
    """A line from the interval's low to its high end on the scale, a stroke at each, a dot at the value."""
    value = cell["value"]
    if value is None:
        return []
    first, last = (_place(value if cell[end] is None else cell[end], low, high) for end in ("low", "high"))
    strokes = [
        f'<line class="whisker" x1="{place}%" x2="{place}%" y1="{middle - reach}" y2="{middle + reach}"/>'
        for end, place in (("low", first), ("high", last))
        if cell[end] is not None
    ]
    return [
        f'<line class="whisker" x1="{first}%" x2="{last}%" y1="{middle}" y2="{middle}"/>',
        *strokes,
        f'<circle class="dot" cx="{_place(value, low, high)}%" cy="{middle}" r="{radius}"/>',
    ]


def _place(number: float, low: float, high: float) -> str:
    return f"{_MARGIN + (100 - 2 * _MARGIN) * (number - low) / (high - low):.3f}"


def _svg(kind: str, height: int, label: Markup, parts: Sequence[str]) -> Markup:
    body = "".join(parts)
    return Markup(f'<svg class="{kind}" width="100%" height="{height}" role="img" aria-label="{label}">{body}</svg>')  # noqa: S704 -- numbers and escaped texts
