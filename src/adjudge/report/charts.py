"""A run's charts, drawn: SVG that follows the page's colours, and PNG, SVG or PDF files."""

from __future__ import annotations

import copy
from typing import Any

from adjudge.errors import ConfigError, RunError
from adjudge.runs.run import Run

FORMATS = ("png", "svg", "pdf")
_INK = "currentColor"
_FONT = "Arial, Helvetica, Liberation Sans, sans-serif"  # the widths that charts are laid out with


def svg(spec: dict[str, Any]) -> str:
    """A chart for the page: transparent, its lines and words in the colour of the text around it, scaling down."""
    import vl_convert

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
    picture = str(_drawn(vl_convert.vegalite_to_svg, drawn))
    return picture.replace("<svg ", '<svg role="img" preserveAspectRatio="xMidYMid meet" ', 1)


def draw(run: Run, name: str | None, kind: str) -> bytes:
    """One chart of a run as a file for a paper or a slide; without a name, the first."""
    import vl_convert

    if kind not in FORMATS:
        raise ConfigError(f"{kind!r} is not one of {', '.join(FORMATS)}")
    if not run.charts:
        raise RunError(f"{run.path} has no charts")
    known = {str(chart["name"]): chart["spec"] for chart in run.charts}
    if name is not None and name not in known:
        raise ConfigError(f"there is no chart {name!r}; the run has {', '.join(known)}")
    spec = {"background": "white", **known[name or next(iter(known))]}
    if kind == "svg":
        return str(_drawn(vl_convert.vegalite_to_svg, spec)).encode()
    if kind == "png":
        return bytes(_drawn(vl_convert.vegalite_to_png, spec, scale=2))
    return bytes(_drawn(vl_convert.vegalite_to_pdf, spec))


def _drawn(how: Any, spec: dict[str, Any], **options: Any) -> Any:
    try:
        return how(spec, allowed_base_urls=[], **options)
    except ValueError as error:
        raise RunError(f"a chart of the run cannot be drawn: {str(error).splitlines()[0]}") from None
