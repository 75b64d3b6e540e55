# mypy: disable-error-code="untyped-decorator,assignment,call-arg,unreachable"
# ruff: noqa: PLR1714, SIM109 -- comparisons with numbers compile to better code than sets
"""The loops of `scan`: many rows of JSON into columns of what stands at the wanted paths.

A row that is not certainly well-formed JSON, or holds a wanted number whose rounding is in doubt, is marked as odd and
left to the ordinary reader, which decides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.loops import Loop
from adjudge.readers._tokens import (
    ABSENT,
    ARRAY,
    BAD,
    ESCAPED,
    FALSE,
    FIVE,
    FOUR,
    NOTHING,
    NULL,
    OBJECT,
    ONE,
    TEXT,
    THREE,
    TRUE,
    TWO,
    Bytes,
    Floats,
    Ints,
    Place,
    is_literal,
    past_blank,
    past_number,
    past_plain,
    past_string,
    short_number,
)

# What the stack of open containers holds of each.
NODES, LISTS, COUNTS, GUESSES = range(4)


def kid_of_key(
    words: Any, begin: Place, size: Any, keys: Any, key_at: Ints, key_size: Ints, low: Any, high: Any
) -> Any:
    """Which kid low..high has the key at `begin`, whose size counts the quote behind it; −1 for none."""
    for kid in range(low, high):
        if key_size[kid] == size and is_literal(words, begin, keys, np.uintp(key_at[kid]), np.uintp(size)):
            return kid
    return -1


def past_record(
    data: Bytes,
    words: Any,
    i: Place,
    end: Place,
    keys: Any,
    key_at: Ints,
    key_size: Ints,
    low: Any,
    high: Any,
    kid_node: Ints,
    kind: Bytes,
    first: Ints,
    last: Ints,
    number: Floats,
    row: Any,
) -> Place:
    """The place behind an object that has the keys of the kids low..high in their order, each with a short number.

    0 for any other object, which is then to be read in the ordinary way; none of the kids counts as seen. It begins at i.
    """
    kid, own = low, np.uintp(row)
    while kid < high:
        i = past_blank(data, i + ONE, end)  # behind the brace or the comma
        size = np.uintp(key_size[kid])
        begin = i + ONE
        if size == NOTHING or begin + size >= end or data[i] != 34:
            break
        if not is_literal(words, begin, keys, np.uintp(key_at[kid]), size):
            break
        i = past_blank(data, begin + size, end)
        if i >= end or data[i] != 58:
            break
        i = past_blank(data, i + ONE, end)
        begin = i
        i, sort, value = short_number(data, i)
        if sort == BAD:
            break
        node = np.uintp(kid_node[kid])
        kind[node, own] = sort
        number[own, node] = value
        first[node, own] = begin
        last[node, own] = i
        kid += ONE
        i = past_blank(data, i, end)
        if i >= end or data[i] != (44 if kid < high else 125):
            break
        if kid == high:
            return i + ONE
    while kid > low:
        kid -= ONE
        kind[np.uintp(kid_node[kid]), own] = ABSENT
    return NOTHING


@Loop
def scan_rows(
    data: Bytes,
    words: Any,
    starts: Ints,
    ends: Ints,
    keys: Any,
    key_at: Ints,
    key_size: Ints,
    kid_from: Ints,
    kid_to: Ints,
    kid_node: Ints,
    kid_index: Ints,
    kind: Bytes,
    first: Ints,
    last: Ints,
    number: Floats,
    odd: NDArray[np.bool_],
    stack: NDArray[np.int64],
) -> None:
    """Read every row data[starts[r]:ends[r]], one JSON object, into the columns of the wanted nodes.

    Node 0 is the row itself. The kids of a node k stand at kid_from[k]..kid_to[k] of the kid arrays, by key or by index;
    a key is key_size bytes with its closing quote, in whole words from keys[key_at] on.
    `stack` has room for four numbers a level: its node, whether it is a list, its length so far, and which kid is next.
    """
    for row in range(starts.shape[0]):
        odd[row] = True
        i, end = past_blank(data, np.uintp(starts[row]), np.uintp(ends[row])), np.uintp(ends[row])
        if i >= end or data[i] != 123:
            continue
        depth, node = -1, 0
        while True:
            # A value begins at i.
            begin = i
            c = data[i]
            value = 0.0
            empty = False
            behind = NOTHING  # a record that was read at once
            if c == 123 and node >= 0 and kid_from[node] < kid_to[node]:
                low, high = np.uintp(kid_from[node]), np.uintp(kid_to[node])
                behind = past_record(
                    data, words, i, end, keys, key_at, key_size, low, high, kid_node, kind, first, last, number, row
                )
            if behind:
                i, sort, value = behind, OBJECT, float(high - low)
            elif c == 34:
                i, sort = past_string(data, words, i + ONE, end)
                begin += ONE
            elif c == 45 or 48 <= c <= 57:
                i, sort, value = past_number(data, i, end)
                if node >= 0 and math.isnan(value):
                    break
            elif c == 123 or c == 91:
                sort = OBJECT if c == 123 else ARRAY
                depth += 1
                if depth == stack.shape[1]:
                    break
                stack[NODES, depth] = node
                stack[LISTS, depth] = c == 91
                stack[COUNTS, depth] = 0
                stack[GUESSES, depth] = 0
                i = past_blank(data, i + ONE, end)
                empty = i < end and data[i] == (125 if c == 123 else 93)
            elif (
                c == 116
                and i + FOUR <= end
                and data[i + ONE] == 114
                and data[i + TWO] == 117
                and data[i + THREE] == 101
            ):
                i, sort = i + FOUR, TRUE
            elif (
                c == 110
                and i + FOUR <= end
                and data[i + ONE] == 117
                and data[i + TWO] == 108
                and data[i + THREE] == 108
            ):
                i, sort = i + FOUR, NULL
            elif (
                c == 102
                and i + FIVE <= end
                and data[i + ONE] == 97
                and data[i + TWO] == 108
                and data[i + THREE] == 115
                and data[i + FOUR] == 101
            ):
                i, sort = i + FIVE, FALSE
            else:
                break
            if sort == BAD:
                break
            if node >= 0:
                if kind[node, row] != ABSENT:
                    break  # the key stands twice
                kind[node, row] = sort
                number[row, node] = value
                first[node, row] = begin
                last[node, row] = i - ONE if sort == TEXT or sort == ESCAPED else i
            if empty or behind or (sort != OBJECT and sort != ARRAY):
                # The value is over, and with it perhaps the containers around it.
                if not empty:
                    if depth >= 0:
                        stack[COUNTS, depth] += 1
                    i = past_blank(data, i, end)
                while depth >= 0 and i < end and data[i] == (93 if stack[LISTS, depth] else 125):
                    i += ONE
                    own = stack[NODES, depth]
                    if own >= 0:
                        last[own, row] = i
                        number[row, own] = stack[COUNTS, depth]
                    depth -= 1
                    if depth >= 0:
                        stack[COUNTS, depth] += 1
                    i = past_blank(data, i, end)
                if depth < 0:
                    odd[row] = i != end
                    break
                if i >= end or data[i] != 44:
                    break
                i = past_blank(data, i + ONE, end)
            # The next element begins at i: which node is it?
            if i >= end:
                break
            parent = stack[NODES, depth]
            node = -1
            if stack[LISTS, depth]:
                if parent >= 0:
                    for kid in range(kid_from[parent], kid_to[parent]):
                        if kid_index[kid] == stack[COUNTS, depth]:
                            node = kid_node[kid]
                continue
            if data[i] != 34:
                break
            begin = i + ONE
            kid = -1
            if parent >= 0 and kid_from[parent] < kid_to[parent]:
                # Keys mostly stand in the order in which they are wanted.
                kid = kid_from[parent] + stack[GUESSES, depth]
                if kid == kid_to[parent]:
                    kid = np.int64(kid_from[parent])
                size = np.uintp(key_size[kid])
                if (
                    size == NOTHING
                    or begin + size > end
                    or not is_literal(words, begin, keys, np.uintp(key_at[kid]), size)
                ):
                    kid = -1
            if kid >= 0:
                i = begin + np.uintp(key_size[kid]) - ONE
            else:
                i = past_plain(words, begin, end)
                if i >= end or data[i] != 34:
                    break
                if parent >= 0:
                    kid = kid_of_key(
                        words,
                        begin,
                        np.int64(i + ONE - begin),
                        keys,
                        key_at,
                        key_size,
                        kid_from[parent],
                        kid_to[parent],
                    )
            if kid >= 0:
                node = kid_node[kid]
                stack[GUESSES, depth] = kid + 1 - kid_from[parent]
            i = past_blank(data, i + ONE, end)
            if i >= end or data[i] != 58:
                break
            i = past_blank(data, i + ONE, end)
            if i >= end:
                break


@Loop
def split_lists(data: Bytes, words: Any, first: Ints, last: Ints, starts: Ints, ends: Ints, owner: Ints) -> None:
    """Where the elements of the lists data[first:last] stand, which are known to be well-formed; an empty span has none."""
    at = 0
    for row in range(first.shape[0]):
        if first[row] == last[row]:
            continue
        end = np.uintp(last[row]) - ONE
        i = past_blank(data, np.uintp(first[row]) + ONE, end)
        begin = i
        depth = 0
        while i < end:
            c = data[i]
            i += ONE
            if c == 34:
                i, _ = past_string(data, words, i, end)
            elif c == 123 or c == 91:
                depth += 1
            elif c == 125 or c == 93:
                depth -= 1
            elif c == 44 and depth == 0:
                starts[at], ends[at], owner[at] = begin, i - ONE, row
                at += 1
                i = past_blank(data, i, end)
                begin = i
        if begin < end:
            starts[at], ends[at], owner[at] = begin, end, row
            at += 1


@Loop
def expect_rows(kind: Bytes, allowed: NDArray[np.bool_], odd: NDArray[np.bool_]) -> None:
    """Rows with a kind that is not allowed at its node are odd."""
    for node in range(kind.shape[0]):
        own = allowed[node]
        for row in range(kind.shape[1]):
            odd[row] |= not own[kind[node, row]]
