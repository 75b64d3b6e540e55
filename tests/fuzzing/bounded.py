"""Attempts in forked processes under limits: what each takes is measured, and one that takes too much is told by its seed."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import adjudge

SECONDS, MEGABYTES = 20, 2048
A_PROCESS = 250
"""Attempts a process; what leaks is gone with it."""
_SILENT = 180.0  # wall seconds without a word, on a machine that others use too
_GRACE = 5

Attempt = Callable[[int], tuple[str, str]]
"""From a seed to a word for what came of it, and what was done. A word in capitals is a failure."""


class TooSlow(BaseException):
    """An attempt took more CPU than it may; nothing that is tried may catch it."""


@dataclass(frozen=True)
class Outcome:
    """What came of a seed: CPU seconds with those of its children, and the largest memory of its process so far."""

    seed: int
    word: str
    done: str
    seconds: float = 0.0
    megabytes: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether it ended in a way in which nothing may end."""
        return self.word[0].isupper()


@dataclass
class Sum:
    """Outcomes, counted."""

    words: Counter[str] = field(default_factory=Counter)
    failures: list[Outcome] = field(default_factory=list)
    slowest: float = 0.0
    largest: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count one; print it where it failed."""
        self.words[outcome.word if not outcome.failed else outcome.word.split()[0]] += 1
        self.slowest, self.largest = max(self.slowest, outcome.seconds), max(self.largest, outcome.megabytes)
        if outcome.failed:
            self.failures.append(outcome)
            print(f"seed {outcome.seed}: {outcome.word} after {outcome.seconds:.1f} s: {outcome.done}", flush=True)

    def __str__(self) -> str:
        counts = ", ".join(f"{word} {count:,}" for word, count in self.words.most_common())
        return (
            f"{self.words.total():,} ({counts}): {len(self.failures)} failures, "
            f"at most {self.slowest:.1f} s of CPU and {self.largest:,.0f} MB"
        )


def preload() -> None:
    """Import every module, so that no process has to; importing starts no thread, which a fork would lose."""
    for module in pkgutil.walk_packages(adjudge.__path__, "adjudge."):
        with contextlib.suppress(ImportError):  # of an extra that is not installed
            importlib.import_module(module.name)


def run(attempt: Attempt, seeds: Iterable[int]) -> Sum:
    """Try every seed, and count."""
    total = Sum()
    preload()
    for outcome in outcomes(attempt, list(seeds)):
        total.add(outcome)
        if total.words.total() % 1000 == 0:
            print(f"until seed {outcome.seed}: {total}", flush=True)
    return total


def outcomes(attempt: Attempt, seeds: Sequence[int]) -> Iterator[Outcome]:
    """Every seed in order, in processes of their own; one that kills its process is told, and the next goes on."""
    left = list(seeds)
    while left:
        chunk, left = left[:A_PROCESS], left[A_PROCESS:]
        arrived = 0
        for outcome in _process(attempt, chunk):
            arrived += 1
            yield outcome
        left = chunk[arrived:] + left


def _process(attempt: Attempt, seeds: Sequence[int]) -> Iterator[Outcome]:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        _child(attempt, seeds, write)
    os.close(write)
    arrived, rest = 0, b""
    try:
        while select.select([read], [], [], _SILENT)[0]:
            data = os.read(read, 1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                arrived += 1
                yield Outcome(*json.loads(line))
            if not data:
                break
        else:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(read)
        _, status = os.waitpid(child, 0)
    if arrived < len(seeds):
        code = os.waitstatus_to_exitcode(status)
        word = {-signal.SIGXCPU: "HANG", -signal.SIGKILL: "HANG without a word"}.get(code, f"DIED with {code}")
        yield Outcome(seeds[arrived], word, "", float(SECONDS + _GRACE if code == -signal.SIGXCPU else 0))


def _child(attempt: Attempt, seeds: Sequence[int], write: int) -> NoReturn:
    try:
        _limit_memory()
        signal.signal(signal.SIGPROF, _too_slow)
        for seed in seeds:
            before = _cpu()
            whole = resource.getrusage(resource.RUSAGE_SELF)
            soft = int(whole.ru_utime + whole.ru_stime + SECONDS) + _GRACE
            resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                word, done = attempt(seed)
            except TooSlow:
                word, done = "HANG", ""
            except MemoryError:
                word, done = "MEMORY", ""
            except Exception as error:  # noqa: BLE001 -- of the attempt itself, not of what it tries
                word, done = f"BROKEN attempt, {type(error).__name__}: {error}", ""
            signal.setitimer(signal.ITIMER_PROF, 0)
            peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            line = json.dumps([seed, word, done, round(_cpu() - before, 3), peak / 1024])
            os.write(write, line.encode() + b"\n")
    finally:
        sys.stdout.flush()
        os._exit(0)


def _limit_memory() -> None:
    """What the process has now, and as much as an attempt may have."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + (MEGABYTES << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _cpu() -> float:
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def _too_slow(number: int, frame: object) -> NoReturn:
    raise TooSlow
