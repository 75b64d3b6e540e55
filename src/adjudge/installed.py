"""What is installed beside us: entry points by name, and versions.

`importlib.metadata` knows this, and takes a twentieth of a second to be imported, mostly for a reader of e-mail; a command
should not wait for that. Packages lie in folders `NAME-VERSION.dist-info` on the path, so those are asked first, and
`importlib.metadata`, which knows all other ways to be installed, only for what they do not tell.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SUFFIX = ".dist-info"
_OURS = "[adjudge."  # how our groups begin


@dataclass(frozen=True)
class Entry:
    """An entry point: `value` is `module:name`."""

    name: str
    value: str

    def load(self) -> Any:
        """Import what it names."""
        module, _, name = self.value.partition("[")[0].partition(":")
        found = importlib.import_module(module.strip())
        return functools.reduce(getattr, name.strip().split("."), found) if name.strip() else found


def entry(group: str, name: str) -> Entry | None:
    """One entry point of a group."""
    path = tuple(sys.path)
    return _entries_on(path).get((group, name)) or {own.name: own for own in entries(group)}.get(name)


def entries(group: str) -> list[Entry]:
    """All entry points of a group, by name."""
    from importlib.metadata import entry_points

    return sorted((Entry(own.name, own.value) for own in entry_points(group=group)), key=lambda own: own.name)


def version(package: str) -> str | None:
    """The version of a package; None where it is not installed."""
    folder = _folders_on(tuple(sys.path)).get(_normal(package))
    if folder is not None:
        return folder.name.removesuffix(_SUFFIX).partition("-")[2]
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@functools.lru_cache(maxsize=4)
def _folders_on(path: tuple[str, ...]) -> dict[str, Path]:
    """The folder of every package that has one; the first on the path counts."""
    found: dict[str, Path] = {}
    for place in map(Path, path):
        try:
            folders = sorted(place.glob(f"*{_SUFFIX}"))
        except OSError:
            continue
        for folder in folders:
            found.setdefault(_normal(folder.name.partition("-")[0]), folder)
    return found


@functools.lru_cache(maxsize=4)
def _entries_on(path: tuple[str, ...]) -> dict[tuple[str, str], Entry]:
    """The entry points of our groups, by group and name."""
    found: dict[tuple[str, str], Entry] = {}
    for folder in _folders_on(path).values():
        try:
            text = (folder / "entry_points.txt").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        group = ""
        for line in map(str.strip, text.splitlines() if _OURS in text else ()):
            name, is_one, value = line.partition("=")
            if line.startswith("["):
                group = line.strip("[] ")
            elif is_one and not line.startswith(("#", ";")):
                found.setdefault((group, name.strip()), Entry(name.strip(), value.strip()))
    return found


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "_", package).lower()
