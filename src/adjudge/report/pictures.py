"""Pictures of samples, for a page: local files beside the data that the records name, as data addresses.

Only files inside the folders of the run's own input are taken, only pictures by their content, and only so many bytes: a record
from outside cannot bring another file of this machine into a report. They stand outside the run, so nothing is computed from them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from adjudge.runs.run import Run

LARGEST, ALL = 512 << 10, 2 << 20
_KINDS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


def pictures(run: Run, names: Iterable[str], left: int = ALL) -> dict[str, str]:
    """The pictures that can be read, by the name that records give them, as long as bytes are `left`."""
    folders = _folders(run.manifest.config)
    shown: dict[str, str] = {}
    for name in dict.fromkeys(names):
        path = picture_file(folders, name)
        size = path.stat().st_size if path is not None else 0
        if path is None or not 0 < size <= min(LARGEST, left):
            continue
        content = path.read_bytes()
        kind = _kind(content)
        if kind is not None:
            shown[name] = f"data:{kind};base64,{base64.b64encode(content).decode()}"
            left -= size
    return shown


def picture_file(folders: Iterable[Path], name: str) -> Path | None:
    """The file of a picture below one of the folders; None where there is none that can be read."""
    for folder in folders:
        try:
            path = (folder / name).resolve()
            if path.is_relative_to(folder.resolve()) and path.is_file():
                return path
        except (OSError, ValueError):
            continue
    return None


def _folders(config: Any) -> list[Path]:
    """The folders of the files that a configuration names."""
    texts: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    for value in config.values() if isinstance(config, dict) else ():
        walk(value)
    folders = [Path(text).parent for text in texts if len(text) < 4096 and "\0" not in text and Path(text).suffix]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def _kind(content: bytes) -> str | None:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _KINDS.items() if content.startswith(start)), None)
