"""A process that is ours alone, the command's or a worker: how it uses cores and memory.

A program that calls `evaluate` keeps its own ways.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of glibc's options
_LARGEST = 1 << 25  # bytes: the most that glibc takes from memory it has already
_COLLECT_AFTER = 200_000  # new objects
_THREADS = "OPENBLAS_NUM_THREADS"


def one_thread_for_products() -> None:
    """Before NumPy is imported: no second thread for products of small matrices, which would mostly wait in a loop."""
    os.environ.setdefault(_THREADS, "1")


@contextmanager
def one_thread_in_children() -> Iterator[None]:
    """The same for processes that are started here."""
    given = os.environ.get(_THREADS)
    one_thread_for_products()
    try:
        yield
    finally:
        if given is None:
            del os.environ[_THREADS]


def collect_rarely() -> None:
    """Look for cycles of garbage less often: what is imported and read makes none, and is looked at in vain."""
    gc.set_threshold(_COLLECT_AFTER, 20, 100)


def leave() -> None:
    """Before the process ends: the interpreter looks for garbage once more, in all there is, which is then freed anyway.

    Not with DuckDB, which complains at the end of what was not taken apart.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()


def keep_memory() -> None:
    """Arrays come and go: what is freed is used again, instead of asking the system for fresh pages each time."""
    import ctypes

    with suppress(OSError, AttributeError):  # elsewhere than with glibc
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, _LARGEST)
        libc.mallopt(_TRIM_THRESHOLD, (1 << 31) - 1)


def give_back() -> None:
    """Let the system have what was freed; the allocator keeps it otherwise, and the peak would be that of all stages."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
