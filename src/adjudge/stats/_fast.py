"""The few loops that NumPy cannot express, compiled when the `fast` extra (Numba) is installed.

Every loop here has a NumPy path beside its caller with equal results; `kernel` returns None when Numba is not
installed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from adjudge.loops import Loop, available
from adjudge.stats._checks import BoolArray, FloatArray, IntArray

UnsignedArray = npt.NDArray[np.uint64]

_compiled = functools.cache(Loop)

DIGITS, DIGIT_BITS = 8, 8  # of 64 bits
_SIGN, _ALL = (np.uint64(number) for number in (1 << 63, (1 << 64) - 1))
_LOWEST = np.uint64((1 << DIGIT_BITS) - 1)


def kernel(function: Callable[..., Any], *, fast: bool | None = None) -> Callable[..., Any] | None:
    """The compiled loop, or None where it is not to be had or not wanted (`fast=False`)."""
    if fast is False or not available():
        return None
    return _compiled(function)


def sort_doubles(keys: UnsignedArray, other: UnsignedArray, counts: IntArray) -> int:
    """Sort doubles, of which `keys` are the bits, digit by digit; 1 where the result is in `other`, 0 where in `keys`.

    `counts` are zeros, for each digit as many as it has values.
    """
    n = keys.size
    for k in range(n):
        bits = keys[k]
        # As whole numbers in the same order: the sign turned, and for negative ones all bits.
        key = bits ^ (_ALL if bits & _SIGN else _SIGN)
        keys[k] = key
        for digit in range(DIGITS):
            counts[digit, (key >> np.uint64(digit * DIGIT_BITS)) & _LOWEST] += 1
    turns = 0
    for digit in range(DIGITS):
        shift = np.uint64(digit * DIGIT_BITS)
        if counts[digit, (keys[0] >> shift) & _LOWEST] == n:
            continue  # all alike
        before = 0
        for value in range(counts.shape[1]):
            count = counts[digit, value]
            counts[digit, value] = before
            before += count
        source, target = (other, keys) if turns & 1 else (keys, other)
        for k in range(n):
            key = source[k]
            value = (key >> shift) & _LOWEST
            target[counts[digit, value]] = key
            counts[digit, value] += 1
        turns += 1
    found = other if turns & 1 else keys
    for k in range(n):
        key = found[k]
        found[k] = key ^ (_SIGN if key & _SIGN else _ALL)
    return turns & 1


def mann_whitney(below: FloatArray, above: FloatArray) -> int:
    """2 · wins + ties of the sorted `above` over the sorted `below`, by one merge."""
    total = 0
    smaller = 0
    same = 0
    for k in range(above.size):
        value = above[k]
        if k == 0 or value != above[k - 1]:
            smaller += same
            same = 0
            while smaller < below.size and below[smaller] < value:
                smaller += 1
            while smaller + same < below.size and below[smaller + same] == value:
                same += 1
        total += 2 * smaller + same
    return total


def mann_whitney_matrix(code: IntArray, starts: BoolArray, matrix: IntArray, seen: IntArray) -> None:
    """U[i, j] = 2 · wins + ties of cluster i's positives over cluster j's negatives, from rows sorted by score.

    `code` is 2 · cluster + positive; `starts` marks the first row of each group of equal scores. U is added to `matrix`;
    `seen`, zeros, counts each cluster's negatives.
    """
    m = seen.size
    n = code.size
    row = 0
    while row < n:
        stop = row + 1
        while stop < n and not starts[stop]:
            stop += 1
        if stop == row + 1:
            cluster = code[row] >> 1
            if code[row] & 1:
                for j in range(m):
                    matrix[cluster, j] += 2 * seen[j]
            else:
                seen[cluster] += 1
        else:
            for k in range(row, stop):
                if code[k] & 1:
                    for j in range(m):
                        matrix[code[k] >> 1, j] += seen[j]
            for k in range(row, stop):
                if not code[k] & 1:
                    seen[code[k] >> 1] += 1
            for k in range(row, stop):
                if code[k] & 1:
                    for j in range(m):
                        matrix[code[k] >> 1, j] += seen[j]
        row = stop


def average_precisions(code: IntArray, ends: BoolArray, drawn: FloatArray, result: FloatArray) -> None:
    """Average precision of each resample, from rows sorted by falling score; NaN where no positive was drawn.

    `ends` marks the last row of each group of equal scores.
    """
    for b in range(drawn.shape[0]):
        positives = 0.0
        rows = 0.0
        group = 0.0
        area = 0.0
        for k in range(code.size):
            weight = drawn[b, code[k] >> 1]
            rows += weight
            if code[k] & 1:
                group += weight
            if ends[k] and group > 0:
                positives += group
                area += group * (positives / rows)
                group = 0.0
        result[b] = area / positives if positives > 0 else np.nan


def best_f1(positive: BoolArray, ends: BoolArray, total: int) -> int:
    """The last row that is called by the cut with the largest F1, of rows sorted by falling score.

    `ends` marks the last row of each group of equal scores; a cut falls between groups.
    """
    hits = 0
    best = -1.0
    last = -1
    for k in range(positive.size):
        if positive[k]:
            hits += 1
        if ends[k]:
            f1 = 2.0 * hits / (k + 1 + total)
            if f1 > best:
                best = f1
                last = k
    return last


def block_counts(place: IntArray, positive: BoolArray, size: int, counts: FloatArray) -> None:
    """counts[b, c, i] = rows of class c and cluster i before block b of `size` rows; the last b is all rows."""
    for block in range(counts.shape[0] - 1):
        for c in range(2):
            for i in range(counts.shape[2]):
                counts[block + 1, c, i] = counts[block, c, i]
        for k in range(block * size, min((block + 1) * size, place.size)):
            counts[block + 1, int(positive[k]), place[k]] += 1.0


def code_counts(code: IntArray, counts: IntArray) -> None:
    """Add to `counts` how often each code occurs."""
    for k in range(code.size):
        counts[code[k]] += 1
