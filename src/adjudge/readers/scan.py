"""Many lines of JSON into columns at once: what stands at the wanted paths of every row, without an object a row.

`scan` reads a block of rows with compiled loops. A row it is not certain about is `odd`: the caller reads it the ordinary
way, and for all other rows the columns hold what the ordinary way would give. Where Numba is not installed, or for an
input too small to be worth loading it, every row is odd.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.loops import available

SLACK: Final = 64  # bytes behind the last one that counts
MAX_DEPTH: Final = 64  # of the compiled loops; what is deeper is left to the ordinary reader
ABSENT, NULL, TRUE, FALSE, INTEGER, REAL, TEXT, ESCAPED, OBJECT, ARRAY = range(10)
"""What stands at a path; a string with escapes is ESCAPED."""

WRITTEN: Final = (TEXT, ESCAPED, INTEGER)
"""What may stand for an id: a string, or a whole number as it is written."""

Path = tuple[str | int, ...]
Rows = NDArray[np.intp]
Cells = slice | list[int]
Buffer = bytes | bytearray | NDArray[np.uint8]
WORTH_IT: Final = 8_000_000  # bytes of input; loading the compiled loops takes as long as reading this much otherwise


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
        names = [b"" if isinstance(name, int) else name.encode() + b'"' for name, _ in flat]
        padded = [name + bytes(-len(name) % 8) for name in names]
        places = np.cumsum([0, *(len(name) // 8 for name in padded)]).astype(np.int32)
        self.tables = (
            np.frombuffer(b"".join(padded) or bytes(8), dtype=np.uint64),
            places[:-1],
            np.array([len(name) for name in names], dtype=np.int32),
            edges[:-1],
            edges[1:],
            np.array([node for _, node in flat], dtype=np.int32),
            np.array([name if isinstance(name, int) else -1 for name, _ in flat], dtype=np.int32),
        )

    def __len__(self) -> int:
        return len(self.nodes)

    def cells(self, paths: Sequence[Path]) -> Cells:
        """Where the numbers at some paths stand; without gaps that is a slice, which copies nothing."""
        nodes = [self.nodes[path] for path in paths]
        return slice(nodes[0], nodes[-1] + 1) if nodes == list(range(nodes[0], nodes[-1] + 1)) else nodes

    def allowed(self, kinds: Mapping[Path, Sequence[int]]) -> NDArray[np.bool_]:
        """What may stand at every node; at a path that is not named, anything."""
        table = np.ones((len(self), ARRAY + 1), dtype=np.bool_)
        for path, own in kinds.items():
            table[self.nodes[path]] = np.isin(np.arange(ARRAY + 1), own)
        return table


@dataclass
class Scanned:
    """The columns of a block: `kind` and, where it is one, `number` of every node and row (of a list, its length).

    Numbers stand row by row, so that those of a record are found, and kept, together.
    """

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
        found: NDArray[np.float64] = self.number[:, self.wanted.nodes[path]]
        return found

    def records(self, cells: Cells) -> NDArray[np.float64]:
        """The numbers at the paths of `Wanted.cells`, shaped (rows, paths)."""
        own: NDArray[np.float64] = self.number[:, cells]
        return own

    def expect(self, *path: str | int, kinds: Sequence[int]) -> None:
        """Rows with anything else at the path are odd."""
        self.odd |= ~_among(kinds)[self.kinds(*path)]

    def expect_all(self, allowed: NDArray[np.bool_]) -> None:
        """Rows with anything else at one of the paths of `Wanted.allowed` are odd; quicker than one path after another."""
        from adjudge.readers import _kernels

        _kernels.expect_rows(self.kind, allowed, self.odd)

    def spans(self, *path: str | int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Where the value stands in the block; a string without its quotes."""
        node = self.wanted.nodes[path]
        return self.first[node], self.last[node]

    def texts(
        self, *path: str | int, rows: Rows | None = None, kinds: Sequence[int] = (TEXT, ESCAPED)
    ) -> pa.StringArray:
        """The strings at a path, escapes resolved, in some rows or in all; null where there is none or a row is odd.

        With INTEGER among the kinds a number is taken as it is written.
        """
        node = self.wanted.nodes[path]
        some = slice(None) if rows is None else rows
        kind = self.kind[node][some]
        there = _among(kinds)[kind] & ~self.odd[some]
        first, last = (np.where(there, place[node][some], 0).astype(np.int32) for place in (self.first, self.last))
        return copied(self.data, first, last, kind == ESCAPED)

    def elements(self, *path: str | int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Where the elements of the lists at a path start and end, and the row of each, so that `scan` can read them.

        Rows that are odd or have no list there have none.
        """
        node = self.wanted.nodes[path]
        there = (self.kind[node] == ARRAY) & ~self.odd
        count = int(self.number[there, node].sum())
        starts, ends, owner = (np.empty(count, dtype=np.int32) for _ in range(3))
        if not count:
            return starts, ends, owner
        from adjudge.readers import _kernels

        first, last = (np.where(there, place[node], 0).astype(np.int32) for place in (self.first, self.last))
        _kernels.split_lists(self.data, self.data.view(np.uint64), first, last, starts, ends, owner)
        return starts, ends, owner

    def words(self, *path: str | int, among: Sequence[str]) -> NDArray[np.int8]:
        """Which of a few words stands at a path; −1 for anything else, for a word with escapes and for odd rows."""
        from adjudge.readers import _text_kernels

        node = self.wanted.nodes[path]
        there = (self.kind[node] == TEXT) & ~self.odd
        encoded = [word.encode() for word in among]
        edges = np.cumsum([0, *(len(word) for word in encoded)]).astype(np.int32)
        found = np.empty(there.size, dtype=np.int8)
        letters = np.frombuffer(b"".join(encoded) or b"\0", dtype=np.uint8)
        _text_kernels.word_rows(self.data, self.first[node], self.last[node], letters, edges, found)
        return np.where(there, found, np.int8(-1))


def scan(wanted: Wanted, data: Buffer, starts: NDArray[np.int32], ends: NDArray[np.int32], *, fast: bool) -> Scanned:
    """The rows data[start:end], each one JSON object; `data` must be UTF-8. Not `fast`: every row is odd.

    What has a length that is a multiple of 8, and `SLACK` bytes behind the last row, is not copied.
    """
    width, n = len(wanted), len(starts)
    kind = np.zeros((width, n), dtype=np.uint8)
    number = np.zeros((n, width))
    first, last = np.zeros((width, n), dtype=np.int32), np.zeros((width, n), dtype=np.int32)
    odd = np.ones(n, dtype=np.bool_)
    view = padded(data, int(ends.max(initial=0)))
    if fast and available():
        from adjudge.readers import _kernels

        stack = np.empty((4, MAX_DEPTH), dtype=np.int64)
        _kernels.scan_rows(
            view, view.view(np.uint64), starts, ends, *wanted.tables, kind, first, last, number, odd, stack
        )
    return Scanned(wanted, view, kind, number, odd, first, last)


def padded(data: Buffer, size: int) -> NDArray[np.uint8]:
    """The bytes, of which `size` count, with room behind those as the loops want it; what has it is not copied."""
    view = np.frombuffer(data, dtype=np.uint8)
    if len(view) % 8 == 0 and len(view) - size >= SLACK:
        return view
    return np.concatenate([view, np.zeros(SLACK + -len(view) % 8, dtype=np.uint8)])


def is_utf8(data: bytes | bytearray) -> bool:
    """Whether all bytes are UTF-8; Arrow looks at many of them at a time, where decoding would make a text of them."""
    edges = pa.py_buffer(np.array([0, len(data)], dtype=np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, edges, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


_SHORT_LINE: Final = 64  # bytes; where lines are shorter than that, room is made for them in a second try


def newlines(data: bytes | bytearray, size: int, *, fast: bool) -> tuple[NDArray[np.int32], bool]:
    """The places of all newlines in the first `size` bytes, and whether all is ASCII.

    Fast where the length of `data` is a multiple of 8.
    """
    view = np.frombuffer(data, dtype=np.uint8)
    if not fast or not available():
        return np.flatnonzero(view[:size] == ord("\n")).astype(np.int32), data.isascii()
    from adjudge.readers import _text_kernels

    every = np.zeros(1, dtype=np.uint8)
    found = -1
    for room in (len(view) // _SHORT_LINE, len(view)):
        if found < 0:
            places = np.empty(room, dtype=np.int32)
            found = _text_kernels.find_newlines(view, view.view(np.uint64), places, every)
    places = places[:found]
    return places[: np.searchsorted(places, size)].copy(), bool(every[0] < 128)


def copied(
    data: NDArray[np.uint8],
    first: NDArray[np.int32],
    last: NDArray[np.int32],
    escaped: NDArray[np.bool_] | None = None,
) -> pa.StringArray:
    """The strings data[first:last], those that are `escaped` resolved; null where `last` is 0."""
    from adjudge.readers import _text_kernels

    n, there = first.size, last > 0
    # Padded, so that the strings can be scanned in their turn.
    out = np.empty(int((last - first).sum(dtype=np.int64)) // 8 * 8 + 8 + SLACK, dtype=np.uint8)
    offsets = np.zeros(n + 1, dtype=np.int32)
    _text_kernels.copy_texts(
        data, first, last, np.zeros(n, dtype=np.bool_) if escaped is None else escaped, out, offsets
    )
    bitmap = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(out), bitmap)


def crc32(texts: pa.StringArray, *, fast: bool) -> NDArray[np.uint32]:
    """The CRC-32 of every string, the same as that of zlib."""
    if not fast or not available():
        crc = zlib.crc32
        return np.array([crc(text.encode()) for text in texts.to_pylist()], dtype=np.uint32)
    from adjudge.readers import _text_kernels

    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    out = np.empty(len(texts), dtype=np.uint32)
    _text_kernels.crc32_rows(np.frombuffer(data or b"\0", dtype=np.uint8), places, _crc_table(), out)
    return out


@functools.cache
def _crc_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table


def _among(kinds: Sequence[int]) -> NDArray[np.bool_]:
    allowed = np.zeros(ARRAY + 1, dtype=np.bool_)
    allowed[list(kinds)] = True
    return allowed
