"""Writing a Vega-Lite specification as a picture: PNG, SVG, PDF or self-contained HTML, by the file's ending."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adjudge.errors import ConfigError, OutputError

ENDINGS = (".png", ".svg", ".pdf", ".html")


def write_picture(spec: dict[str, Any], path: Path) -> None:
    """Render and write; another ending is a ConfigError."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ConfigError(f"{path} ends in {ending or 'nothing'}, expected one of {', '.join(ENDINGS)}")
    import vl_convert

    if ending == ".png":
        data = vl_convert.vegalite_to_png(spec, scale=2)
    elif ending == ".svg":
        data = vl_convert.vegalite_to_svg(spec).encode()
    elif ending == ".pdf":
        data = vl_convert.vegalite_to_pdf(spec)
    else:
        data = vl_convert.vegalite_to_html(spec, bundle=True).encode()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
