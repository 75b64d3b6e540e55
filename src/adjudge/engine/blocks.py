"""From a file to blocks of records: whole lines of JSON with their line numbers, whatever the file's format."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from adjudge.errors import InputError
from adjudge.loops import available
from adjudge.protocols.base import Block
from adjudge.readers.records import is_json_lines, records
from adjudge.readers.scan import SLACK, is_utf8, newlines
from adjudge.readers.sources import Source

BLOCK_BYTES = 1 << 23
_BLOCK_ROWS = 2048
_NEWLINE, _OPEN = b"\n{"
_BOM = b"\xef\xbb\xbf"


def blocks(source: Source, file: int, *, fast: bool, limit: int | None = None) -> Iterator[Block]:
    """The records of a source in order, at most `limit`; blank lines are none. A source without any is refused.

    A block is good until the next one is asked for.
    """
    found = _lines(source, file, fast) if is_json_lines(source) else _rewritten(source, file, fast)
    left, empty = limit, True
    for block in found:
        empty = False
        kept = block if left is None or len(block) <= left else _first(block, left)
        yield kept
        if left is not None:
            left -= len(kept)
            if left == 0:
                return
    if empty:
        raise InputError("is empty; expected one record a line", file=source.name)


def _lines(source: Source, file: int, fast: bool) -> Iterator[Block]:
    line = 1
    for data, size in _whole_lines(source.stream.readinto):
        block, count = _of_lines(source.name, file, data, size, line, fast=fast)
        line += count
        if len(block):
            yield block


def blocks_of_range(path: str, file: int, start: int, end: int) -> Iterator[tuple[Block, int]]:
    """The records of some whole lines of a large file, with the number of lines of each block; the first is line 1."""
    line = 1
    with Path(path).open("rb", buffering=0) as stream:
        stream.seek(start)
        for data, size in _whole_lines(lambda room: stream.readinto(room[: end - stream.tell()])):
            block, count = _of_lines(path, file, data, size, line, fast=available())
            line += count
            yield block, count


def _whole_lines(readinto: Callable[[memoryview], int]) -> Iterator[tuple[bytearray, int]]:
    """A stream in pieces of whole lines, padded with blanks as `scan` wants it; all in one buffer, where that is free."""
    data, rest = bytearray(), bytearray()
    while True:
        size, filled = len(rest) + BLOCK_BYTES, len(rest)
        data = _resized(data, size)
        data[:filled] = rest
        with memoryview(data) as room:
            while filled < size and (got := readinto(room[filled:])):
                filled += got
        last = data.rfind(b"\n", len(rest), filled) + 1
        if filled < size or last == 0:  # the end, or a line that is longer than the buffer
            last = filled if filled < size else 0
        rest = data[last:filled]
        if last:
            padded = last + -last % 8 + SLACK
            data[last:padded] = b" " * (padded - last)
            del data[padded:]
            yield data, last
        elif filled == 0:
            return


def _resized(data: bytearray, size: int) -> bytearray:
    """The buffer with another size, its pages warm; a new one where somebody still looks at it."""
    if not data:
        return bytearray(size)
    try:
        if len(data) > size:
            del data[size:]
        else:
            data += bytes(size - len(data))
    except BufferError:
        return bytearray(size)
    return data


def _of_lines(path: str, file: int, data: bytearray, size: int, line: int, *, fast: bool) -> tuple[Block, int]:
    """A block of whole lines of JSON Lines, the first of them `line`; and how many lines it has, blank ones too."""
    view = np.frombuffer(data, dtype=np.uint8)[:size]
    ends, ascii_only = newlines(data, size, fast=fast)
    if view[-1] != _NEWLINE:
        ends = np.append(ends, np.int32(size))
    starts = np.concatenate([np.zeros(1, dtype=np.int32), ends[:-1] + np.int32(1)])
    if line == 1 and data.startswith(_BOM):
        starts[0] = len(_BOM)
    count = len(ends)
    lines = np.arange(line, line + count)
    strange = view[np.minimum(starts, size - 1)] != _OPEN
    if strange.any():
        rows = np.flatnonzero(strange).tolist()
        blank = [row for row in rows if not data[starts[row] : ends[row]].strip()]
        starts, ends, lines = (np.delete(column, blank) for column in (starts, ends, lines))
    block = Block(path, file, data, starts, ends, lines, fast)
    if not ascii_only:
        _check_utf8(block)
    return block, count


def _rewritten(source: Source, file: int, fast: bool) -> Iterator[Block]:
    """Any other format, record by record as JSON."""
    found = records(source)
    while rows := list(itertools.islice(found, _BLOCK_ROWS)):
        ends = np.cumsum([len(text) for _, text in rows])
        starts = ends - [len(text) for _, text in rows]
        lines = np.array([line for line, _ in rows], dtype=np.int64)
        data = b"".join(text for _, text in rows)
        block = Block(source.name, file, data, starts.astype(np.int32), ends.astype(np.int32), lines, fast)
        _check_utf8(block)
        yield block


def _first(block: Block, rows: int) -> Block:
    return replace(block, starts=block.starts[:rows], ends=block.ends[:rows], lines=block.lines[:rows])


def _check_utf8(block: Block) -> None:
    """A reader that skips what it does not want would not notice a broken character there."""
    if not is_utf8(block.data):
        block.each(range(len(block)), lambda _, text: text.decode(), "")
        block.data.decode()
