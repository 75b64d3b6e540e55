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
    value = cell["value"]
    parts = ['<line class="rail" x1="0%" x2="100%" y1="11" y2="11"/>']
    if value is not None:
        ends = [value if cell[end] is None else cell[end] for end in ("low", "high")]
        first, last, dot = (_place(number, low, high) for number in (*ends, value))
        parts.append(f'<line class="whisker" x1="{first}%" x2="{last}%" y1="11" y2="11"/>')
        for end, place in (("low", first), ("high", last)):
            if cell[end] is not None:
                parts.append(f'<line class="whisker" x1="{place}%" x2="{place}%" y1="7" y2="15"/>')
        parts.append(f'<circle class="dot" cx="{dot}%" cy="11" r="4.5"/>')
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
    value, low, high = (metric[name] for name in ("value", "low", "high"))
    if value is not None:
        ends = [value if edge is None else edge for edge in (low, high)]
        first_end, last_end, dot = (_place(number, -end, end) for number in (*ends, value))
        parts.append(f'<line class="whisker" x1="{first_end}%" x2="{last_end}%" y1="13" y2="13"/>')
        for edge, place in ((low, first_end), (high, last_end)):
            if edge is not None:
                parts.append(f'<line class="whisker" x1="{place}%" x2="{place}%" y1="8" y2="18"/>')
        parts.append(f'<circle class="dot" cx="{dot}%" cy="13" r="5"/>')
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


def _place(number: float, low: float, high: float) -> str:
    return f"{_MARGIN + (100 - 2 * _MARGIN) * (number - low) / (high - low):.3f}"


def _svg(kind: str, height: int, label: Markup, parts: Sequence[str]) -> Markup:
    body = "".join(parts)
    return Markup(f'<svg class="{kind}" width="100%" height="{height}" role="img" aria-label="{label}">{body}</svg>')  # noqa: S704 -- numbers and escaped texts
