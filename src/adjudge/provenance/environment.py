"""What a run was made with: interpreter, platform and the versions of what computed it."""

from __future__ import annotations

import platform

from adjudge.installed import version

_NAMED = ("adjudge", "numpy", "pyarrow", "msgspec", "scipy", "duckdb")


def environment() -> dict[str, str]:
    """Names and versions; no host name, user or path, since a run is handed around."""
    found = {"python": platform.python_version(), "platform": f"{platform.system()}-{platform.machine()}"}
    return found | {name: version(name) or "unknown" for name in _NAMED}
