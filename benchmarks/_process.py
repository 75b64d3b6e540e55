"""What a command takes as a process of its own, together with the processes it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_MB = 2**20
_EVERY = 0.05


@dataclass(frozen=True)
class Cost:
    """CPU and wall seconds, the largest resident set of one process, and the largest sum over all at one moment.

    Memory is in MB of 2^20 bytes. The sum counts pages that several processes share in each of them, is looked at 20
    times a second, and is None where the system does not tell.
    """

    cpu: float
    wall: float
    peak_mb: float
    together_mb: float | None
    said: bytes


def cost(command: Sequence[str], *, codes: Sequence[int] = (0,)) -> Cost:
    """Run a command; an exit code that is none of `codes` is an error.

    The peak of a process is never less than what the one that asked held when it started it: ask from a small one.
    """
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        sums: list[float] = []
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, over, sums))
        watcher.start()
        try:
            assert process.stdout is not None
            said = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            over.set()
            watcher.join()
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in codes:
        raise subprocess.CalledProcessError(process.returncode, command)
    peak = usage.ru_maxrss / (_MB if sys.platform == "darwin" else 1024)
    wall = time.perf_counter() - start
    return Cost(usage.ru_utime + usage.ru_stime, wall, peak, max(sums, default=None), said)


def _watch(session: int, over: threading.Event, sums: list[float]) -> None:
    while not over.wait(_EVERY):
        if found := _resident(session):
            sums.append(found / _MB)


def _resident(session: int) -> int:
    """Bytes that the processes of a session hold; 0 where /proc does not tell."""
    total, page = 0, os.sysconf("SC_PAGE_SIZE")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == session:
                total += int(fields[21]) * page
        except OSError:
            continue  # it ended meanwhile
    return total
