"""Many lines of JSON into columns at once: what stands at the wanted paths of every row, without an object a row.

`scan` reads a block of rows with compiled loops. A row it is not certain about is `odd`: the caller reads it the ordinary
way, and for all other rows the columns hold what the ordinary way would give. Where Numba is not installed, or for an
input too small to be worth loading it, every row is odd.
"""

from __future__ import annotations

import functools
import importlib.util
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ABSENT, NULL, TRUE, FALSE, INTEGER, REAL, TEXT, ESCAPED, OBJECT, ARRAY = range(10)
"""What stands at a path; a string with escapes is ESCAPED."""

T = TypeVar("T")
Path = tuple[str | int, ...]
WORTH_IT: Final = 8_000_000  # bytes of input; loading the compiled loops takes as long as reading this much otherwise
_NUMBERS, _STORED = 1 << 14, 1 << 19  # how many numbers, and words of text, `Numbered` holds at least


@functools.cache
def available() -> bool:
    """Whether the compiled loops can be had (the `fast` extra)."""
    return importlib.util.find_spec("numba") is not None


class Wanted:
    """Paths into a JSON object, keys and indices of arrays; every step on the way has columns too."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.nodes: dict[Path, int] = {(): 0}
        kids: list[list[tuple[str | int, int]]] = [[]]
        for path in paths:
            for depth in range(1, len(path) + 1):
                if path[:depth] not in self.nodes:
                    self.nodes[path[:depth]] = len(kids)
                    kids[self.nodes[path[: depth - 1]]].append((path[depth - 1], len(kids)))
                    kids.append([])
        edges = np.cumsum([0, *(len(own) for own in kids)]).astype(np.int32)
        flat = [kid for own in kids for kid in own]
        names = [b"" if isinstance(name, int) else name.encode() for name, _ in flat]
        places = np.cumsum([0, *(len(name) for name in names)]).astype(np.int32)
        self.tables = (
            np.frombuffer(b"".join(names) or b"\0", dtype=np.uint8),
            places[:-1],
            places[1:],
            edges[:-1],
            edges[1:],
            np.array([node for _, node in flat], dtype=np.int32),
            np.array([name if isinstance(name, int) else -1 for name, _ in flat], dtype=np.int32),
        )

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass
class Scanned:
    """The columns of a block: `kind` and, where it is one, `number` of every node and row (of a list, its length)."""

    wanted: Wanted
    data: NDArray[np.uint8]
    kind: NDArray[np.uint8]
    number: NDArray[np.float64]
    odd: NDArray[np.bool_]
    first: NDArray[np.int32]
    last: NDArray[np.int32]

    def kinds(self, *path: str | int) -> NDArray[np.uint8]:
        """What stands at a path, row by row."""
        found: NDArray[np.uint8] = self.kind[self.wanted.nodes[path]]
        return found

    def numbers(self, *path: str | int) -> NDArray[np.float64]:
        """The numbers at a path; what is none is 0."""
        found: NDArray[np.float64] = self.number[self.wanted.nodes[path]]
        return found

    def expect(self, *path: str | int, kinds: Sequence[int]) -> None:
        """Rows with anything else at the path are odd."""
        allowed = np.zeros(ARRAY + 1, dtype=np.bool_)
        allowed[list(kinds)] = True
        self.odd |= ~allowed[self.kinds(*path)]

    def spans(self, *path: str | int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Where the value stands in the block; a string without its quotes."""
        node = self.wanted.nodes[path]
        return self.first[node], self.last[node]

    def texts(self, *path: str | int) -> pa.StringArray:
        """The strings at a path, escapes resolved; null where there is none or the row is odd."""
        from adjudge.readers import _kernels

        node = self.wanted.nodes[path]
        kind = self.kind[node]
        there = ((kind == TEXT) | (kind == ESCAPED)) & ~self.odd
        first = np.where(there, self.first[node], 0).astype(np.int32)
        last = np.where(there, self.last[node], 0).astype(np.int32)
        out = np.empty(max(1, int((last - first).sum(dtype=np.int64))), dtype=np.uint8)
        offsets = np.zeros(there.size + 1, dtype=np.int32)
        _kernels.copy_texts(self.data, first, last, kind == ESCAPED, out, offsets)
        return _strings(out, offsets, there)


class Numbered(Generic[T]):
    """Rows told apart by what stands at some paths: equal texts have one number, and a value that is made once.

    Numbers live on from block to block until there are too many of them; then they begin anew. No path may lead through
    another.
    """

    def __init__(self, wanted: Wanted, paths: Sequence[Path]) -> None:
        assert not any(a != b and a == b[: len(a)] for a in paths for b in paths)  # noqa: S101 -- room is made for disjoint texts
        self._nodes = np.array([wanted.nodes[path] for path in paths], dtype=np.int32)
        self._values: list[T] = []
        self._slots = np.zeros(0, dtype=np.int32)
        self._hashes = np.zeros(0, dtype=np.uint64)
        self._places = np.zeros(1, dtype=np.int64)
        self._store = np.zeros(0, dtype=np.uint64)

    def of(self, scanned: Scanned, make: Callable[[int], T]) -> tuple[NDArray[np.int32], list[T]]:
        """The number of every row, −1 where it is odd, and the values by number; `make(row)` gives a new one."""
        n = scanned.odd.size
        codes = np.full(n, -1, dtype=np.int32)
        if scanned.odd.all():
            return codes, self._values
        from adjudge.readers import _kernels

        self._make_room(n, scanned.data.size)
        count, fresh = len(self._values), np.zeros(n, dtype=np.int32)
        new = _kernels.number_rows(
            scanned.data.view(np.uint64),
            scanned.kind,
            scanned.first,
            scanned.last,
            scanned.odd,
            self._nodes,
            self._slots,
            self._hashes,
            self._places,
            self._store,
            count,
            codes,
            fresh,
        )
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


def scan(wanted: Wanted, data: bytes, starts: NDArray[np.int32], ends: NDArray[np.int32], *, fast: bool) -> Scanned:
    """The rows data[start:end], each one JSON object; `data` must be UTF-8. Not `fast`: every row is odd."""
    width, n = len(wanted), len(starts)
    kind = np.zeros((width, n), dtype=np.uint8)
    number = np.zeros((width, n))
    first, last = np.zeros((width, n), dtype=np.int32), np.zeros((width, n), dtype=np.int32)
    odd = np.ones(n, dtype=np.bool_)
    view = np.frombuffer(data + b" " * (-len(data) % 8), dtype=np.uint8)
    if fast and available():
        from adjudge.readers import _kernels

        _kernels.scan_rows(view, view.view(np.uint64), starts, ends, *wanted.tables, kind, first, last, number, odd)
    return Scanned(wanted, view, kind, number, odd, first, last)


def crc32(texts: pa.StringArray, *, fast: bool) -> NDArray[np.uint32]:
    """The CRC-32 of every string, the same as that of zlib."""
    if not fast or not available():
        crc = zlib.crc32
        return np.array([crc(text.encode()) for text in texts.to_pylist()], dtype=np.uint32)
    from adjudge.readers import _kernels

    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    out = np.empty(len(texts), dtype=np.uint32)
    _kernels.crc32_rows(np.frombuffer(data or b"\0", dtype=np.uint8), places, _crc_table(), out)
    return out


@functools.cache
def _crc_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table


def _strings(data: NDArray[np.uint8], offsets: NDArray[np.int32], there: NDArray[np.bool_]) -> pa.StringArray:
    bitmap: Any = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.StringArray.from_buffers(len(there), pa.py_buffer(offsets), pa.py_buffer(data), bitmap)
