"""What a command takes as a process of its own, together with the processes it starts."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


@dataclass(frozen=True)
class Cost:
    """CPU seconds (user and system, children included), wall seconds, and the peak of the largest process in MB of 1e6 bytes."""

    cpu: float
    wall: float
    peak_mb: float
    printed: bytes


def cost(command: Sequence[str], *, codes: Sequence[int] = (0,)) -> Cost:
    """Run a command; an exit code that is none of `codes` is an error.

    A process that outlives its parent, as that of a worker pool does, comes to us where the system is Linux, so that its CPU
    is counted. The peak of a process is never less than what we hold when we start it: import nothing large here.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    start = time.perf_counter()
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints) as process,
    ):
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        complaints.seek(0)
        last = complaints.read().decode(errors="replace").strip().rpartition("\n")[2]
    wall = time.perf_counter() - start
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
    while True:
        try:
            _, _, orphan = os.wait4(-1, 0)
        except ChildProcessError:
            break
        cpu, peak = cpu + orphan.ru_utime + orphan.ru_stime, max(peak, orphan.ru_maxrss)
    if process.returncode not in codes:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with {process.returncode}: {last}")
    return Cost(cpu, wall, peak * (1 if sys.platform == "darwin" else 1024) / 1e6, printed)
