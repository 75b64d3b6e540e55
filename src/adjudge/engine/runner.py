"""Where jobs run: here, or in a pool of processes. Whoever does the work, results come in the order of the jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from adjudge.errors import AdjudgeError

J = TypeVar("J")
R = TypeVar("R")


class Runner(ABC):
    """A context in which jobs run; leaving it stops whatever still runs."""

    shared = True
    """Whether the work happens in other processes, so that everything must go through files."""

    @abstractmethod
    def map(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[R]:
        """The result of every job, in order; few jobs are held ahead."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Serial(Runner):
    """One job after another, in this process."""

    shared = False

    def map(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[R]:
        """The jobs, one after another."""
        return map(work, jobs)


class Pool(Runner):
    """Processes of this machine, started with the first job."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: Any = None
        self._waiting: list[Any] = []

    def map(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[R]:
        """The jobs, some at a time."""
        from concurrent.futures.process import BrokenProcessPool

        pool, waiting, ahead = self._started(), self._waiting, iter(jobs)
        try:
            for job in ahead:
                waiting.append(pool.submit(work, job))
                if len(waiting) >= 2 * self.workers:
                    break
            while waiting:
                done = waiting[0].result()
                waiting.pop(0)
                with suppress(StopIteration):
                    waiting.append(pool.submit(work, next(ahead)))
                yield done
        except BrokenProcessPool:
            raise AdjudgeError("a worker process died (out of memory?); try fewer --workers") from None

    def _started(self) -> Any:
        if self._pool is None:
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_context

            self._pool = ProcessPoolExecutor(self.workers, get_context("spawn"), initializer=_ignore_interrupt)
        return self._pool

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is None:
            return
        for future in self._waiting:
            future.cancel()
        # Jobs that run are let finish, each a partition: a process ended while it hands over a result would leave half
        # of it in the pipe, and the pool would wait for the rest for ever.
        self._pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interrupt() -> None:
    """Ctrl-C is the parent's to handle; it stops the workers."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
