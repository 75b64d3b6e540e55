"""Draws charts in a process of its own: the renderer aborts its process on some texts, and may need much time or memory.

It is started as a script, with the seconds that one chart may take, the bytes of memory and the process it works for as
arguments, and ends with that process. Every line of standard input is `[kind, specification]`; for every line one of standard output has the picture, `{"data": base64}`, or
the reason why there is none, `{"why": text}`.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
from typing import Any


def main(seconds: int, memory: int, parent: int) -> None:
    """Draw until there is nothing more to draw; past its limits the system ends the process."""
    _end_with(parent)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the renderer prints is no answer
    _limit_memory(memory)
    for line in sys.stdin.buffer:
        kind, spec = json.loads(line)
        if hasattr(signal, "alarm"):
            signal.alarm(seconds)
        try:
            answer = {"data": base64.b64encode(_picture(kind, spec)).decode()}
        except ValueError as error:
            answer = {"why": next(iter(str(error).splitlines()), "")}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _end_with(parent: int) -> None:
    """Have the system end this process where the one it works for is gone; the renderer lets no thread of ours look."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            sys.exit(1)


def _picture(kind: str, spec: dict[str, Any]) -> bytes:
    import vl_convert

    if kind == "svg":
        return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).encode()
    if kind == "png":
        return vl_convert.vegalite_to_png(spec, scale=2, allowed_base_urls=[])
    return vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[])


def _limit_memory(memory: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
