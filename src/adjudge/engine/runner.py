"""Where jobs run: here, or in a pool of processes. Whoever does the work, results come in the order of the jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from adjudge.errors import InstrumentError

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
    """Processes of this machine, each started when there is a job for it.

    They are forked from a server process that has imported what they need and holds no data and no threads; where the
    system cannot fork, each imports on its own.
    """

    def __init__(self, workers: int, protocol: str) -> None:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_all_start_methods, get_context

        self.workers = workers
        method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
        if method == "forkserver":
            _start_server(["adjudge.engine.work", f"adjudge.protocols.{protocol}.plan"])
        self._pool = ProcessPoolExecutor(workers, get_context(method), initializer=_as_worker)

    def map(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[R]:
        """The jobs, two a worker at a time."""
        from concurrent.futures.process import BrokenProcessPool

        waiting: deque[Any] = deque()
        try:
            for job in jobs:
                if len(waiting) == 2 * self.workers:
                    yield waiting.popleft().result()
                waiting.append(self._pool.submit(work, job))
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise InstrumentError("a worker process died (out of memory?); try fewer --workers") from None

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Jobs that run are let finish, each a partition: a process ended while it hands over a result would leave half
        # of it in the pipe, and the pool would wait for the rest for ever.
        self._pool.shutdown(wait=True, cancel_futures=True)


def _start_server(modules: list[str]) -> None:
    """Start the process that workers are forked from, once; it begins to import, and Ctrl-C does not reach it."""
    import os
    import signal
    from multiprocessing import forkserver, resource_tracker, util

    from adjudge.engine.server import FOLDER

    forkserver.set_forkserver_preload(["adjudge.engine.server", *modules])
    resource_tracker.ensure_running()  # the server would start it otherwise, and unblock the signal
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as in this process, so in its children
    os.environ[FOLDER] = util.get_temp_dir()
    try:
        forkserver.ensure_running()
    finally:
        del os.environ[FOLDER]
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _as_worker() -> None:
    """Leave Ctrl-C to the parent, which stops the workers, and end where the parent is gone."""
    import signal
    from threading import Thread

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    import os
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
