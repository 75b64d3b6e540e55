"""Where jobs run: here, or in a pool of processes. Whoever does the work, results come in the order of the jobs.

A worker makes the plan again from its configuration; so does whoever verifies, by the versions at hand or others.
"""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from adjudge.errors import ConfigError, InstrumentError
from adjudge.evidence.rule import rule_sets
from adjudge.protocols.base import Plan, Protocol, protocol
from adjudge.provenance.canonical import canonical
from adjudge.provenance.manifest import Manifest

_NAMED = ("adjudge", "numpy", "pyarrow", "msgspec", "scipy", "duckdb", "vl-convert-python")
"""Packages whose versions a manifest names."""

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


def in_order(submit: Callable[[J], Any], jobs: Iterable[J], ahead: Callable[[], int]) -> Iterator[Any]:
    """The results of jobs in their order, each a future that `submit` gives; so many are submitted `ahead`."""
    waiting: deque[Any] = deque()
    try:
        for job in jobs:
            while len(waiting) >= ahead():
                yield waiting.popleft().result()
            waiting.append(submit(job))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


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
            _start_server(["adjudge.engine.evaluate", f"adjudge.protocols.{protocol}.plan"])
        self._pool = ProcessPoolExecutor(workers, get_context(method), initializer=_as_worker)

    def map(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[R]:
        """The jobs, two a worker at a time."""
        from concurrent.futures.process import BrokenProcessPool

        try:
            yield from in_order(lambda job: self._pool.submit(work, job), jobs, lambda: 2 * self.workers)
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


MOST_PARTIALS = 12
"""Of batches, at a time; a plan folds them then."""


@dataclass(frozen=True)
class Recipe:
    """What crosses to a worker instead of a plan."""

    protocol: str
    config: bytes


def recipe(name: str, plan: Plan) -> Recipe:
    """The recipe of a plan."""
    return Recipe(name, canonical(plan.config))


@lru_cache(maxsize=2)
def plan_of(recipe: Recipe) -> Plan:
    """The plan of a recipe, made once a process."""
    return protocol(recipe.protocol).plan(msgspec.json.decode(recipe.config))


def rule_versions(name: str, config: Mapping[str, Any]) -> dict[str, str]:
    """The versions of the rule sets of a run by name; none where a protocol has its rules elsewhere."""
    try:
        sets = rule_sets(name, tuple(config.get("rules") or ()))
    except ConfigError:
        return {}
    return {rules.name: rules.version for rules in sets}


def made_by_another(manifest: Manifest, chosen: Protocol) -> str | None:
    """What made a run, in words, where it is not what is installed here; None where it is."""
    parts = []
    if manifest.environment.get("adjudge") != (ours := environment()["adjudge"]):
        parts.append(f"adjudge {manifest.environment.get('adjudge', 'unknown')} (here {ours})")
    if manifest.protocol_version != chosen.version:
        parts.append(f"{chosen.name} {manifest.protocol_version} (here {chosen.version})")
    if manifest.rule_versions:
        ours_by_name = rule_versions(chosen.name, manifest.config)
        parts += [
            f"rules {name} {version} (here {ours_by_name.get(name, 'not installed')})"
            for name, version in manifest.rule_versions.items()
            if ours_by_name.get(name) != version
        ]
    return ", ".join(parts) or None


def environment() -> dict[str, str]:
    """Names and versions; no host name, user or path, since a run is handed around."""
    machine = {"python": platform.python_version(), "platform": f"{platform.system()}-{platform.machine()}"}
    return machine | {name: _version(name) for name in _NAMED}


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
