"""Keeping an evaluation light: what Arrow would import by the way is not imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class _NotByTheWay:
    """Finds no pandas where Arrow looks for it on our behalf; whoever imports it himself gets it."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Refuse the one module to ourselves, and leave all else to those who come next."""
        if name == "pandas" and _asker().partition(".")[0] == "adjudge":
            raise ModuleNotFoundError("pandas is not imported here", name=name)


def _asker() -> str:
    """The module whose line led to an import; what only passes it on does not count."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 -- the documented way to ask who calls
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        machinery = name == __name__ or frame.f_code.co_filename.startswith("<frozen importlib")
        if not machinery and name.partition(".")[0] != "pyarrow":
            return name
        frame = frame.f_back
    return ""


@contextmanager
def without_pandas() -> Iterator[None]:
    """Keep Arrow from importing pandas, where it is installed, to ask whether a list is a Series: 0.4 s and 40 MB."""
    finder: Any = _NotByTheWay()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
