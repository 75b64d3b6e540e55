"""Rows told apart by their words: equal texts share a number, so that what follows from them is made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from adjudge.readers.scan import Path, Scanned, Wanted

T = TypeVar("T")
_NUMBERS, _STORED = 1 << 14, 1 << 19  # how many numbers, and words of text, are held at least


class Numbered(Generic[T]):
    """Numbers rows by what stands at some paths, as it is written; every number has a value.

    Numbers live on from block to block until there are too many of them; then they begin anew. No path may lead through
    another, unless no row has both. `beside` are nodes without a text, told apart by their kind.
    """

    def __init__(self, wanted: Wanted, paths: Sequence[Path], beside: Sequence[int] = ()) -> None:
        # Room is made for disjoint texts.
        assert beside or not any(a != b and a == b[: len(a)] for a in paths for b in paths)  # noqa: S101
        self._nodes = np.array([*beside, *(wanted.nodes[path] for path in paths)], dtype=np.int32)
        self._values: list[T] = []
        self._slots = np.zeros(0, dtype=np.int32)
        self._hashes = np.zeros(0, dtype=np.uint64)
        self._places = np.zeros(1, dtype=np.int64)
        self._store = np.zeros(0, dtype=np.uint64)

    def of(self, scanned: Scanned, make: Callable[[int], T]) -> tuple[NDArray[np.int32], list[T]]:
        """The number of every row, −1 where it is odd, and the values by number; `make(row)` gives a new one."""
        if scanned.odd.all():
            return np.full(scanned.odd.size, -1, dtype=np.int32), self._values
        from adjudge.readers import _number_kernels

        columns = (scanned.data.view(np.uint64), scanned.kind, scanned.first, scanned.last, scanned.odd)
        return self.by(
            scanned.odd.size, scanned.data.size, lambda *tables: _number_kernels.number_rows(*columns, *tables), make
        )

    def by(
        self, n: int, size: int, loop: Callable[..., int], make: Callable[[int], T]
    ) -> tuple[NDArray[np.int32], list[T]]:
        """As `of`, with a loop of the caller's that numbers n rows of so many bytes; see `number_rows`."""
        self._make_room(n, size)
        count = len(self._values)
        codes, fresh = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        new = loop(self._nodes, self._slots, self._hashes, self._places, self._store, count, codes, fresh)
        self._values += [make(row) for row in fresh[: new - count].tolist()]
        return codes, self._values

    def _make_room(self, rows: int, size: int) -> None:
        """For as many new numbers as there are rows, and for all their text."""
        words = size // 8 + 2 * rows * self._nodes.size + 1
        count = len(self._values)
        if count + rows <= len(self._hashes) and int(self._places[count]) + words <= self._store.size:
            return
        most = 1 << (max(_NUMBERS, 2 * rows) - 1).bit_length()
        self._values = []
        self._slots = np.full(2 * most, -1, dtype=np.int32)
        self._hashes = np.zeros(most, dtype=np.uint64)
        self._places = np.zeros(most + 1, dtype=np.int64)
        self._store = np.zeros(max(_STORED, 2 * words), dtype=np.uint64)
