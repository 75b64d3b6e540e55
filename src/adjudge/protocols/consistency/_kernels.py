# mypy: disable-error-code="assignment,unreachable"
"""The loops of the consistency protocol over bytes, compiled; only imported where the input is large."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.loops import Loop

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Place = Any  # np.uintp, so that no index needs a look at its sign
Places = NDArray[np.uintp]

MAX_DIGITS = np.uintp(18)
_ONE = np.uintp(1)


def equal_bytes(one: Bytes, i: Place, two: Bytes, j: Place, size: Place) -> bool:
    for k in range(size):  # noqa: SIM110 -- as a loop for the compiler
        if one[i + k] != two[j + k]:
            return False
    return True


@Loop
def ids_of(data: Bytes, i: Place, end: Place, first: Places, last: Places) -> int:
    """Where the ids of a list stand, and how many there are; −1 where one is neither a plain string nor an integer.

    The list data[i:end] is well-formed JSON. More ids than `first` and `last` hold are −1 too.
    """
    count = 0
    i += _ONE
    while True:
        while data[i] == 32 or data[i] == 44 or data[i] == 10 or data[i] == 13 or data[i] == 9:
            i += _ONE
        if data[i] == 93:
            return count if i + _ONE == end else -1
        if count == first.shape[0]:
            return -1
        if data[i] == 34:
            i += _ONE
            first[count] = i
            while data[i] != 34:
                if data[i] == 92:
                    return -1
                i += _ONE
            last[count] = i
            i += _ONE
        else:
            first[count] = i
            if data[i] == 45:
                i += _ONE
                if data[i] == 48:
                    return -1
            digits = i
            while 48 <= data[i] <= 57:
                i += _ONE
            if i == digits or i - digits > MAX_DIGITS:
                return -1
            if data[i] != 32 and data[i] != 44 and data[i] != 93 and data[i] != 10 and data[i] != 13 and data[i] != 9:
                return -1
            last[count] = i
        count += 1


@Loop
def citation_rows(
    data: Bytes,
    cited_from: Ints,
    cited_to: Ints,
    known_from: Ints,
    known_to: Ints,
    cited: Ints,
    outside: Ints,
    odd: NDArray[np.bool_],
    own_first: Places,
    own_last: Places,
    first: Places,
    last: Places,
) -> None:
    """How many ids each row cites, and how many of them are not in its other list; an empty span is no list.

    An integer is the same id as a string of its digits. The last four are room for the ids of one row.
    """
    for row in range(cited.shape[0]):
        cited[row] = 0
        outside[row] = 0
        if odd[row]:
            continue
        own = known = 0
        if cited_to[row] > cited_from[row]:
            own = ids_of(data, np.uintp(cited_from[row]), np.uintp(cited_to[row]), own_first, own_last)
        if known_to[row] > known_from[row]:
            known = ids_of(data, np.uintp(known_from[row]), np.uintp(known_to[row]), first, last)
        if own < 0 or known < 0:
            odd[row] = True
            continue
        cited[row] = own
        for a in range(own):
            size = own_last[a] - own_first[a]
            found = False
            for c in range(known):
                if last[c] - first[c] == size and equal_bytes(data, own_first[a], data, first[c], size):
                    found = True
                    break
            if not found:
                outside[row] += 1


@Loop
def same_rows(
    data: Bytes, first: Ints, last: Ints, other_first: Ints, other_last: Ints, out: NDArray[np.bool_]
) -> None:
    """Whether data[first:last] and data[other_first:other_last] are the same bytes."""
    for row in range(out.shape[0]):
        size = last[row] - first[row]
        out[row] = other_last[row] - other_first[row] == size and equal_bytes(
            data, np.uintp(first[row]), data, np.uintp(other_first[row]), np.uintp(size)
        )


@Loop
def quoted_rows(own: Bytes, own_at: Ints, other: Bytes, other_at: Ints, may: NDArray[np.bool_]) -> None:
    """Leave `may` set where the own text of a row holds the other."""
    for row in range(may.shape[0]):
        if not may[row]:
            continue
        begin = np.uintp(other_at[row])
        size = np.uintp(other_at[row + 1]) - begin
        found = False
        for at in range(own_at[row], own_at[row + 1] - np.int64(size) + 1):
            if equal_bytes(own, np.uintp(at), other, begin, size):
                found = True
                break
        may[row] = found


@Loop
def sign_rows(
    texts: Bytes,
    edges: Ints,
    digits: int,
    words: Bytes,
    word_edges: Ints,
    kinds: Bytes,
    out: NDArray[np.bool_],
) -> None:
    """Which texts hold a certain sign, at least so many digits, or one of the words (anywhere, also inside another).

    `kinds` says of a byte: 1 may begin a word, 2 is a digit, 3 is the sign, 0 none of these.
    """
    for row in range(out.shape[0]):
        end = np.uintp(edges[row + 1])
        count = 0
        found = False
        for i in range(np.uintp(edges[row]), end):
            kind = kinds[texts[i]]
            if kind == 0:
                continue
            if kind == 1:
                for word in range(word_edges.shape[0] - 1):
                    at = word_edges[word]
                    size = word_edges[word + 1] - at
                    if i + np.uintp(size) <= end and equal_bytes(texts, i, words, np.uintp(at), np.uintp(size)):
                        found = True
            elif kind == 2:
                count += 1
            else:
                found = True
        out[row] = found or count >= digits
