# mypy: disable-error-code="untyped-decorator,assignment,call-arg,unreachable,return-value,arg-type"

"""The loop of `numbered`: rows with the same text at chosen paths get the same number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.instructions import eight_bytes
from adjudge.loops import Loop
from adjudge.readers._tokens import (
    EIGHT,
    HALF,
    MIXER,
    ONE,
    SEVEN,
    THREE,
    Bytes,
    Ints,
    Place,
    last_word,
)


def head_of(kind: Bytes, first: Ints, last: Ints, node: int, row: int) -> Any:
    return np.uint64(kind[node, row]) | (np.uint64(last[node, row] - first[node, row]) << EIGHT)


def is_entry(
    words: Any, kind: Bytes, first: Ints, last: Ints, nodes: Ints, row: int, store: NDArray[np.uint64], at: Place
) -> bool:
    """Whether a row holds at the nodes what was stored from `at` on."""
    for k in range(nodes.shape[0]):
        node = nodes[k]
        if store[at] != head_of(kind, first, last, node, row):
            return False
        at += ONE
        i = np.uintp(first[node, row])
        size = np.uintp(last[node, row]) - i
        whole = size >> THREE
        differs = np.uint64(0)
        for j in range(whole):
            differs |= store[at + j] ^ eight_bytes(words, i + (j << THREE))
        at += whole
        if size & SEVEN:
            differs |= store[at] ^ last_word(words, i + (whole << THREE), size & SEVEN)
            at += ONE
        if differs:
            return False
    return True


def put_entry(
    words: Any, kind: Bytes, first: Ints, last: Ints, nodes: Ints, row: int, store: NDArray[np.uint64], at: Place
) -> Place:
    """Store what a row holds at the nodes from `at` on; the place behind it."""
    for k in range(nodes.shape[0]):
        node = nodes[k]
        store[at] = head_of(kind, first, last, node, row)
        at += ONE
        i, end = np.uintp(first[node, row]), np.uintp(last[node, row])
        while i < end:
            store[at] = eight_bytes(words, i) if end - i >= EIGHT else last_word(words, i, end - i)
            at += ONE
            i += EIGHT
    return at


def mark_of(words: Any, kind: Bytes, first: Ints, last: Ints, nodes: Ints, row: int) -> Any:
    """A hash of what a row holds at the nodes."""
    mark = np.uint64(0)
    for k in range(nodes.shape[0]):
        node = nodes[k]
        mark = (mark ^ head_of(kind, first, last, node, row)) * MIXER
        mark ^= mark >> HALF
        i, end = np.uintp(first[node, row]), np.uintp(last[node, row])
        while i < end:
            size = min(end - i, SEVEN)
            mark = (mark ^ last_word(words, i, size)) * MIXER
            mark ^= mark >> HALF
            i += size
    return mark


def number_of(
    words: Any,
    kind: Bytes,
    first: Ints,
    last: Ints,
    nodes: Ints,
    row: int,
    slots: Ints,
    hashes: NDArray[np.uint64],
    places: NDArray[np.int64],
    store: NDArray[np.uint64],
    count: int,
    guess: int,
) -> int:
    """The number of a row, `guess` tried first; a row that has none of the `count` known ones gets the next."""
    if guess < count and is_entry(words, kind, first, last, nodes, row, store, np.uintp(places[guess])):
        return guess
    mask = np.uint64(slots.shape[0] - 1)
    mark = mark_of(words, kind, first, last, nodes, row)
    slot = mark & mask
    while True:
        found = np.int64(slots[slot])
        if found < 0:
            break
        if hashes[found] == mark and is_entry(words, kind, first, last, nodes, row, store, np.uintp(places[found])):
            break
        slot = (slot + ONE) & mask
    if found < 0:
        found = np.int64(count)
        slots[slot] = found
        hashes[found] = mark
        places[found + 1] = put_entry(words, kind, first, last, nodes, row, store, np.uintp(places[found]))
    return found


@Loop
def number_rows(
    words: Any,
    kind: Bytes,
    first: Ints,
    last: Ints,
    odd: NDArray[np.bool_],
    nodes: Ints,
    slots: Ints,
    hashes: NDArray[np.uint64],
    places: NDArray[np.int64],
    store: NDArray[np.uint64],
    count: int,
    codes: Ints,
    fresh: Ints,
) -> int:
    """Number the rows by what stands at the nodes, rows with the same text alike; −1 for an odd row.

    `store` holds what each of `count` known numbers stands for, number c from places[c] on: for every node its kind and
    length, then its bytes. `slots` is a hash table of numbers, open addressing, −1 for empty. The row of each new number
    goes into `fresh`; returned is the new count.
    """
    known = count
    guess = np.int64(0)
    for row in range(odd.shape[0]):
        if odd[row]:
            codes[row] = -1
            continue
        guess = number_of(words, kind, first, last, nodes, row, slots, hashes, places, store, count, guess)
        if guess == count:
            fresh[guess - known] = row
            count += 1
        codes[row] = guess
    return count
