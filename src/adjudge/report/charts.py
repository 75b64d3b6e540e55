"""A run's charts as SVG that follows the page's colours, and as PNG, SVG or PDF files; and the page's small drawings."""

from __future__ import annotations

import base64
import copy
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup, escape

from adjudge.errors import ConfigError, RunError
from adjudge.report import numbers, renderer
from adjudge.report.numbers import terminal
from adjudge.runs.run import Run

FORMATS = ("png", "svg", "pdf")
_INK = "currentColor"
_WORDS = {"labelColor": _INK, "titleColor": _INK}
_LINES = {"domainColor": _INK, "tickColor": _INK, "gridColor": _INK, "gridOpacity": 0.12, "domainOpacity": 0.4}
_TITLE = {"color": _INK, "subtitleColor": _INK}
_COLOURS = {"axis": _WORDS | _LINES, "legend": _WORDS, "header": _WORDS, "title": _TITLE}
_FONT = "Arial, Helvetica, Liberation Sans, sans-serif"  # the widths that charts are laid out with
_LONGEST = 300  # characters of a text in a chart; none of our own is longer
_SECONDS, _MEMORY = 60, 3 << 30  # for one chart; the renderer takes 0.6 GB before it draws anything
_DEATHS = 3  # of the process that draws; after that no further chart is tried


class Drawing(NamedTuple):
    """A chart as a picture, or why there is none."""

    picture: bytes | None
    why: str = ""


def svgs(specs: Iterable[dict[str, Any]]) -> list[Drawing]:
    """Charts for the page: transparent, their lines and words in the colour of the text around them, scaling down."""
    return [
        Drawing(drawn.picture.replace(b"<svg ", b'<svg role="img" preserveAspectRatio="xMidYMid meet" ', 1))
        if drawn.picture is not None
        else drawn
        for drawn in _drawn([("svg", _for_page(spec)) for spec in specs])
    ]


def draw(run: Run, name: str | None, kind: str) -> bytes:
    """One chart of a run as a file for a paper or a slide; without a name, the first."""
    if kind not in FORMATS:
        raise ConfigError(f"{kind!r} is not one of {', '.join(FORMATS)}")
    if not run.charts:
        raise RunError(f"{run.path} has no charts")
    known = {str(chart["name"]): chart["spec"] for chart in run.charts}
    if name is not None and name not in known:
        raise ConfigError(f"there is no chart {name!r}; the run has {', '.join(known)}")
    spec = {"background": "white", **known[name or next(iter(known))]}
    drawn = _drawn([(kind, spec)])[0]
    if drawn.picture is None:
        raise RunError(f"a chart of the run cannot be drawn: {drawn.why}")
    return drawn.picture


def _for_page(spec: dict[str, Any]) -> dict[str, Any]:
    drawn = copy.deepcopy(spec) | {"background": None}
    drawn.pop("title", None)
    config = drawn.setdefault("config", {})
    config.setdefault("font", _FONT)
    for part, colours in _COLOURS.items():
        config.setdefault(part, {}).update(colours)
    config.setdefault("view", {}).setdefault("stroke", None)
    for mark in ("text", "rule", "tick"):
        config.setdefault(mark, {}).setdefault("color", _INK)
    return drawn


def _drawn(jobs: Sequence[tuple[str, dict[str, Any]]]) -> list[Drawing]:
    """Every job's picture. A chart that ends the process which draws is left out, and another process goes on."""
    lines = [msgspec.json.encode([kind, _readable(spec)]) + b"\n" for kind, spec in jobs]
    drawings: list[Drawing] = []
    for _ in range(_DEATHS):
        if len(drawings) == len(lines):
            break
        answers, why = _answers(lines[len(drawings) :])
        drawings += answers
        if len(drawings) < len(lines):
            drawings.append(Drawing(None, why))
    return drawings + [Drawing(None, "other charts ended the renderer")] * (len(lines) - len(drawings))


def _answers(lines: Sequence[bytes]) -> tuple[list[Drawing], str]:
    """What one process drew before it ended, and why it ended."""
    why = f"it takes longer than {_SECONDS} seconds"
    try:
        ended = subprocess.run(
            # -P: no module of the folder it lies in hides one of a library.
            [sys.executable, "-P", renderer.__file__, str(_SECONDS), str(_MEMORY), str(os.getpid())],
            input=b"".join(lines),
            capture_output=True,
            check=False,
            timeout=_SECONDS * (len(lines) + 1),
        )
        output = ended.stdout
        if -ended.returncode != getattr(signal, "SIGALRM", None):
            code = ended.returncode
            why = f"the renderer ended with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
    except OSError as error:
        return [], f"the renderer cannot be started: {error.strerror}"
    whole = output[: output.rfind(b"\n") + 1].splitlines()
    pictures = [msgspec.json.decode(line, type=dict[str, str]) for line in whole]
    return [
        Drawing(base64.b64decode(each["data"]) if "data" in each else None, each.get("why", "")) for each in pictures
    ], why


def _readable(value: Any) -> Any:
    """A specification whose texts have no control characters and are not endless; what is equal stays equal."""
    if isinstance(value, str):
        return label(value)
    if isinstance(value, dict):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    return value


def label(text: str) -> str:
    """A text as a chart shows it; of a long one the beginning, and a digest by which two such texts stay two."""
    readable = terminal(text)
    if len(readable) <= _LONGEST:
        return readable
    return f"{readable[: _LONGEST - 10]}… {hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}"


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
