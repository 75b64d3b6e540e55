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
    times a second, and is None where the system does not tell. Workers are looked at too, since the command does not
    wait for them itself: what one does in its last twentieth of a second is missed.
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
        seen = _Seen()
        over = threading.Event()
        watcher = threading.Thread(target=seen.watch, args=(process.pid, over))
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
    cpu = max(usage.ru_utime + usage.ru_stime, sum(seen.seconds.values()))
    return Cost(cpu, wall, max(peak, *seen.peaks.values(), 0.0), max(seen.sums, default=None), said)


class _Seen:
    """What was seen of the processes of a session: CPU seconds and peak MB of each, and the sums of resident MB."""

    def __init__(self) -> None:
        self.seconds: dict[int, float] = {}
        self.peaks: dict[int, float] = {}
        self.sums: list[float] = []

    def watch(self, session: int, over: threading.Event) -> None:
        """Look again and again until it is over."""
        while not over.wait(_EVERY):
            if found := self._look(session):
                self.sums.append(found)

    def _look(self, session: int) -> float:
        """MB that all hold now; 0 where /proc does not tell."""
        total, page, tick = 0.0, os.sysconf("SC_PAGE_SIZE") / _MB, os.sysconf("SC_CLK_TCK")
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue  # it ended meanwhile
            if int(fields[3]) == session:
                process, resident = int(folder.name), int(fields[21]) * page
                self.seconds[process] = (int(fields[11]) + int(fields[12])) / tick
                self.peaks[process] = max(self.peaks.get(process, 0.0), resident)
                total += resident
        return total
