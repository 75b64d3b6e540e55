# mypy: disable-error-code="untyped-decorator,assignment,call-arg,unreachable"
# ruff: noqa: PLR1714 -- comparisons with numbers compile to better code than sets
"""Loops over many texts: lines, copies without escapes, hashes, and where an answer stands in a model's text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.instructions import copy_memory, trailing_zeros
from adjudge.loops import Loop
from adjudge.readers._tokens import EIGHT, ESCAPES, HEX, HIGHS, NEWLINES, ONE, THREE, TWO, UNIT, Bytes, Ints, same_bytes

GROUP = np.uintp(256)  # bytes that are looked at together, most of them without a newline


@Loop
def find_newlines(data: Bytes, words: Any, places: Ints, every: Bytes) -> int:
    """The places of all newlines, and how many there are; −1 for more than there is room for.

    `every` gets all bits that are set anywhere.
    """
    found, at, n = 0, np.uintp(0), np.uintp(data.shape[0])
    seen = np.uint8(0)
    while at < n:
        stop = min(at + GROUP, n)
        least = np.uint8(0)
        if stop - at == GROUP:
            least = np.uint8(255)
            for k in range(GROUP):  # least and all bits of many bytes at a time
                b = data[at + k]
                least = min(least, b ^ np.uint8(10))
                seen |= b
        if least:
            at = stop
        while at < stop:
            x = words[at >> THREE] ^ NEWLINES
            # Exact for every byte: the high bit of each says that the byte has no other bit.
            marks = ~(((x & ~HIGHS) + ~HIGHS) | x) & HIGHS
            while marks:
                if found == places.shape[0]:
                    return -1
                places[found] = at + (np.uintp(trailing_zeros(marks)) >> THREE)
                found += 1
                marks &= marks - UNIT
            at += EIGHT
    for k in range(min(n, GROUP)):  # the last bytes are no whole group
        seen |= data[n - ONE - k]
    every[0] = seen
    return found


@Loop
def copy_texts(data: Bytes, first: Ints, last: Ints, escaped: NDArray[np.bool_], out: Bytes, offsets: Ints) -> None:
    """Copy the strings data[first:last] behind one another into `out`, escapes resolved; an empty span copies nothing."""
    at = np.uintp(0)
    for row in range(first.shape[0]):
        i, end = np.uintp(first[row]), np.uintp(last[row])
        if not escaped[row]:
            size = end - i  # a counted loop, which is copied many bytes at a time
            for k in range(size):
                out[at + k] = data[i + k]
            at += size
            i = end
        while i < end:
            b = data[i]
            i += ONE
            if b == 92:
                b = ESCAPES[data[i]]
                i += ONE
                if b == 0:  # \uXXXX
                    unit = 0
                    for _ in range(4):
                        unit = unit * 16 + np.int64(HEX[data[i]])
                        i += ONE
                    if unit >= 0x800:
                        out[at] = 0xE0 | (unit >> 12)
                        out[at + ONE] = 0x80 | ((unit >> 6) & 63)
                        at += TWO
                        b = np.uint8(0x80 | (unit & 63))
                    elif unit >= 0x80:
                        out[at] = 0xC0 | (unit >> 6)
                        at += ONE
                        b = np.uint8(0x80 | (unit & 63))
                    else:
                        b = np.uint8(unit)
            out[at] = b
            at += ONE
        offsets[row + 1] = at


@Loop
def copy_from(address: NDArray[np.int64], offsets: Ints, out: Bytes) -> None:
    """Copy texts that lie anywhere in memory behind one another into `out`."""
    for row in range(address.shape[0]):
        copy_memory(out, offsets[row], address[row], offsets[row + 1] - offsets[row])


@Loop
def word_rows(data: Bytes, first: Ints, last: Ints, words: Bytes, edges: Ints, out: NDArray[np.int8]) -> None:
    """Which word edges[k]..edges[k + 1] of `words` stands at data[first:last]; −1 for none."""
    for row in range(first.shape[0]):
        out[row] = -1
        size = last[row] - first[row]
        for word in range(edges.shape[0] - 1):
            at = edges[word]
            if edges[word + 1] - at == size and same_bytes(data, np.uintp(first[row]), words, at, size):
                out[row] = word
                break


@Loop
def crc32_rows(data: Bytes, offsets: Ints, table: NDArray[np.uint32], out: NDArray[np.uint32]) -> None:
    """CRC-32 of every string of an Arrow buffer, the same as zlib's."""
    for row in range(out.shape[0]):
        crc = np.uint32(0xFFFFFFFF)
        for k in range(offsets[row], offsets[row + 1]):
            crc = table[(crc ^ np.uint32(data[k])) & np.uint32(255)] ^ (crc >> np.uint32(8))
        out[row] = crc ^ np.uint32(0xFFFFFFFF)


# How an object stands in a text: not plainly, as all of it, alone but for white space, in prose, or beside fence marks.
NOT_PLAIN, ALL_OF_IT, ALONE, IN_PROSE, NEAR_FENCES = range(5)


@Loop
def find_objects(data: Bytes, offsets: Ints, starts: Ints, ends: Ints, how: Bytes) -> None:
    """Where the one object of every text of an Arrow buffer must stand, if there is one; only texts in ASCII are plain."""
    for row in range(how.shape[0]):
        begin, end = offsets[row], offsets[row + 1]
        starts[row], ends[row], how[row] = begin, end, NOT_PLAIN
        braces, marks, bits = 0, 0, np.uint8(0)
        for k in range(begin, end):
            b = data[np.uintp(k)]
            braces += b == 123
            marks += b == 96 or b == 126
            bits |= b
        if braces == 0 or bits > 127:
            continue
        if data[np.uintp(begin)] == 123 and data[np.uintp(end - 1)] == 125:
            how[row] = ALL_OF_IT
            continue
        if braces > 1:
            continue
        blank = True
        i = begin
        while data[np.uintp(i)] != 123:
            b = data[np.uintp(i)]
            blank &= b == 32 or 9 <= b <= 13 or 28 <= b <= 31
            i += 1
        j = end - 1
        while j > i and data[np.uintp(j)] != 125:
            b = data[np.uintp(j)]
            blank &= b == 32 or 9 <= b <= 13 or 28 <= b <= 31
            j -= 1
        if j > i:
            starts[row], ends[row] = i, j + 1
            how[row] = NEAR_FENCES if marks >= 3 else ALONE if blank else IN_PROSE
