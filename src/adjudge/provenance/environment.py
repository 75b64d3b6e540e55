"""What a run was made with: interpreter, platform and the versions of what computed it."""

from __future__ import annotations

import platform

_NAMED = ("adjudge", "numpy", "pyarrow", "msgspec", "scipy", "duckdb", "vl-convert-python")


def environment() -> dict[str, str]:
    """Names and versions; no host name, user or path, since a run is handed around."""
    machine = {"python": platform.python_version(), "platform": f"{platform.system()}-{platform.machine()}"}
    return machine | {name: _version(name) for name in _NAMED}


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
