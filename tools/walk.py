"""Which files of ours one evaluation passes: `python tools/walk.py flight --task S1 --outputs FILE … --out DIR`.

A file is passed where one of its functions is called; what runs while a module is imported does not count.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import adjudge
from adjudge.cli.start import run

OURS = Path(adjudge.__file__).parent


def main() -> None:
    """Run the command under a profile, and print the files with how many functions of each were called."""
    functions: dict[str, set[str]] = {}

    def called(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(f"{OURS}/") and not _importing(frame):
            functions.setdefault(str(Path(name).relative_to(OURS)), set()).add(frame.f_code.co_qualname)

    sys.setprofile(called)
    try:
        run()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    rooms = Counter(name.rpartition("/")[0] or "(top)" for name in functions)
    lines = [f"{len(functions[name]):4} functions  {name}" for name in sorted(functions)]
    lines.append(f"{len(functions)} files: {', '.join(f'{room} {count}' for room, count in rooms.most_common())}")
    sys.stdout.write("\n".join(lines) + "\n")


def _importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported while this runs."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename != __file__:
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    main()
