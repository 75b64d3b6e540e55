"""Jobs on a Dask cluster: one that runs already, or one of this machine's processes for the time of the run.

The scheduler hands a job that was lost with its worker to another one; what the first may have written is replaced. The
files of the input, and the folder in which the run grows, must be at the same path on every worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from adjudge.engine.runner import J, R, Runner, in_order
from adjudge.errors import ConfigError, InstrumentError

LOCAL = "local"
_AHEAD = 4  # jobs in the queue for every thread of the cluster
_PATIENCE = "30s"


def encrypted() -> bool:
    """Whether a local cluster talks TLS with keys of its own; without, every user of this machine may give it jobs."""
    return find_spec("cryptography") is not None


class Cluster(Runner):
    """A Dask scheduler by its address, or `local`."""

    def __init__(self, address: str, workers: int) -> None:
        self.address, self.workers = address, workers
        self._open = ExitStack()
        self._client: Any = None

    def __enter__(self) -> Self:
        try:
            dask: Any = import_module("distributed")
        except ImportError:
            raise ConfigError("--cluster needs Dask: pip install 'adjudge[cluster]'") from None
        address: Any = self.address
        if address == LOCAL:
            address = self._open.enter_context(
                dask.LocalCluster(
                    n_workers=self.workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                    host="127.0.0.1",
                    security=dask.Security.temporary() if encrypted() else None,
                )
            )
        try:
            self._client = self._open.enter_context(dask.Client(address, timeout=_PATIENCE, set_as_default=False))
        except (OSError, ValueError) as error:
            self._open.close()
            raise ConfigError(f"there is no Dask scheduler at {self.address}: {error}") from None
        return self

    def map(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[R]:
        """The jobs, as many at a time as keep the cluster busy."""
        from distributed import KilledWorker

        def ahead() -> int:
            return int(_AHEAD * max(1, sum(self._client.nthreads().values())))

        try:
            yield from in_order(partial(self._client.submit, work, pure=False), jobs, ahead)
        except KilledWorker as error:
            raise InstrumentError(f"a job was lost with every worker that took it (out of memory?): {error}") from None

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
