"""Where jobs run: here, or in a pool of processes. Whoever does the work, results come in the order of the jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from adjudge.engine.process import collect_rarely, keep_memory, one_thread_in_children
from adjudge.errors import AdjudgeError

J = TypeVar("J")
R = TypeVar("R")


class Runner(ABC):
    """A context in which jobs run; leaving it stops whatever still runs."""

    shared = True
    """Whether the work happens in other processes, so that everything must go through files."""

    slots: int | None = None
    """A job is not begun before the result of the one so many before it was used; None where that is not certain."""

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


_NEEDED = ("adjudge.engine.work", "adjudge.engine.split")


def prepare(protocol: str) -> None:
    """Start a process beside this one that imports what workers need, and that they are forked from then.

    It has no threads and no data, unlike this one. Where the system has no such thing, workers import on their own.
    """
    if _start_method() == "forkserver":
        import signal
        from multiprocessing import forkserver, resource_tracker

        forkserver.set_forkserver_preload([*_NEEDED, f"adjudge.protocols.{protocol}.plan"])
        resource_tracker.ensure_running()  # or else the server would start it, and let Ctrl-C through again
        # Children have the mask of their parent: Ctrl-C is not for them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with one_thread_in_children():
                forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_method() -> str:
    from multiprocessing import get_all_start_methods

    return "forkserver" if "forkserver" in get_all_start_methods() else "spawn"


class Pool(Runner):
    """Processes of this machine, each started when there is a job for it."""

    def __init__(self, workers: int, protocol: str) -> None:
        self.workers = workers
        self.slots = 2 * workers + 1  # those that wait, and the one whose result is being used
        prepare(protocol)
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

            self._pool = ProcessPoolExecutor(self.workers, get_context(_start_method()), initializer=_as_worker)
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


def _as_worker() -> None:
    """Ctrl-C is the parent's to handle; it stops the workers."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_memory()
    collect_rarely()
