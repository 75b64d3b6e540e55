"""A run's charts, drawn: SVG that follows the page's colours, and PNG, SVG or PDF files."""

from __future__ import annotations

import base64
import copy
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from adjudge.errors import ConfigError, RunError
from adjudge.report import renderer
from adjudge.report.untrusted import terminal
from adjudge.runs.run import Run

FORMATS = ("png", "svg", "pdf")
_INK = "currentColor"
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
    drawn = copy.deepcopy(spec)
    config = drawn.setdefault("config", {})
    drawn["background"] = None
    drawn.pop("title", None)
    config.setdefault("font", _FONT)
    for part in ("axis", "legend", "header"):
        colours = config.setdefault(part, {})
        colours |= {"labelColor": _INK, "titleColor": _INK}
    config["axis"] |= {
        "domainColor": _INK,
        "tickColor": _INK,
        "gridColor": _INK,
        "gridOpacity": 0.12,
        "domainOpacity": 0.4,
    }
    config.setdefault("title", {}).update({"color": _INK, "subtitleColor": _INK})
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
            why = "the renderer ended" + _signal_name(ended.returncode)
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
    except OSError as error:
        return [], f"the renderer cannot be started: {error.strerror}"
    whole = output[: output.rfind(b"\n") + 1].splitlines()
    return [_drawing(msgspec.json.decode(line, type=dict[str, str])) for line in whole], why


def _drawing(answer: dict[str, str]) -> Drawing:
    if "data" in answer:
        return Drawing(base64.b64decode(answer["data"]))
    return Drawing(None, answer["why"])


def _signal_name(code: int) -> str:
    return f" with {signal.Signals(-code).name}" if code < 0 else f" with exit code {code}"


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
